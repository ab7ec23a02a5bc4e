"""`peergrid verify`: its JSON contract and its exit codes."""

from __future__ import annotations

import multiprocessing
import sys
import time
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
from cli_call import Call

from peergrid.cli.verification import Ways, verify_all
from peergrid.cli.verify import OUTCOMES, SHOWN, outcome_in_words
from peergrid.codegen.cuda.choose.balance import balanced
from peergrid.grid.partition import Partition
from peergrid.models.fdtd import build
from peergrid.models.modelfile import read
from peergrid.runtime.trace.judge import Outcome
from peergrid.schedule import Options
from peergrid.schedule.strategies import STRATEGIES, Strategy
from peergrid.stencil import Problem
from peergrid.verification import Target

FIGURES = ("schedules", "ops", "races", "stale_reads", "deadlocks")
OF_MUTANTS = ("mutants", "killed", "redundant")


def test_json_holds_the_figures(call: Call, model: Path) -> None:
    answer = call("verify", model, "--devices", "cpu:2", "--depth", 2, "--json")
    assert answer.code == 0
    found = answer.json
    assert [found[key] > 0 for key in FIGURES] == [True, True, False, False, False]
    assert not found.keys() & set(OF_MUTANTS)


def test_mutants_are_killed_or_redundant(call: Call, model: Path) -> None:
    found = call("verify", model, "--devices", 2, "--depth", 1, "--strategy", "async", "--mutants", "--json").json
    assert found["mutants"] == found["killed"] + found["redundant"] > found["redundant"]
    assert found["disagreements"] == 0


def test_recorded_runs_are_checked(call: Call, model: Path) -> None:
    found = call("verify", model, "--recorded", "--devices", "cpu:2", "--depth", 2, "--json").json
    assert found["schedules"] == len(STRATEGIES)
    assert found["operations"] > 10 * found["schedules"]
    assert found["faults"] == []
    refused = call("verify", model, "--recorded", "--mutants")
    assert refused.code == 2
    assert "leave out '--mutants'" in refused.err


def test_parts_in_processes_of_their_own_add_up(call: Call, model: Path) -> None:
    some = ("verify", model, "--strategy", "peer", "--mutants", "--json")
    together = call(*some, "--devices", 2).json
    depths = [call(*some, "--devices", 2, "--depth", depth).json for depth in (1, 2, 3, 5, 8)]
    for key in (*FIGURES, *OF_MUTANTS):
        assert together[key] == sum(found[key] for found in depths)
    for outcome, number in together["outcomes"].items():
        assert number == sum(found["outcomes"].get(outcome, 0) for found in depths)
    assert together["mutants"] == sum(together["outcomes"].values())


def test_slabs_as_gpus_get_them(model: Path) -> None:
    """With absorbers at its ends, devices there own fewer rows than those in between."""
    problem, options = build(read(model)).problem, Options("async")
    even, thinner = (Target(3).layout(problem, options, even=each).partition for each in (True, False))
    assert even == Partition.over(problem.grid, 3)
    assert thinner == balanced(problem, 3, 1) != even


def test_what_gpus_carry_out_is_proved_without_any(call: Call, model: Path) -> None:
    """The passes of its lowering are named, in the text and in the JSON."""
    arguments = ("verify", model, "--devices", "cuda:0,1", "--strategy", "overlap", "--depth", 2)
    answer = call(*arguments, "--mutants", "--json")
    assert answer.code == 0
    assert answer.json["passes"] == ["overlap: events between GPUs to semaphores, then a host for each GPU"]
    assert answer.json["mutants"] == answer.json["killed"] + answer.json["redundant"]
    assert call(*arguments).out.splitlines()[-1] == f"lowered for GPUs: {answer.json['passes'][0]}"


def test_every_outcome_of_a_mutant_is_explained() -> None:
    assert {outcome_in_words(outcome) for outcome in get_args(Outcome)} == {
        *(f"{name}: {meaning}" for name, meaning in OUTCOMES.items()), "disagreement"
    }  # fmt: skip


def test_text_says_the_same(call: Call, model: Path) -> None:
    answer = call("verify", model, "--devices", 2, "--depth", 1, "--strategy", "peer")
    assert answer.out.splitlines()[1] == "0 races, 0 stale reads, 0 deadlocks"


def test_a_long_proof_says_how_far_it_is(call: Call, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["peergrid.cli.verify"], "LINE_EVERY", 0.0)
    arguments = ("verify", model, "--devices", 2, "--depth", 1, "--strategy", "peer")
    assert call(*arguments).err.splitlines() == ["1 of 3 cases", "2 of 3 cases", "3 of 3 cases"]
    assert call(*arguments, "--json").err == ""


def test_what_ends_a_proof_ends_its_processes_at_once(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two processes the third part comes last; it makes its problem late, and does not come so far."""
    monkeypatch.setattr("peergrid.cli.verification.cores", lambda: 2)

    def interrupted(_done: int, _number: int) -> None:
        raise KeyboardInterrupt

    ways = Ways(devices=(1,), strategies=("serial",), depths=(1, 2, 3), orders=("all",))
    with pytest.raises(KeyboardInterrupt):
        verify_all(partial(late, model, tmp_path), ways, interrupted)
    assert (tmp_path / "first").exists()
    assert not (tmp_path / "late").exists()
    assert not multiprocessing.active_children()


def late(model: Path, folder: Path) -> Problem:
    """The problem of a model; at once for the first two who ask."""
    for name in ("first", "second", "third"):
        try:
            (folder / name).touch(exist_ok=False)
            break
        except FileExistsError:
            continue
    if name == "third":
        time.sleep(60)
        (folder / "late").touch()
    return build(read(model)).problem


def test_a_wrong_strategy_is_rejected_with_exit_code_1(
    call: Call, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unordered = Strategy(lambda work: (op for op in STRATEGIES["async"].build(work) if hasattr(op, "level")), "copy")
    monkeypatch.setitem(STRATEGIES, "threads", unordered)
    answer = call("verify", model, "--devices", 2, "--depth", 1, "--strategy", "threads", "--json")
    assert answer.code == 1
    assert answer.json["races"] > 0
    assert answer.err.startswith("threads, 2 devices, depth 1, order left-right: Race on ")
    more = len(answer.json["faults"]) - SHOWN
    text = call("verify", model, "--devices", 2, "--depth", 1, "--strategy", "threads").out
    assert text.splitlines()[-1] == f"and {more} more"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ("--strategy", "nope"),
            "A strategy is one of serial, async, threads, overlap, graph, peer, persistent, got 'nope'.",
        ),
        (
            ("--devices", "cuda"),
            "The devices of a proof are 'cpu:N' with N from 1 to 1024, or 'cuda:0,1', got 'cuda'.",
        ),
        (("--depth", "0"), "'--depth' takes a whole number above 0, got 0."),
    ],
)
def test_what_cannot_be_is_refused(call: Call, model: Path, options: tuple[str, ...], sentence: str) -> None:
    answer = call("verify", model, *options)
    assert (answer.code, answer.err.strip()) == (2, sentence)
