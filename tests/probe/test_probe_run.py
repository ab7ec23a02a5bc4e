"""Choosing, running and guarding experiments; the host experiments on this very machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from probe_examples import machine, number, outcome, profile

from peergrid.bench.commit import commit
from peergrid.cli.probe import probe as command
from peergrid.errors import DeviceFault, UsageError
from peergrid.machine import encode
from peergrid.probe import Bench, Impossible, Lack, Measurement, Probe, measure, runner, session, show
from peergrid.probe import profile as profiles
from peergrid.probe import worker as worker_process
from peergrid.probe.cpu import spin
from peergrid.probe.cpu.threads import Others, counts, inside, on_each_processor, rotated, rounds_in, together
from peergrid.probe.cuda.devices import Gpus
from peergrid.probe.registry import PROBES, choose
from peergrid.probe.runner import run
from peergrid.version import VERSION

ENOUGH_CORES = len(os.sched_getaffinity(0)) >= 2


def made(work: object, gpus: int = 0, name: str = "made") -> Probe:
    return Probe(name, "host", "Made up", "s", "By hand.", work, gpus)  # type: ignore[arg-type]


def test_names_and_groups_choose() -> None:
    assert choose([]) == PROBES
    assert [probe.name for probe in choose(["host-start", "host-copy"])] == ["host-copy", "host-start"]
    assert {probe.group for probe in choose(["host"])} == {"host"}


def test_an_unknown_name_is_one_sentence() -> None:
    with pytest.raises(UsageError) as error:
        choose(["host-cpy"])
    assert str(error.value) == (
        "'host-cpy' should be an experiment or a group of them, but none has that name: did you mean 'host-copy'?"
    )


def test_every_experiment_is_described() -> None:
    names = [probe.name for probe in PROBES]
    assert len(set(names)) == len(names)
    for probe in PROBES:
        assert probe.title
        assert probe.method.endswith(".")
        assert probe.group in ("host", "links", "memory", "atomics and order", "synchronisation", "model")


def test_results_before_a_failure_are_kept() -> None:
    def half(bench: Bench) -> Iterator[Measurement]:
        yield number("q", 1.0)
        raise DeviceFault("The link went down.")

    found = run(made(half), Bench(), 0)
    assert (found.status, found.reason, len(found.results)) == ("failed", "The link went down.", 1)


def test_reasons() -> None:
    def never(bench: Bench) -> Iterator[Measurement]:
        raise Impossible("this hardware has no such thing")
        yield

    def bug(bench: Bench) -> Iterator[Measurement]:
        raise ZeroDivisionError("division by zero")
        yield

    assert run(made(never), Bench(), 0).reason == "this hardware has no such thing"
    assert run(made(bug), Bench(), 0).reason == "ZeroDivisionError: division by zero"
    few = run(made(never, gpus=2), Bench(), 0, "no driver")
    assert (few.status, few.reason) == ("impossible", "needs 2 GPUs, and this machine has none: no driver")


def test_what_the_machine_cannot_give_of_an_experiment_is_stated() -> None:
    def part(bench: Bench) -> Iterator[Measurement | Lack]:
        yield Lack("near and far: one node")
        yield number("q", 1.0)
        yield Lack("near and far: one node")

    found = run(made(part), Bench(), 0)
    assert (found.status, found.reason, len(found.results)) == ("done", "near and far: one node", 1)
    assert (
        "  not given: near and far: one node"
        in show.profile(profiles.new(machine(), (found,), quick=True)).splitlines()
    )


def test_gpus_that_do_not_open_are_a_failure_of_their_experiments_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def lost(driver: object) -> None:
        raise DeviceFault("The driver refused cuDevicePrimaryCtxRetain: GPU is lost (CUDA_ERROR_DEVICE_UNAVAILABLE).")

    monkeypatch.setattr(worker_process, "find", lambda: (object(), None))
    monkeypatch.setattr(Gpus, "open", lost)
    assert worker_process.main(["--quick", "host-start", "chase", "little"]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ended = [line["outcome"] for line in said if "outcome" in line]
    assert [(item["name"], item["status"]) for item in ended] == [
        ("host-start", "done"), ("chase", "failed"), ("little", "failed"),
    ]  # fmt: skip
    assert ended[1]["reason"].endswith("GPU is lost (CUDA_ERROR_DEVICE_UNAVAILABLE).")


def worker(tmp_path: Path, body: str) -> list[str]:
    """A command that behaves as `body` says instead of measuring."""
    script = tmp_path / "worker.py"
    script.write_text("import json, sys, time\nnames = sys.argv[1:]\n" + body, encoding="utf-8")
    return [sys.executable, str(script)]


def test_a_hanging_experiment_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "START_LIMIT", 0.5)
    first, second = made(None, name="one"), made(None, name="two")
    ended = json.dumps({"outcome": json.loads(json.dumps(_outcome(second)))})
    script = worker(tmp_path, f"if names[0] == 'one': time.sleep(60)\nprint({ended!r}, flush=True)")
    found = measure([first, second], quick=False, limit=0.5, command=script)
    assert [item.status for item in found] == ["timeout", "done"]
    assert found[0].reason == "it took longer than 0.5 s"


def test_a_crashing_experiment_costs_only_itself(tmp_path: Path) -> None:
    first, second = made(None, name="one"), made(None, name="two")
    ended = json.dumps({"outcome": _outcome(second)})
    body = f"if names[0] == 'one': sys.exit('it broke')\nprint({ended!r}, flush=True)"
    found = measure([first, second], quick=False, command=worker(tmp_path, body))
    assert [item.status for item in found] == ["failed", "done"]
    assert found[0].reason == "the measuring process ended with code 1: it broke"


def test_each_outcome_is_told_as_it_comes(tmp_path: Path) -> None:
    probes, told = [made(None, name="one"), made(None, name="two")], tmp_path / "told"
    first, second = (json.dumps({"outcome": _outcome(probe)}) for probe in probes)
    wait = f"import pathlib\nwhile not pathlib.Path({str(told)!r}).exists(): time.sleep(0.01)\n"
    script = worker(tmp_path, f"print({first!r}, flush=True)\n{wait}print({second!r}, flush=True)")
    found = measure(probes, quick=False, say=lambda words: told.touch(), limit=20.0, command=script)
    assert [item.status for item in found] == ["done", "done"]


def test_what_is_missing_is_told_once(tmp_path: Path) -> None:
    probes = [made(None, gpus=99, name=name) for name in ("one", "two", "three")]
    told = [runner.outcome(probe, "impossible", "no GPU") for probe in probes]
    body = "\n".join(f"print({json.dumps({'outcome': encode(one)})!r}, flush=True)" for one in told)
    said: list[str] = []
    found = measure(probes, quick=False, say=said.append, command=worker(tmp_path, body))
    assert [item.reason for item in found] == ["no GPU"] * 3
    assert [words.rpartition(" (")[0] for words in said] == [
        "one: impossible: no GPU", "two: impossible: as above", "three: impossible: as above"
    ]  # fmt: skip


def test_what_has_no_time_left_is_recorded_so(tmp_path: Path) -> None:
    probes = [made(None, name=name) for name in ("one", "two", "three")]
    ended = json.dumps({"outcome": _outcome(probes[0])})
    said: list[str] = []
    script = worker(tmp_path, f"print({ended!r}, flush=True)\ntime.sleep(60)")
    found = measure(probes, quick=False, say=said.append, total=3.0, command=script)
    assert [(item.status, item.reason) for item in found] == [("done", ""), *[("timeout", session.OVER)] * 2]
    assert len(said) == 3


def test_a_worker_that_never_says_a_word_is_not_started_for_ever(tmp_path: Path) -> None:
    probes = [made(None, name="one"), made(None, name="two")]
    found = measure(probes, quick=False, command=worker(tmp_path, "sys.exit(3)"))
    assert [item.reason for item in found] == ["the measuring process did not start"] * 2


def _outcome(probe: Probe) -> object:
    from peergrid.machine import encode
    from peergrid.probe import runner

    return encode(runner.outcome(probe, "done", ""))


def test_thread_counts() -> None:
    assert [counts(limit) for limit in (1, 2, 3, 8, 12)] == [(1,), (1, 2), (1, 2, 3), (1, 2, 4, 8), (1, 2, 4, 8, 12)]
    assert rounds_in(0.02, 100, 0.001, 10_000) == 2000
    assert rounds_in(0.02, 100, 10.0, 10_000) == 400


def test_a_thread_that_waits_in_vain_is_reported() -> None:
    with pytest.raises(DeviceFault, match="Of 2 threads 1 waited in vain"):
        together(lambda index: index == 0, (0, 0))


@pytest.mark.parametrize(
    ("share", "floor", "told"), [(0.0, 0.1, 0), (0.5, 1.005, 1), (1.0, 5.001, 1), (0.05, 0.113, 0)]
)
def test_other_work_widens_the_intervals_and_is_reported(share: float, floor: float, told: int) -> None:
    others = Others(share)
    assert others.floor(0.1) == pytest.approx(floor, abs=1e-3)
    assert len(list(others.warnings())) == told


def test_a_busy_machine_shows_in_the_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Others, "now", lambda: Others(0.6))
    found = run(next(probe for probe in PROBES if probe.name == "host-start"), Bench(quick=True), 0)
    assert found.reason == "narrow intervals: other work took 60 % of the processors"
    assert all(item.uncertainty > 1.5 * item.median for item in found.results)


def test_seconds_are_those_of_the_first_thread() -> None:
    assert inside(lambda index: 1.5 + index, (0, 0)) == 1.5
    with pytest.raises(DeviceFault, match="Of 2 threads 1 waited in vain"):
        inside(lambda index: 1.5 if index == 0 else -1.0, (0, 0))


@pytest.mark.skipif(not ENOUGH_CORES, reason="two threads need two cores")
def test_a_timed_barrier_meets_as_often_as_it_says() -> None:
    cpus = tuple(sorted(os.sched_getaffinity(0)))[:2]
    words, clocks = spin.lines(2), np.zeros((2, spin.WORDS_PER_LINE), np.int64)
    seconds = inside(lambda index: float(spin.timed_barrier(words, clocks[index], 50, 2)), cpus)
    assert seconds > 0.0
    assert words[0] == 2 * (spin.WARM + 50)


@pytest.mark.skipif(not ENOUGH_CORES, reason="two threads need two cores")
def test_spinning_words_arrive() -> None:
    words = spin.lines(2)
    cpus = tuple(sorted(os.sched_getaffinity(0)))[:2]
    together(lambda index: bool(spin.barrier(words, 1, 100, 2)), cpus)
    assert words[0] == 200
    assert words[spin.WORDS_PER_LINE] == 100


def test_measurements_are_each_on_another_processor() -> None:
    before = os.sched_getaffinity(0)
    places = on_each_processor(4, lambda: float(next(iter(os.sched_getaffinity(0)))))
    assert len(set(places)) == min(4, len(before))
    with pytest.raises(ZeroDivisionError):
        on_each_processor(1, lambda: 1 / 0)
    assert os.sched_getaffinity(0) == before


def test_processors_turn_through_all_of_them() -> None:
    assert [rotated((0, 1, 2, 3), at, 2) for at in range(2)] == [(0, 1, 2, 3), (2, 3, 0, 1)]
    assert {rotated((0, 1, 2), at, 30)[0] for at in range(30)} == {0, 1, 2}


def test_the_command_measures_and_compares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p.json"
    command(names=["host-start"], quick=True, output=place)
    measured = profiles.read(place)
    assert (measured.peergrid, measured.commit) == (VERSION, commit())
    assert measured.command.startswith(Path(sys.argv[0]).name)
    capsys.readouterr()
    found = profiles.read(place)
    assert [item.status for item in found.probes] == ["done"]
    assert all(item.median > 0 for item in found.results("host_start"))
    command(names=[], recorded=place, compare_with=place, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    assert (shown["differences"], shown["flags"]) == ([], [])
    command(names=[], recorded=place, compare_with=place)
    assert capsys.readouterr().out.endswith("\n\n2 numbers compared: none differs by more than the noise.\n")


def test_a_profile_of_another_machine_is_called_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    profiles.write(here, profile())
    profiles.write(there, profile(gpus=2))
    command(names=[], recorded=here, compare_with=there)
    said = "The other profile is of another machine, 2 × NVIDIA H200, 1 × Some CPU (4 cores).\n0 numbers compared"
    assert said in capsys.readouterr().out


def test_a_broken_experiment_shows_in_the_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = outcome(name="host-start", status="timeout", reason="it took longer than 30 s")
    monkeypatch.setattr(sys.modules["peergrid.cli.probe"], "measure", lambda *arguments, **named: (broken, outcome()))
    place = tmp_path / "p.json"
    with pytest.raises(DeviceFault) as error:
        command(names=[], output=place)
    assert str(error.value) == (
        "All experiments should end, but 1 of 2 did not (host-start): the profile holds each reason."
    )
    assert [item.status for item in profiles.read(place).probes] == ["timeout", "done"]


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    command(catalogue=True)
    assert "host-flag" in capsys.readouterr().out
    command(catalogue=True, as_json=True)
    described = json.loads(capsys.readouterr().out)["experiments"]
    assert [item["name"] for item in described] == [probe.name for probe in PROBES]
    assert described[0]["group"] == PROBES[0].group
    assert "rows" not in described[0]


def test_names_choose_from_a_recorded_profile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "p.json"
    profiles.write(place, profiles.new(machine(), (outcome(name="host-start"), outcome(name="launch")), quick=True))
    for names, left in (([], ["host-start", "launch"]), (["synchronisation"], ["launch"])):
        command(names=names, recorded=place, as_json=True)
        assert [item["name"] for item in json.loads(capsys.readouterr().out)["probes"]] == left
    with pytest.raises(UsageError, match="did you mean 'launch'"):
        command(names=["lanch"], recorded=place)
