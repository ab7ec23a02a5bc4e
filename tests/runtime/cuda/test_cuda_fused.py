"""The `peer` strategy as kernels that exchange halos themselves, on a driver that runs on the host."""

from __future__ import annotations

import numpy as np
import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from inorder import InOrderExecutor
from runtime_problems import random_heat, yee_with_absorber

from peergrid import Grid, Options, stencil
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.grid import Boundary, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.commands.buffer import FIRST, FUNCTION
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.fused.chain import Chain
from peergrid.runtime.cuda.fused.peer import lower_fused
from peergrid.runtime.cuda.lowering.kernels import kernels_of
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.schedule import build, layout, one_iteration
from peergrid.schedule.ops import describe
from peergrid.schedule.passes.fused import fuse_exchange
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
DEPTH, STEPS = 3, 15  # two iterations of two passes, and a shorter one


def drifting(reads: Index) -> Problem:
    """A field that takes over something of one other cell."""

    @stencil
    def drift(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = 0.75 * u[0, 0] + 0.25 * u[reads]

    grid = Grid((90, 200))
    return Problem.of(drift(grid.field("u", np.random.default_rng(1).random(grid.shape))))


def run(
    problem: Problem,
    ordinals: tuple[int, ...],
    driver: HostDriver | None,
    norm: str | None = None,
    strategy: StrategyName = "peer",
) -> list[bytes]:
    """Fields and traces after all steps, by fused kernels in whole iterations, and the remaining steps by queues."""
    options = Options(strategy if driver else "serial", depth=DEPTH)
    plan = layout(problem, Partition(problem.grid, (len(ordinals), 1)), options)
    executor = CudaExecutor(plan, STEPS, ordinals, driver=driver, norm=norm) if driver else InOrderExecutor(plan, STEPS)
    load(executor)
    whole = one_iteration(plan, options)
    times, rest = divmod(STEPS - 1, whole.steps)
    executor.execute(whole, times - 1, 0)
    executor.execute(whole, 1, (times - 1) * whole.steps)
    tail = build(plan, options, rest + 1, whole.final)
    executor.execute(tail, 1, times * whole.steps)
    found = [executor.gather(name, tail.final).tobytes() for name in problem.state] + [executor.traces().tobytes()]
    if isinstance(executor, CudaExecutor):
        found += [executor.norms(STEPS).tobytes()] if norm else []
        executor.close()
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("boundary", [("fixed", "fixed"), ("periodic", "fixed"), ("reflecting", "reflecting")])
@pytest.mark.parametrize("devices", [2, 3])
def test_bits(devices: int, boundary: tuple[Boundary, Boundary], seed: int) -> None:
    problem, driver = random_heat((90, 200), boundary), HostDriver(seed=seed)
    assert run(problem, tuple(range(devices)), driver) == run(problem, (0,), None)
    beside = {"fixed": {"edge2d_peer", "layer2d_peer"}, "periodic": {"layer2d_peer"}, "reflecting": {"edge2d_peer"}}
    assert {"stream2d_peer"} | beside[boundary[0]] <= driver.kernels
    assert not driver.live


def test_bits_of_several_stages_with_absorber_and_receivers() -> None:
    problem, driver = yee_with_absorber((150, 330)), HostDriver()
    assert run(problem, (0, 1), driver) == run(problem, (0,), None)
    assert {"stream2d_peer", "edge2d_peer"} <= driver.kernels


@pytest.mark.parametrize(("registers", "room"), [(207, 96), (215, 80)])
def test_tiles_of_strips_keep_to_the_registers_that_interior_tiles_leave(registers: int, room: int) -> None:
    problem, driver = random_heat((90, 200), ("fixed", "fixed")), HostDriver(registers=registers)
    run(problem, (0, 1), driver)
    with_strips = [text for text in driver.texts if "struct StripTiles" in text]
    assert with_strips
    assert all(f"__maxnreg__({room})" in text for text in with_strips)


def test_tiles_of_strips_begin_when_interior_tiles_have() -> None:
    """On each device a word that interior tiles set is awaited in the queue of the strips, behind the launch of
    both.
    """
    problem, options, driver = random_heat((90, 200), ("fixed", "fixed")), Options("peer", depth=DEPTH), HostDriver()
    plan = layout(problem, Partition(problem.grid, (2, 1)), options)
    executor = CudaExecutor(plan, STEPS, (0, 1), driver=driver)
    schedule = one_iteration(plan, options)
    kernel = kernels_of(executor._execution).exchanging(schedule)[0]
    assert isinstance(kernel, PeerKernel)
    lowered = lower_fused(executor._execution, fuse_exchange(plan, schedule), kernel)
    assert isinstance(lowered, Lowered)
    names = {address: name for (_, _, name), address in executor._execution.devices._functions.items()}
    launch = executor._execution.devices.entry("cuLaunchKernel")
    rows = [row for row in lowered.buffers[0].table if row[FUNCTION] == launch]
    found = [(int(row[FIRST + 8]), names[int(row[FIRST])]) for row in rows]
    executor.close()
    assert len(found) == 2 * 2 * 4  # passes of devices: interior tiles, boundary tiles, a word, and strips behind it
    for place in range(0, len(found), 4):
        (interior, first), (boundary, second), (strips, third), (behind, last) = found[place : place + 4]
        assert (first, second, third, last) == ("stream2d_peer", "edge2d_peer", "await_flag", "layer2d_peer")
        assert len({interior, boundary, strips}) == 3
        assert strips == behind


@pytest.mark.parametrize(("resident", "told"), [(3, True), (1000, False)])
def test_one_gpu_twice_where_waiting_tiles_leave_room(resident: int, told: bool) -> None:
    problem, driver = random_heat((90, 200), ("fixed", "fixed")), HostDriver(gpus=1)
    driver.resident = lambda *_, **__: resident  # type: ignore[method-assign]
    options = Options("peer", depth=DEPTH)
    plan = layout(problem, Partition(problem.grid, (2, 1)), options)
    executor = CudaExecutor(plan, STEPS, (0, 0), driver=driver)
    load(executor)
    schedule = build(plan, options, STEPS)
    executor.execute(schedule, 1, 0)
    assert executor.gather("u", schedule.final).tobytes() == run(problem, (0,), None)[0]
    assert any("GPU 0 is used as several devices" in note for note in executor.notes) == told
    executor.close()


def test_devices_that_do_not_reach_each_other_are_served_by_queues() -> None:
    problem, driver = random_heat((90, 200), ("fixed", "fixed")), HostDriver(links=False)
    assert run(problem, (0, 1), driver) == run(problem, (0,), None)
    assert "edge2d_peer" not in driver.kernels


@pytest.mark.parametrize("strategy", ["peer", "persistent"])
@pytest.mark.parametrize(("reads", "linked"), [((0, 0), False), ((-1, 0), True), ((1, 0), True)])
def test_halos_one_way_or_none(reads: Index, linked: bool, strategy: StrategyName) -> None:
    """Neighbours without halos need no links; where halos go one way, what waits for what still has a name."""
    problem, driver = drifting(reads), HostDriver()
    assert run(problem, (0, 1, 2), driver, strategy=strategy) == run(problem, (0,), None)
    assert any(name.endswith("_peer") or name == "persistent2d" for name in driver.kernels) == linked


def test_a_neighbour_is_waited_for_by_name() -> None:
    """What a kernel says when a device in the middle waits for the one above, or for the one below."""
    problem, options = random_heat((90, 200), "fixed"), Options("peer", depth=DEPTH)
    plan = layout(problem, Partition(problem.grid, (3, 1)), options)
    schedule, said_of = fuse_exchange(plan, one_iteration(plan, options)), set[tuple[int, int, str]]()
    executor = CudaExecutor(plan, STEPS, (0, 1, 2), driver=HostDriver())
    kernel = kernels_of(executor._execution).exchanging(schedule)[0]
    assert isinstance(kernel, PeerKernel)
    chain = Chain(executor._execution, schedule, kernel.links, [()] * 3, 0)
    for device in range(3):
        sides = chain.links(device, 0, 0)["side"][0]
        for other, side in ((device - 1, sides[0]), (device + 1, sides[1])):
            if side["local"]:
                said_of.add((device, other, describe(schedule.ops[int(side["op"])])))
    executor.close()
    assert {(device, other) for device, other, _ in said_of} == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert all(text.startswith(f"SignalWait flag {device}:halo from {other} ") for device, other, text in said_of)


@pytest.mark.parametrize("strategy", ["peer", "persistent"])
def test_hosts_keep_pace_with_what_they_launch(strategy: StrategyName) -> None:
    """Marks, by which a host sees how far devices are, lie in the very streams that get its kernels."""
    problem, options = random_heat((90, 200), ("fixed", "fixed")), Options(strategy, depth=DEPTH)
    plan = layout(problem, Partition.over(problem.grid, 2), options)
    executor = CudaExecutor(plan, 60, (0, 1), driver=HostDriver(), submission_threads=2)
    lowered, entry = executor._lower(one_iteration(plan, options)), executor._execution.devices.entry
    kinds = [entry(name) for name in ("cuLaunchKernel", "cuLaunchCooperativeKernel")]
    for submission in executor._submitter.work(lowered).submissions:
        launched = {row[FIRST + 8] for row in submission.commands.table if row[FUNCTION] in kinds}
        for commands in submission.marks or ():
            marked = {row[FIRST + 1] for row in commands.table if row[FUNCTION] == entry("cuEventRecord")}
            assert launched
            assert launched <= marked
    executor.close()
