"""The GPU experiments without a GPU: sources compile, every call and argument is checked by a pretended driver."""

from __future__ import annotations

import ctypes
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cuda.core")

from pretend_calls import entries, needs_nvrtc, recording
from pretend_driver import PretendDriver, PretendNvml, signatures

from peergrid.errors import DeviceFault
from peergrid.machine import nvml
from peergrid.probe import Bench, Measurement, Probe
from peergrid.probe.cpu import spin
from peergrid.probe.cuda import (
    addressing,
    allocation,
    grid_barrier,
    halo,
    host_link,
    host_side,
    hostloop,
    launch,
    little,
    method_check,
    ordering,
    relay,
    remote_atomics,
)
from peergrid.probe.cuda import compile as compiling
from peergrid.probe.cuda.chase import chain
from peergrid.probe.cuda.devices import Gpus, Stream, u64
from peergrid.probe.cuda.timing import sound
from peergrid.probe.experiment import Lack
from peergrid.probe.registry import PROBES
from peergrid.probe.runner import run
from peergrid.report.views import VIEWS

GPU_PROBES = [probe for probe in PROBES if probe.gpus]
LAUNCHED: dict[str, set[str]] = {}
"""The kernels of the experiments that this process has carried out."""


@needs_nvrtc
@pytest.mark.nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("source", [*compiling.SOURCES, *compiling.HEADED])
def test_sources_compile(source: str, architecture: str) -> None:
    assert compiling.cubin(source, architecture)[:4] == b"\x7fELF"


@needs_nvrtc
def test_a_bad_source_gives_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "text", lambda source: "this is no kernel")
    with pytest.raises(DeviceFault, match=r"NVRTC did not compile 'bad.cu' for sm_90"):
        compiling.cubin("bad", "sm_90")


@needs_nvrtc
@pytest.mark.parametrize("probe", GPU_PROBES, ids=lambda probe: probe.name)
def test_every_experiment_runs_to_its_end(probe: Probe, pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        peers = set(devices.peers)
        found = [item for item in carried_out(probe, devices, pretended) if isinstance(item, Measurement)]
        assert devices.peers == peers, "peer access was not restored"
    assert found
    assert {kind: left for kind, left in pretended.held.items() if left} == {}, "something was not given back"
    shown = {view.quantity for view in VIEWS}
    side = {
        "message_ratio", "order_tries", "round_trip", "add_deviation", "clock_rate", "shared_latency", "sync_latency",
    }  # fmt: skip
    for item in found:
        assert item.quantity in shown | side
        assert item.unit or item.quantity in shown | side
    keys = [(item.quantity, tuple(item.at.items())) for item in found]
    assert len(set(keys)) == len(keys), "two numbers with the same coordinates"


def carried_out(probe: Probe, devices: Gpus, pretended: PretendDriver) -> list[Measurement | Lack]:
    """What an experiment finds; the kernels that it launched are noted."""
    pretended.launched.clear()
    found = list(probe.run(Bench(quick=True, devices=devices)))
    LAUNCHED[probe.name] = set(pretended.launched)
    return found


LINKED = [probe for probe in GPU_PROBES if probe.name in ("peer-copy", "halo", "relay", "traffic")]


@needs_nvrtc
@pytest.mark.parametrize("probe", LINKED, ids=lambda probe: probe.name)
def test_the_counters_see_what_every_link_experiment_says_it_sent(probe: Probe, pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        found = [item for item in probe.run(Bench(quick=True, devices=devices)) if isinstance(item, Measurement)]
    ratios = [item for item in found if item.quantity == "traffic_ratio"]
    assert {item.at["counter"] for item in ratios} == {"sent", "received"}
    for item in ratios:
        assert item.at["experiment"] == probe.name
        assert set(item.samples) == {0.0 if item.at.get("route") == "host" else 1.0}


@needs_nvrtc
def test_the_callers_context_is_current_after_an_experiment(pretended: PretendDriver) -> None:
    pretended.current = 7
    with Gpus.open(pretended) as devices, devices.scope() as scope:
        scope.words(1, 4)
        assert pretended.current == 1
    assert pretended.current == 7


def test_owners_of_pointers_are_compared_with_where_they_are(pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        found = [item for item in addressing.run(Bench(devices=devices)) if isinstance(item, Measurement)]
    known = {item.at["memory"]: item.median for item in found if item.quantity == "owner_known"}
    # The pretended driver takes a range for memory of the GPU that reserved it, which is wrong for its last piece.
    assert known == {
        "own GPU": 1.0, "another GPU": 1.0, "pinned host memory": 1.0, "plain host memory": 1.0, "mapped range": 0.0,
    }  # fmt: skip


@needs_nvrtc
def test_work_that_is_held_counts_as_waiting(pretended: PretendDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addressing, "PAUSE_SECONDS", 0.0)
    pretended.cuEventQuery = lambda event: (600,)  # type: ignore[attr-defined]
    with Gpus.open(pretended) as devices:
        found = list(addressing._orders(devices))
    assert {item.median for item in found} == {1.0}
    assert len(found) == 6


@needs_nvrtc
def test_pcie_counters_are_read_beyond_their_wrap(pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        found = [item for item in host_link._counted(Bench(devices=devices)) if isinstance(item, Measurement)]
    assert [item.at["direction"] for item in found] == ["to host", "to device"]
    for item in found:
        assert item.samples == pytest.approx([1.08] * 7)


@needs_nvrtc
@pytest.mark.parametrize("probe", LINKED, ids=lambda probe: probe.name)
def test_without_counters_the_reason_stands_in_the_outcome(
    probe: Probe, pretended: PretendDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nvml, "session", lambda: nullcontext((PretendNvml(pretended, refuse=True), None)))
    with Gpus.open(pretended) as devices:
        found = run(probe, Bench(quick=True, devices=devices), 3)
    assert "NVML does not give the NVLink traffic counters of these GPUs (support or permission)" in found.reason
    assert found.status == ("impossible" if probe.name == "traffic" else "done")
    assert bool(found.results) == (probe.name != "traffic")


@pytest.mark.parametrize(("count", "ways"), [(2, "010"), (3, "010 012 201 021"), (4, "010 012 301 032")])
def test_relays_go_there_and_back_and_over_three(count: int, ways: str) -> None:
    assert [f"{a}{m}{b}" for a, m, b in relay._ways(count)] == ways.split()


@needs_nvrtc
def test_two_gpus_relay_there_and_back_and_say_so(pretended: PretendDriver) -> None:
    with Gpus.open(PretendDriver(2)) as devices:
        found = list(relay.run(Bench(quick=True, devices=devices)))
    ways = [item.at for item in found if isinstance(item, Measurement) and item.quantity == "relay_bandwidth"]
    assert ways == [{"source": 0, "middle": 1, "target": 0}]
    assert "three GPUs in a row: no GPU of this machine reaches two others" in str(found[0])


@needs_nvrtc
@pytest.mark.parametrize("words", ["one word", "own words"])
def test_atomics_are_sampled_in_several_pages(
    words: str, pretended: PretendDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    targets: list[int] = []
    adding = remote_atomics.adding
    monkeypatch.setattr(remote_atomics, "adding", lambda *a: targets.append(a[2]) or adding(*a))
    with Gpus.open(pretended) as devices:
        found = list(remote_atomics._crew(Bench(quick=True, devices=devices), "own", [0], words))
    assert len(found[0].samples) == len(set(targets)) == 9
    assert min(b - a for a, b in pairwise(sorted(targets))) >= remote_atomics.APART


@needs_nvrtc
def test_copies_of_the_host_are_sampled_in_several_places(
    pretended: PretendDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    here: list[tuple[int, int]] = []
    copies = host_link.copies
    monkeypatch.setattr(host_link, "copies", lambda *a: here.append((a[1], a[2])) or copies(*a))
    with Gpus.open(pretended) as devices:
        found = list(host_link._pinned(Bench(quick=True, devices=devices), 0, [1024], {}))
    assert [len(item.samples) for item in found] == [host_link.PLACES] * 2
    assert len(set(here)) == 2 * host_link.PLACES


@needs_nvrtc
def test_every_sample_of_a_grid_barrier_has_its_own_counter(
    pretended: PretendDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int]] = []
    monkeypatch.setattr(
        grid_barrier, "_seconds", lambda desk, counter, blocks, threads, repeats: seen.append((repeats, counter)) or 0.0
    )
    with Gpus.open(pretended) as devices:
        (*_, found) = grid_barrier.run(Bench(devices=devices))
    few, many = ([at for repeats, at in seen[-30:] if repeats == count] for count in (50, 2050))
    assert few == many
    assert len(set(many)) == len(found.samples) == 15


@needs_nvrtc
def test_a_run_sees_how_its_own_deviation_moves(pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        found = {(item.quantity, item.at.get("way")): item for item in method_check.run(Bench(True, devices))}
    assert len(found["add_deviation", "equation 8"].samples) == 7
    assert len(found["add_latency", "differences"].samples) == 7 * method_check.PAIRS


def test_launches_are_sampled_on_one_stream_after_the_other() -> None:
    streams = [Stream(device, None) for device in range(3)]
    assert launch._samples(5, streams, lambda stream: float(stream.device), 1) == [0, 1, 2, 0, 1]


def test_kernels_that_wait_together_get_their_units_and_cycles() -> None:
    def compiled(stream: Stream, count: int, arguments: int) -> float:
        places = (ctypes.c_uint64 * 2).from_address(arguments)
        units, cycles = (ctypes.c_uint32.from_address(place).value for place in places)
        assert (count * units, cycles) == (launch.MANY, launch.UNIT)
        return float(units)

    timed = launch._units(compiled)
    assert [timed(Stream(0, None), count) for count in (launch.MANY, launch.ONE)] == [1.0, 33.0]


def test_no_driver_library_leaves_what_needs_no_compiled_loop(
    pretended: PretendDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "entries", lambda: fail(None))
    with Gpus.open(pretended) as devices:
        lack, *found = launch.run(Bench(quick=True, devices=devices))
    assert lack == Lack("launches from a compiled loop: The GPU is lost.")
    assert {item.at["how"] for item in found if isinstance(item, Measurement)} == {"dependent", "graph", "graph node"}


def test_the_threads_of_a_barrier_begin_where_the_caller_is(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[list[int]] = []
    monkeypatch.setattr(host_side, "entries", entries)
    monkeypatch.setattr(host_side, "cores", lambda: (4, 5, 6, 7))
    monkeypatch.setattr(host_side, "usable_cpus", lambda: (6,))
    monkeypatch.setattr(host_side, "inside", lambda work, cpus: chosen.append(cpus) or 0.0)
    timed = host_side.Launchers(*[np.ones(2, np.uint64)] * 4).ways()["a thread per GPU"]
    timed(2, 1)
    assert chosen == [[6, 4]]


@needs_nvrtc
def test_every_kernel_is_used(pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        for probe in GPU_PROBES:
            if probe.name not in LAUNCHED:
                carried_out(probe, devices, pretended)
    assert set(signatures()) == set().union(*LAUNCHED.values())


def test_a_chain_is_one_cycle_through_all_places() -> None:
    base, links, stride = 1 << 20, 37, 64
    words = chain(base, links, stride)
    at, seen = base, set()
    while at not in seen:
        seen.add(at)
        at = int(words[(at - base) // 8])
    assert seen == {base + i * stride for i in range(links)}


@pytest.mark.parametrize("count", [2, 3, 4, 8])
@pytest.mark.parametrize("pattern", halo.PATTERNS)
def test_every_pattern_sends_every_halo_once(pattern: str, count: int) -> None:
    sent = [pair for stage in halo.PATTERNS[pattern](count) for pair in stage]
    wanted = {(i, j) for i in range(count) for j in (i - 1, i + 1) if 0 <= j < count}
    assert len(sent) == len(set(sent))
    assert set(sent) == wanted


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_pairwise_stages_never_give_a_gpu_two_partners(count: int) -> None:
    for stage in halo.pairwise(count):
        senders = [source for source, _ in stage]
        assert len(senders) == len(set(senders))


def test_switch_points_of_the_paper() -> None:
    """Tables III and IV for the V100: 76 bytes by equation 4, 9076 by equation 5."""
    assert little.switch_point(13.0, 110, 0.62, 19.6) == pytest.approx(76, rel=0.01)
    assert little.switch_point(13.0, 420, 19.6, 215) == pytest.approx(9076, rel=0.01)


def test_more_threads_that_are_no_faster_never_pay() -> None:
    assert little.switch_point(10.0, 1000.0, 5.0, 5.0) == float("inf")
    assert little.switch_point(10.0, 1000.0, 5.0, 4.0) == float("inf")


def test_the_compiled_loop_launches_and_waits() -> None:
    calls: list[tuple[str, tuple[int, ...]]] = []
    start = hostloop.LAUNCH(lambda *a: calls.append(("launch", a)) or 0)
    wait = hostloop.ON_STREAM(lambda *a: calls.append(("wait", a)) or 4)
    loop = hostloop.launches(start, wait, False)
    assert loop(11, 1, 32, 22, 7, 3, np.zeros(2, np.int64)) == -4
    assert calls == [("launch", (11, 1, 1, 1, 32, 1, 1, 0, 22, 7, 0))] * 3 + [("wait", (22,))]


def test_a_barrier_of_streams_by_events_waits_for_all_kernels_of_a_round() -> None:
    calls: list[tuple[str, tuple[int, ...]]] = []
    contexts, functions, streams, events = (np.arange(3, dtype=np.uint64) + 10 * at for at in (1, 2, 3, 4))
    assert hostloop.chains(recording(calls))(contexts, functions, streams, events, 2) == 0
    made: dict[int, set[int]] = {stream: set() for stream in (30, 31, 32)}  # kernels that a stream's next one waits for
    kept: dict[int, set[int]] = {}
    count = 0
    for name, arguments in calls:
        if name == "launch":
            stream = arguments[8]
            assert len(made[stream]) == 3 * (count // 3), "a kernel may start before the round before has ended"
            count += 1
            made[stream] = made[stream] | {count}
        elif name == "record":
            kept[arguments[0]] = set(made[arguments[1]])
        elif name == "await":
            made[arguments[0]] |= kept[arguments[1]]
    assert count == 6
    assert [name for name, _ in calls].count("wait") == 3


class LaunchParams(ctypes.Structure):
    """CUDA_LAUNCH_PARAMS of the driver's header."""

    _fields_ = (
        ("function", ctypes.c_void_p),
        *((name, ctypes.c_uint) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")),
        ("stream", ctypes.c_void_p),
        ("arguments", ctypes.c_void_p),
    )


def test_one_launch_over_all_gpus_says_what_runs_where() -> None:
    calls: list[tuple[Any, ...]] = []

    def launched(place: int, count: int, flags: int) -> int:
        found = (LaunchParams * count).from_address(place)
        for item in found:
            shape = [getattr(item, name) for name in ("gx", "gy", "gz", "bx", "by", "bz", "shared")]
            calls.append((item.function, shape, item.stream, item.arguments))
        calls.append((count, flags))
        return 0

    driver = replace(recording([]), several=hostloop.SEVERAL(launched))
    functions, streams = (np.array(numbers, np.uint64) for numbers in ((11, 12, 13), (21, 22, 23)))
    contexts = np.arange(3, dtype=np.uint64)
    launches = hostloop.parameters(functions, streams)
    assert launches[0].nbytes == ctypes.sizeof(LaunchParams)
    assert hostloop.together(driver)(launches[:2], contexts[:2], streams[:2], 2) == 0
    shape = [1, 1, 1, 32, 1, 1, 0]
    assert calls == [(11, shape, 21, None), (12, shape, 22, None), (2, 0)] * 2


def test_a_driver_without_one_launch_over_all_gpus_is_no_failure(pretended: PretendDriver) -> None:
    with Gpus.open(pretended) as devices:
        lacks = [item.what for item in host_side.run(Bench(quick=True, devices=devices)) if isinstance(item, Lack)]
    assert lacks == ["one launch over several GPUs: this driver has none any more"]


def test_threads_with_a_gpu_each_launch_wait_and_meet() -> None:
    calls: list[tuple[str, tuple[int, ...]]] = []
    loop = hostloop.members(recording(calls))
    words, clock = spin.lines(2), np.zeros(2, np.int64)
    assert loop(np.uint64(7), np.uint64(8), np.uint64(9), words, 1, 3, clock) >= 0.0
    launches = spin.WARM + 3
    assert [name for name, _ in calls] == ["use"] + ["launch", "wait"] * launches
    assert words[0] == words[spin.WORDS_PER_LINE] == launches


def test_a_refused_call_of_a_thread_is_negative() -> None:
    refusing = entries()
    refused = hostloop.Entries(
        hostloop.LAUNCH(lambda *arguments: 700), refusing.cooperative, refusing.synchronize, refusing.set_current,
        refusing.record, refusing.await_event,
    )  # fmt: skip
    one, pair = np.uint64(1), np.ones(2, np.uint64)
    assert hostloop.members(refused)(one, one, one, spin.lines(2), 1, 3, np.zeros(2, np.int64)) < 0
    loop = hostloop.rounds_by_waits(refused)
    with pytest.raises(DeviceFault, match="failed with code 700"):
        host_side._seconds(lambda: loop(pair, pair, pair, 2))


def test_no_driver_library_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise OSError("not found")

    monkeypatch.setattr(ctypes, "CDLL", absent)
    with pytest.raises(DeviceFault, match=r"^Direct calls need the driver library 'libcuda.so.1'"):
        hostloop.entries.__wrapped__()


def test_peer_access_comes_back_after_an_error() -> None:
    driver = PretendDriver(3)
    driver.calls["cuMemAlloc"] = lambda size: 1 // 0
    with Gpus.open(driver) as devices:
        peers = set(devices.peers)
        with pytest.raises(ZeroDivisionError):
            list(allocation.run(Bench(quick=True, devices=devices)))
        assert devices.peers == peers


def test_a_pair_that_is_refused_is_no_pair() -> None:
    class Limited(PretendDriver):
        def cuCtxEnablePeerAccess(self, context: int, flags: int) -> tuple[int]:  # noqa: N802
            return (711 if context == 102 else 0,)

    with Gpus.open(Limited(3)) as devices:
        assert devices.pairs() == [(0, 1), (1, 0), (2, 0), (2, 1)]


def test_a_wait_in_vain_is_a_fault() -> None:
    driver = PretendDriver(1)
    with Gpus.open(driver) as devices, devices.scope() as scope:
        fault = scope.words(0, 1)
        sound(devices, 0, fault, "a barrier")
        devices.fill(0, fault, 1, 1)
        with pytest.raises(DeviceFault) as error:
            sound(devices, 0, fault, "a barrier")
    assert str(error.value) == "On GPU 0 a barrier waited in vain and gave up: check its links and neighbours."


def test_a_kernel_that_never_answers_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "TIMEOUT", 0.01)
    with pytest.raises(DeviceFault, match="did not answer round 3"):
        ordering._answered(np.array([2], np.uint32), 3)


def fail(event: object) -> str:
    raise DeviceFault("The GPU is lost.")


def test_everything_is_given_back_after_an_error() -> None:
    driver = PretendDriver(2)
    with Gpus.open(driver) as devices:
        with pytest.raises(DeviceFault), devices.scope() as scope:
            sound(devices, 0, scope.memory(1, 64) + (1 << 50) * scope.stream(0).device, fail(scope.event(1)))
        assert not any(driver.held.values())
        assert devices.pairs() == [(0, 1), (1, 0)]
        assert u64(5).value == 5
