"""The norm of every step under every strategy, on any number of devices, at any depth: the same bits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from runtime_problems import random_heat, yee_with_absorber

from peergrid import Options, Problem, Simulation
from peergrid.bench.problems import noisy
from peergrid.codegen.norm import NORM_ALIGN
from peergrid.grid import Boundary, Grid, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda import executor
from peergrid.runtime.cuda.commands.buffer import CONTEXT, FIRST, FUNCTION, CommandBuffer
from peergrid.runtime.cuda.device import devices as cuda_devices
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.kernels import kernels_of
from peergrid.runtime.cuda.memory.norms import NormMemory, norm_bytes
from peergrid.runtime.devices import Devices
from peergrid.schedule import build, layout, one_iteration
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil import stencil

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
STEPS = 11
CALLS = 21, 1, 9, 14  # of `run`, each of so many steps
SHAPE = (110, 140)
CUTS: dict[int, Index] = {1: (0, 110), 2: (0, 48, 110), 3: (0, 48, 72, 110), 4: (0, 24, 48, 72, 110)}
Boundaries = tuple[Boundary, Boundary]
FIXED: Boundaries = ("fixed", "fixed")


def run(
    problem: Problem, devices: int, options: Options, seed: int = 1, norm: str = "u", registers: int = 200
) -> tuple[bytes, bytes]:
    """The last state and the norms of all steps, in whole iterations and remaining steps."""
    cuts = (*CUTS[devices][:-1], problem.grid.shape[0])
    plan = layout(problem, Partition.slabs(problem.grid, cuts), options, NORM_ALIGN)
    driver = HostDriver(seed=seed, registers=registers)
    executor = CudaExecutor(plan, STEPS, tuple(range(devices)), driver=driver, timeout=60, norm=norm)
    load(executor)
    whole = one_iteration(plan, options)
    times, rest = divmod(STEPS, whole.steps)
    executor.execute(whole, times, 0)
    if rest:
        whole = build(plan, options, rest)
        executor.execute(whole, 1, STEPS - rest)
    found = executor.gather(norm, whole.final).tobytes(), executor.norms(STEPS).tobytes()
    executor.close()
    return found


@cache
def expected(boundary: Boundaries) -> tuple[bytes, bytes]:
    """One device, one step per pass; virtual devices find the same."""
    problem = random_heat(SHAPE, boundary)
    found = run(problem, 1, Options("serial"))
    assert found == on_virtual_devices(problem, "u")
    return found


def on_virtual_devices(problem: Problem, norm: str) -> tuple[bytes, bytes]:
    with Simulation(problem, STEPS, devices="cpu:3", norm=norm) as simulation:
        simulation.run(STEPS)
        return simulation.gather(norm).tobytes(), simulation.norms().tobytes()


@stencil
def decay(u: Any) -> None:
    u.next[0, 0] = 0.75 * u[0, 0]


@stencil
def approach(u: Any) -> None:
    u.next[0, 0] = 0.5 * u[0, 0] - 0.2 * u[1, 0]


def test_updates_that_read_their_own_cell_alone() -> None:
    problem = noisy(Problem.of([decay(Grid(SHAPE).field("u"))]))
    assert run(problem, 2, Options("serial", depth=3)) == on_virtual_devices(problem, "u")


def beside_a_strip() -> Problem:
    """Interior tiles change another field alone."""
    grid = Grid((73, 500))
    u, v = grid.field("u"), grid.field("v")
    return noisy(Problem.of([decay(v), decay(u).within(grid.box.with_axis(1, 0, 24))]))


def edge_without_updates() -> Problem:
    """A boundary strip of one row, which begins a block of sums, changes nothing."""
    return noisy(Problem.of([approach(Grid((73, 137)).field("u"))]))


def edge_with_other_updates() -> Problem:
    """The same strip changes two other fields."""
    grid = Grid((73, 137))
    return noisy(Problem.of([decay(grid.field("v")), decay(grid.field("w")), approach(grid.field("u"))]))


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("problem", [beside_a_strip(), edge_without_updates(), edge_with_other_updates()])
def test_tiles_that_do_not_change_the_field(problem: Problem, depth: int) -> None:
    assert run(problem, 1, Options("serial", depth=depth)) == on_virtual_devices(problem, "u")


@pytest.mark.parametrize(("place", "depth"), [*enumerate([1, 4, 8])])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_bits(strategy: StrategyName, depth: int, place: int) -> None:
    devices = 1 + (list(STRATEGIES).index(strategy) + place) % 4
    assert run(random_heat(SHAPE), devices, Options(strategy, depth=depth)) == expected(FIXED)


@pytest.mark.parametrize(("strategy", "rows"), [("overlap", "periodic"), ("graph", "reflecting"), ("peer", "periodic")])
def test_same_bits_where_rims_have_columns(strategy: StrategyName, rows: Boundary) -> None:
    boundary: Boundaries = (rows, "periodic")
    for seed in range(2):
        assert run(random_heat(SHAPE, boundary), 3, Options(strategy, depth=4), seed) == expected(boundary)


@pytest.mark.parametrize("rows", ["periodic", "fixed"])
@pytest.mark.parametrize("strategy", ["async", "overlap", "graph", "peer"])
def test_same_bits_where_plain_tiles_leave_zones_no_room(strategy: StrategyName, rows: Boundary) -> None:
    """Their tiles are wide then, and in large blocks; the last rows are no whole block of a norm."""
    boundary: Boundaries = (rows, "fixed")
    for seed in range(2):
        options = Options(strategy, depth=4)
        assert run(random_heat(SHAPE, boundary), 3, options, seed, registers=128) == expected(boundary)


@pytest.mark.parametrize(("depth", "block", "columns"), [(2, 1, "fixed"), (8, 3, "periodic")])
@pytest.mark.parametrize("strategy", ["async", "overlap", "peer"])
def test_same_bits_with_several_passes_between_exchanges(
    strategy: StrategyName, depth: int, block: int, columns: Boundary
) -> None:
    boundary: Boundaries = ("periodic", columns)
    assert run(random_heat(SHAPE, boundary), 3, Options(strategy, depth=depth, block=block)) == expected(boundary)


@pytest.mark.parametrize(("depth", "block"), [(1, 1), (4, 1), (4, 2)])
@pytest.mark.parametrize("strategy", ["async", "overlap", "graph", "peer"])
def test_same_bits_of_several_stages(strategy: StrategyName, depth: int, block: int) -> None:
    """What is made beyond a device's own cells keeps the order of the stages."""
    problem = yee_with_absorber(SHAPE)
    expected = on_virtual_devices(problem, "ez")
    for seed in range(2):
        assert run(problem, 3, Options(strategy, depth=depth, block=block), seed, "ez") == expected


@cache
def expected_of_calls(columns: Boundary) -> tuple[bytes, bytes]:
    problem = random_heat((72, 40), ("fixed", columns))
    with Simulation(problem, sum(CALLS), devices="cpu:1", norm="u") as simulation:
        simulation.run(sum(CALLS))
        return simulation.gather("u").tobytes(), simulation.norms().tobytes()


@pytest.mark.parametrize(("depth", "block"), [(1, 1), (2, 2), (3, 1), (5, 2)])
@pytest.mark.parametrize("devices", [1, 2, 3])
@pytest.mark.parametrize("strategy", ["overlap", "async", "threads", "peer", "graph", "persistent"])
def test_same_bits_of_many_passes_in_several_calls(
    monkeypatch: pytest.MonkeyPatch, strategy: StrategyName, devices: int, depth: int, block: int
) -> None:
    """Sums of a pass come late or soon, whatever the passes beside and behind them are, and are there after a call."""
    columns: Boundary = "periodic" if depth == 3 else "fixed"
    problem, options = random_heat((72, 40), ("fixed", columns)), Options(strategy, depth=depth, block=block)
    for seed in range(2):
        monkeypatch.setattr(executor, "CudaDriver", lambda seed=seed: HostDriver(seed=seed))
        gpus, done = Devices("cuda", tuple(range(devices))), 0
        with Simulation(problem, sum(CALLS), devices=gpus, options=options, norm="u") as simulation:
            for steps in CALLS:
                simulation.run(steps)
                done += steps
                found = simulation.gather("u").tobytes(), simulation.norms().tobytes()
                assert found[1] == expected_of_calls(columns)[1][: 8 * done], f"seed {seed}, {done} steps"
        assert found == expected_of_calls(columns)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_same_bits_with_clocks_around_the_operations(monkeypatch: pytest.MonkeyPatch, strategy: StrategyName) -> None:
    problem, options, devices = random_heat(SHAPE), Options(strategy, depth=2), Devices("cuda", (0, 1, 2))
    for seed in range(3):
        monkeypatch.setattr(executor, "CudaDriver", lambda seed=seed: HostDriver(seed=seed))
        with Simulation(problem, STEPS, devices=devices, options=options, norm="u") as simulation:
            simulation.run(4)
            timeline = simulation.trace(STEPS - 4)
            assert (simulation.gather("u").tobytes(), simulation.norms().tobytes()) == expected(FIXED)
        assert timeline.spans


@dataclass(frozen=True)
class Launch:
    """A launch by row: its GPU's context, the number of its pass there, and whether it makes the sums."""

    row: int
    context: int
    number: int
    sums: bool


def launches(execution: ExecutionContext, commands: CommandBuffer) -> Iterator[tuple[Launch, frozenset[Launch]]]:
    """What computes, in the order of issue, and what its stream and events put before it."""
    names = {address: name for (_, _, name), address in execution.devices._functions.items()}
    record, wait = map(execution.devices.entry, ("cuEventRecord", "cuStreamWaitEvent"))
    held: dict[int, frozenset[Launch]] = {}
    recorded: dict[int, frozenset[Launch]] = {}
    passes: Counter[int] = Counter()
    for number, row in enumerate(commands.table.tolist()):
        context = row[CONTEXT]
        name = names[row[FIRST]] if row[FUNCTION] == execution.devices.entry("cuLaunchKernel") else ""
        if row[FUNCTION] == record:
            recorded[row[FIRST]] = held.get(row[FIRST + 1], frozenset())
        elif row[FUNCTION] == wait:
            held[row[FIRST]] = held.get(row[FIRST], frozenset()) | recorded.get(row[FIRST + 1], frozenset())
        elif name == "norm_sum" or "2d" in name:
            stream, launch = row[FIRST + 8], Launch(number, context, passes[context], name == "norm_sum")
            yield launch, held.get(stream, frozenset())
            held[stream] = held.get(stream, frozenset()) | {launch}
            passes[context] += launch.sums


@pytest.mark.parametrize("strategy", sorted(set(STRATEGIES) - {"graph"}))
@pytest.mark.parametrize(("depth", "block"), [(1, 1), (4, 4), (4, 2)])
def test_sums_are_made_before_the_pass_after_the_next(strategy: StrategyName, depth: int, block: int) -> None:
    """Fused passes of `peer` do not wait for those of the pass before: they run beside its tiles."""
    problem, options = random_heat(SHAPE), Options(strategy, depth=depth, block=block)
    plan = layout(problem, Partition.slabs(problem.grid, CUTS[3]), options, NORM_ALIGN)
    driver, schedule = HostDriver(), build(plan, options, 6 * depth)
    executor = CudaExecutor(plan, schedule.steps, (0, 1, 2), driver=driver, norm="u")
    lowered, fused = executor._lower(schedule), kernels_of(executor._execution).exchanging(schedule)[0] is not None
    assert fused == (strategy == "peer" and depth == block)
    for commands in lowered.buffers.values():
        found = dict(launches(executor._execution, commands))
        for launch, before in found.items():
            mine = {other for other in found if other.context == launch.context}
            done = {other.number for other in before & mine if other.sums}
            if launch.sums:
                parts = {other for other in mine if other.number == launch.number and not other.sums}
                assert parts <= before
            else:
                assert done >= set(range(launch.number - 1))
                assert fused <= (launch.number - 1 not in done)
    executor.close()
    assert not driver.live


def test_norms_take_as_much_memory_as_they_are_said_to(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, options = random_heat(SHAPE), Options("peer", depth=4)
    plan = layout(problem, Partition.slabs(problem.grid, CUTS[3]), options, NORM_ALIGN)
    devices, taken = cuda_devices.Devices(HostDriver(), (0, 1, 2)), Counter[int]()
    monkeypatch.setattr(devices, "allocate", lambda device, count: taken.update({device: count}) or 0)
    NormMemory(plan, devices, "u", STEPS)
    devices.close()
    assert norm_bytes(plan, "u", STEPS) == [taken[device] for device in range(3)]
