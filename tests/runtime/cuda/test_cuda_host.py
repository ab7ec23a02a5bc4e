"""The CUDA executor on a driver that runs on the host: same bits as the reference under every strategy and route."""

from __future__ import annotations

from ctypes import CFUNCTYPE, c_int, c_void_p, cast
from dataclasses import replace

import numpy as np
import pytest
from executions import STEPS, carry_through, expected, found, load
from host_driver import COMPILER, HostDriver
from inorder import InOrderExecutor
from line_problems import distant
from runtime_problems import MORE, PROBLEMS, yee_with_absorber

from peergrid import Options
from peergrid.codegen.cuda.choose import shape2d
from peergrid.codegen.cuda.choose.steps import supports
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import groups
from peergrid.errors import DeviceFault, DoesNotFit, UsageError
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.models.fdtd.build import build as radar
from peergrid.models.modelfile import parse
from peergrid.runtime.cuda import executor as module
from peergrid.runtime.cuda.bandwidth import COPIES, LEAST, copy_bandwidth
from peergrid.runtime.cuda.device.faults import error
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import build, layout, one_iteration
from peergrid.schedule.exchange import ORDERS, Order
from peergrid.schedule.ops import Compute, Route, SignalOp
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.schedule.timeline import chrome, exposed_communication

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
SPLIT: dict[int, Index] = {1: (3,), 2: (2, 1), 3: (2, 2, 1)}
SPLITS: dict[int, list[Index]] = {
    1: [(1,), (4,)],
    2: [(1, 1), (3, 1), (1, 3), (2, 2)],
    3: [(1, 1, 1), (3, 1, 1), (2, 2, 1), (1, 1, 2)],
}
WIDE = replace(H200, wide_cells=1, wide_columns=1)
RADAR = """
[grid]
size = [0.3, 0.24]
spacing = 0.005
steps = 40
[[source]]
kind = "line"
position = [0.15, 0.12]
waveform = { kind = "ricker", frequency = 1.5e9 }
[[receiver]]
position = [0.2, 0.15]
fields = ["Ez", "Hx"]
"""


def check(
    name: str,
    split: Index,
    options: Options,
    driver: HostDriver | None = None,
    submission_threads: int | None = 8,
    ordinals: tuple[int, ...] | None = None,
) -> CudaExecutor:
    """Run in whole periods and a rest on the host's driver; compare every bit; return the closed executor.

    submission_threads: for the calls of one host of the schedule (8: one for each GPU here); ordinals: the GPU of each
    device, one of its own by default.
    """
    driver = driver or HostDriver()
    problem = MORE[name]()
    plan = layout(problem, Partition(problem.grid, split), options)
    gpus = tuple(range(plan.devices)) if ordinals is None else ordinals
    executor = CudaExecutor(plan, STEPS, gpus, driver=driver, submission_threads=submission_threads)
    try:
        assert carry_through(executor, options) == expected(name)
    finally:
        executor.close()
    assert not driver.live
    return executor


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_strategy(name: str, strategy: str) -> None:
    axes = PROBLEMS[name]().grid.ndim
    check(name, SPLIT[axes], Options(strategy))


@pytest.mark.parametrize("name", PROBLEMS)
def test_wide_kernels(name: str) -> None:
    """The kernels of large regions, forced on small ones, at every alignment that splits bring about."""
    axes = PROBLEMS[name]().grid.ndim
    for split in SPLITS[axes]:
        check(name, split, Options("overlap"), HostDriver(gpu=WIDE))


@pytest.mark.parametrize("seed", range(1, 9))
@pytest.mark.parametrize("strategy", ["async", "overlap", "peer"])
def test_what_is_made_beside_a_box_has_all_that_it_reads(strategy: StrategyName, seed: int) -> None:
    """A stage is made on ghost cells for the next one, corners included, and may be stored behind their arrival."""
    check("wave_and_slope", (2, 2), Options(strategy), HostDriver(gpu=WIDE, seed=seed))


@pytest.mark.parametrize("gpu", [H200, WIDE, replace(WIDE, thread_bytes=1)], ids=["rows", "wide", "side by side"])
def test_signals_that_differ_from_cell_to_cell(gpu: GpuModel) -> None:
    check("slanted", (2, 1, 2), Options("overlap", depth=2, block=1), HostDriver(gpu=gpu))


def test_signals_that_differ_from_cell_to_cell_in_a_plane() -> None:
    """No kernel of several stages or steps makes them: those know no cell's index."""
    driver = HostDriver(gpu=replace(H200, streamed_cells=1))
    check("slanted_plane", (2, 1), Options("async", depth=4, block=1), driver)
    assert not {"edge2d", "stream2d"} & driver.kernels
    assert not supports(MORE["slanted_plane"](), 2)


@pytest.mark.parametrize("strategy", ["overlap", "graph"])
@pytest.mark.parametrize("name", ["yee", "radius_four", "heat_cube"])
def test_small_regions_beside_large_ones(name: str, strategy: StrategyName) -> None:
    driver = HostDriver(gpu=replace(WIDE, concurrent_cells=1))
    check(name, SPLIT[PROBLEMS[name]().grid.ndim], Options(strategy), driver)


@pytest.mark.parametrize("strategy", ["serial", "threads", "overlap", "graph", "peer"])
@pytest.mark.parametrize("name", [name for name in PROBLEMS if len(groups(PROBLEMS[name]())) > 1])
def test_one_step_of_all_stages_in_one_pass(name: str, strategy: StrategyName) -> None:
    """What large grids have instead of a pass for each stage, on small ones."""
    driver, problem = HostDriver(gpu=replace(H200, streamed_cells=1, streamed_bytes=9)), PROBLEMS[name]()
    check(name, SPLIT[problem.grid.ndim], Options(strategy), driver)
    assert bool({"edge2d", "stream2d"} & driver.kernels) == (shape2d.pass_kernel(problem, 1, least=1) is not None)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_split_and_depth(name: str) -> None:
    axes = PROBLEMS[name]().grid.ndim
    for split in SPLITS[axes]:
        for depth in (2, 3):
            check(name, split, Options("async", depth=depth, block=1))


@pytest.mark.parametrize("route", ["copy", "store", "host"])
@pytest.mark.parametrize("name", ["yee", "heat_cube", "radius_four", "string"])
def test_every_route(name: str, route: Route) -> None:
    axes = PROBLEMS[name]().grid.ndim
    for split in SPLITS[axes]:
        check(name, split, Options("overlap", depth=2, block=1, route=route))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_order(strategy: StrategyName, order: Order) -> None:
    check("heat_cube", (2, 2, 1), Options(strategy, order=order, separate=True))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_order_of_streams(strategy: StrategyName, seed: int) -> None:
    check("yee", (3, 1), Options(strategy, depth=2, block=1), HostDriver(seed=seed))


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize("submission_threads", [1, 2, 5])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_any_order_of_issue(strategy: StrategyName, submission_threads: int, words: bool) -> None:
    """Threads that issue side by side, each now and then held up; GPUs tied by words of memory, and by events."""
    for options in (Options(strategy), Options(strategy, depth=2, block=1), Options(strategy, order="left-right")):
        check("heat_fixed", (5, 1), options, HostDriver(delay=300, words=words), submission_threads)


def test_devices_that_do_not_reach_each_other_go_through_the_host() -> None:
    executor = check("heat_fixed", (3, 1), Options("overlap"), HostDriver(links=False))
    assert any("halos go through host memory" in note for note in executor.notes)
    assert any("'copy' needs peer access" in note for note in executor.notes)


@pytest.mark.parametrize("strategy", ["async", "threads", "graph", "peer", "persistent"])
@pytest.mark.parametrize(("route", "pairs"), [(None, {(0, 1), (1, 2)}), ("copy", {(0, 1), (1, 2)}), ("host", set())])
def test_peer_access_is_granted_where_a_schedule_needs_it(
    strategy: StrategyName, route: Route | None, pairs: set[tuple[int, int]]
) -> None:
    """To neighbours; for flags, too, which lie with those who wait for them."""
    driver, granted = HostDriver(), list[tuple[int, int]]()
    driver.enable_peer = lambda context, peer: granted.append((context - 1000, peer - 1000))  # type: ignore[method-assign]
    check("heat_fixed", (3, 1), Options(strategy, route=route), driver)
    wanted = pairs or ({(0, 1), (1, 2)} if strategy == "peer" else set())
    assert sorted(granted) == sorted([*wanted, *((two, one) for one, two in wanted)])


@pytest.mark.parametrize(("route", "stored"), [(None, True), ("copy", False)])
def test_short_pieces_are_stored_unless_copies_were_asked_for(route: Route | None, stored: bool) -> None:
    driver = HostDriver()
    assert not check("heat_fixed", (1, 3), Options("serial", route=route), driver).notes
    assert ("store_4" in driver.kernels) == stored


@pytest.mark.parametrize(
    ("strategy", "stored"), [("overlap", True), ("async", True), ("threads", True), ("graph", True), ("serial", False)]
)
def test_small_halos_are_stored(strategy: StrategyName, stored: bool) -> None:
    """By one kernel of a device, which is issued sooner than copies."""
    driver = HostDriver()
    check("heat_fixed", (3, 1), Options(strategy), driver)
    assert ("store_4" in driver.kernels) == stored


def test_one_gpu_may_be_named_twice() -> None:
    problem = PROBLEMS["yee"]()
    for strategy in STRATEGIES:
        options = Options(strategy)
        plan = layout(problem, Partition.over(problem.grid, 3), options)
        executor = CudaExecutor(plan, STEPS, (0, 0, 0), driver=HostDriver(gpus=1, links=False))
        load(executor)
        schedule = build(plan, options, STEPS)
        executor.execute(schedule, 1, 0)
        assert executor.gather("ez", schedule.final).tobytes() == expected("yee")[0]["ez"]
        executor.close()


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_eight_devices_on_two_gpus(strategy: StrategyName) -> None:
    for seed in range(2):
        options = Options(strategy, order="left-right" if seed else "all")
        check("heat_fixed", (8, 1), options, HostDriver(gpus=2, seed=seed, delay=100 * seed), 2, (0, 1) * 4)


@pytest.mark.parametrize(("devices", "first", "many"), [(1, 1, 2), (2, 4, 4)])
def test_a_graph_is_captured_once(devices: int, first: int, many: int) -> None:
    """One graph of an iteration and one of many on one GPU; on two a graph for each of them and each of its steps."""
    driver = HostDriver()
    problem = PROBLEMS["heat_fixed"]()
    options = Options("graph")
    plan = layout(problem, Partition.over(problem.grid, devices), options)
    executor = CudaExecutor(plan, 100, tuple(range(devices)), driver=driver)
    whole = one_iteration(plan, options)
    executor.execute(whole, 2, 0)
    executor.execute(whole, 1, 4)
    assert driver.captures == first
    executor.execute(whole, 17, 6)
    assert driver.captures == many
    executor.execute(whole, 17, 40)
    assert driver.captures == many
    executor.close()
    assert not driver.live


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_is_prepared_needs_no_compiler_any_more(strategy: StrategyName, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, problem, options = HostDriver(), PROBLEMS["heat_fixed"](), Options(strategy, depth=2)
    plan = layout(problem, Partition.over(problem.grid, 2), options)
    executor = CudaExecutor(plan, STEPS, (0, 1), driver=driver)
    whole = one_iteration(plan, options)
    issued = list[int]()
    monkeypatch.setattr(module, "issue", lambda devices, commands, subject: issued.append(len(commands.ops)))
    executor.prepare(whole)
    assert issued == [0]  # the loop that issues has been called
    monkeypatch.delattr(HostDriver, "compile")
    executor.execute(whole, 2, 0)
    executor.close()


@pytest.mark.parametrize("failing", ["cuLaunchKernel", "instantiate"])
def test_graphs_are_given_back_where_a_later_one_fails(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    driver, problem, options = HostDriver(), PROBLEMS["heat_fixed"](), Options("graph")
    plan = layout(problem, Partition.over(problem.grid, 1), options)
    executor = CudaExecutor(plan, 100, (0,), driver=driver)
    whole = one_iteration(plan, options)
    executor.execute(whole, 1, 0)
    refused = CFUNCTYPE(c_int)(lambda: 2)  # CUDA_ERROR_OUT_OF_MEMORY
    if failing == "instantiate":
        monkeypatch.setattr(driver, "instantiate", lambda graph: (_ for _ in ()).throw(error(2, "cuGraphInstantiate")))
    else:
        executor._lowered.clear()
        executor._execution.devices._entries[failing] = int(cast(refused, c_void_p).value or 0)
    with pytest.raises(DoesNotFit, match="CUDA_ERROR_OUT_OF_MEMORY"):
        executor.execute(whole, 17, 2)
    assert driver.captures == 2
    executor.close()
    assert not driver.live


def test_a_grid_that_does_not_fit_is_refused_before_anything_is_allocated() -> None:
    problem = PROBLEMS["heat_fixed"]()
    driver = HostDriver(free=(64 << 20) + 4096)
    plan = layout(problem, Partition.over(problem.grid, 2), Options())
    with pytest.raises(DoesNotFit, match=r"needs .* GiB on GPU 0, which has .* free: about \d+ of the 391 cells"):
        CudaExecutor(plan, STEPS, (0, 0), driver=driver)
    assert not driver.live


def test_an_unknown_gpu_is_refused() -> None:
    problem = PROBLEMS["heat_fixed"]()
    plan = layout(problem, Partition.over(problem.grid, 1), Options())
    with pytest.raises(UsageError, match=r"This machine has 2 CUDA devices, numbered from 0; got 5\."):
        CudaExecutor(plan, STEPS, (5,), driver=HostDriver(gpus=2))


def test_a_dropped_signal_is_named() -> None:
    problem = PROBLEMS["heat_fixed"]()
    options = Options("peer")
    plan = layout(problem, Partition.over(problem.grid, 2), options)
    whole = one_iteration(plan, options)
    dropped = next(op.flag for op in whole.ops if isinstance(op, SignalOp))
    broken = replace(whole, ops=tuple(op for op in whole.ops if not isinstance(op, SignalOp) or op.flag != dropped))
    driver = HostDriver()
    executor = CudaExecutor(plan, STEPS, (0, 1), driver=driver, timeout=1)
    with pytest.raises(
        DeviceFault, match=r"'SignalWait flag 1:halo from 0 = 1 in 1:boundary' waited too long.*stood at 0"
    ):
        executor.execute(broken, 1, 0)
    with pytest.raises(DeviceFault, match="failed earlier"):
        executor.execute(whole, 1, 0)
    executor.close()
    assert not driver.live
    check("heat_fixed", (2, 1), options, driver)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ["heat_fixed", "heat_periodic", "heat_reflecting", "radius_four", "one_sided", "yee"])
def test_several_steps_per_pass(name: str, strategy: StrategyName) -> None:
    check(name, (2, 1), Options(strategy, depth=3))
    check(name, (1, 1) if strategy == "threads" else (1, 2), Options(strategy, depth=4, block=2))


@pytest.mark.parametrize("blocks", [3, 500])
@pytest.mark.parametrize("strategy", ["overlap", "graph", "peer"])
def test_plain_and_edge_tiles_together(strategy: StrategyName, blocks: int) -> None:
    """A grid with room for interior tiles, receivers in both kinds, boundary and interior."""
    problem, options = yee_with_absorber((150, 330)), Options(strategy, depth=4)
    digests = []
    for parts in ((1, 1), (2, 1)):
        plan = layout(problem, Partition(problem.grid, parts), options)
        schedule = build(plan, options, 10)
        devices = tuple(range(plan.devices))
        executor = (
            InOrderExecutor(plan, 10)
            if parts == (1, 1)
            else CudaExecutor(plan, 10, devices, driver=HostDriver(blocks=blocks))
        )
        load(executor)
        executor.execute(schedule, 1, 0)
        digests.append(found(executor, schedule.final))
        executor.close()
    assert digests[0] == digests[1]


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_several_steps_per_pass_in_3d(strategy: StrategyName) -> None:
    check("heat_cube", (2, 1, 1), Options(strategy, depth=2))
    check("heat_cube", (1, 1, 1) if strategy in ("threads", "persistent") else (1, 2, 1), Options(strategy, depth=3))
    check("heat_cube", (2, 1, 1), Options(strategy, depth=4, block=2))


@pytest.mark.parametrize("split", [(1, 1, 2), (2, 2, 1)])
def test_any_split_of_a_cube(split: Index) -> None:
    check("heat_cube", split, Options("overlap", depth=4))


def test_several_steps_per_pass_are_refused_without_a_kernel() -> None:
    problem = distant(400)
    options = Options("async", depth=2)
    plan = layout(problem, Partition.over(problem.grid, 1), options)
    executor = CudaExecutor(plan, STEPS, (0,), driver=HostDriver())
    with pytest.raises(UsageError, match="No kernel makes 2 steps of this problem in one pass; use block = 1"):
        executor.execute(one_iteration(plan, options), 1, 0)
    executor.close()


@pytest.mark.parametrize(("name", "place"), [("heat_fixed", (17, 9)), ("heat_cube", (3, 9, 4)), ("string", (28,))])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_value_that_is_not_finite_is_found(name: str, place: Index, value: float) -> None:
    problem = PROBLEMS[name]()
    plan = layout(problem, Partition(problem.grid, SPLIT[problem.grid.ndim]), Options())
    executor = CudaExecutor(plan, STEPS, tuple(range(plan.devices)), driver=HostDriver())
    values = problem.fields["u"].global_array()
    executor.load("u", values, 0)
    assert executor.first_nonfinite("u", 0) is None
    values[place] = value
    executor.load("u", values, 0)
    assert executor.first_nonfinite("u", 0) == place
    executor.close()


def test_radar_with_absorber_and_source() -> None:
    """The radar model: fused sources, layers on all sides, several regions per kernel."""
    built = radar(parse(RADAR))
    plan = layout(built.problem, Partition(built.problem.grid, (1, 1)), Options("serial"))
    reference = InOrderExecutor(plan, built.steps)
    digests = []
    schedule = build(plan, Options("serial"), built.steps)
    for executor in (reference, CudaExecutor(plan, built.steps, (0,), driver=HostDriver())):
        load(executor)
        executor.execute(schedule, 1, 0)
        digests.append(found(executor, schedule.final))
        executor.close()
    assert digests[0] == digests[1]


@pytest.mark.parametrize("strategy", ["overlap", "threads", "peer", "graph"])
def test_a_trace_has_every_computation_and_the_same_bits(strategy: StrategyName) -> None:
    problem, options = PROBLEMS["heat_fixed"](), Options(strategy)
    plan = layout(problem, Partition.over(problem.grid, 3), options)
    executor = CudaExecutor(plan, STEPS, (0, 1, 2), driver=HostDriver())
    load(executor)
    schedule = build(plan, options, STEPS)
    spans = executor.trace(schedule, 0)
    assert executor.gather("u", schedule.final).tobytes() == expected("heat_fixed")[0]["u"]
    executor.close()
    computed = {
        (span.queue.device, schedule.ops[span.op].level) for span in spans if isinstance(schedule.ops[span.op], Compute)
    }
    assert computed == {(device, level) for device in range(3) for level in range(STEPS)}
    assert all(span.end > span.start >= 0 for span in spans)
    assert 0 < exposed_communication(schedule.ops, spans) < 1
    assert chrome(schedule.ops, spans)["traceEvents"]


@pytest.mark.parametrize(
    ("name", "split", "options", "sentence"),
    [
        ("heat_cube", (1, 1, 1), Options("async"), "got 'u' of a 3D grid"),
        ("heat_fixed", (2, 1), Options("async"), "device 1 begins at row 12: use a multiple of 48 rows"),
        ("heat_fixed", (1, 2), Options("async"), r"a split along rows only, got \(1, 2\)"),
    ],
)
def test_norms_that_cannot_be_had_are_refused(name: str, split: Index, options: Options, sentence: str) -> None:
    problem, driver = PROBLEMS[name](), HostDriver()
    plan = layout(problem, Partition(problem.grid, split), options)
    with pytest.raises(UsageError, match=sentence):
        CudaExecutor(plan, STEPS, tuple(range(plan.devices)), driver=driver, norm="u")
    assert not driver.live


def test_the_copy_bandwidth_counts_both_ways_and_everything_is_given_back() -> None:
    driver = HostDriver(free=4 * LEAST)
    found = copy_bandwidth(1, samples=2, driver=driver)
    assert found == pytest.approx(2 * COPIES * LEAST / ((COPIES + 1) * 1e-6))  # a task takes a microsecond there
    assert not driver.live
    assert copy_bandwidth(driver=HostDriver(free=4 * LEAST - 4)) is None
