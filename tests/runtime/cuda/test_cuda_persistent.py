"""The `persistent` strategy as one kernel on each device, on a driver that runs on the host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from executions import load
from host_driver import COMPILER, HostDriver
from hypothesis import given, settings
from hypothesis import strategies as st
from inorder import InOrderExecutor
from runtime_problems import PROBLEMS, random_heat, wide, yee_with_absorber

from peergrid import Box, Grid, Options, Receiver, stencil
from peergrid.codegen.cuda import persistent_choice
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.norm import NORM_ROWS
from peergrid.errors import DeviceFault
from peergrid.grid import Boundary, Index
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.commands.buffer import FIRST, FUNCTION
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.fused import persistent
from peergrid.runtime.cuda.fused.chain import Chain
from peergrid.runtime.cuda.fused.persistent import Repeated, lower_persistent
from peergrid.runtime.cuda.lowering.kernels import kernels_of
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.schedule import build, layout, one_iteration
from peergrid.schedule.passes.fused import fuse_steps
from peergrid.stencil import Problem

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
DEPTH, STEPS = 3, 16  # two iterations of two passes, one pass, and a step that is left over
PERSISTENT = {"persistent2d"}
BOUNDARIES: list[tuple[Boundary, Boundary]] = [
    ("fixed", "fixed"), ("periodic", "fixed"), ("reflecting", "reflecting"), ("periodic", "reflecting"),
]  # fmt: skip


def run(
    problem: Problem, ordinals: tuple[int, ...], driver: HostDriver | None, depth: int = DEPTH, norm: str | None = None
) -> tuple[list[bytes], list[str]]:
    """Fields and traces after whole iterations, an odd number of passes and a shorter one; and the executor's notes."""
    options = Options("persistent" if driver else "serial", depth=depth)
    plan = layout(problem, Partition(problem.grid, (len(ordinals), 1)), options)
    executor = CudaExecutor(plan, STEPS, ordinals, driver=driver, norm=norm) if driver else InOrderExecutor(plan, STEPS)
    load(executor)
    whole = one_iteration(plan, options)
    times, rest = divmod(STEPS, whole.steps)
    executor.execute(whole, times, 0)
    step, slot = times * whole.steps, whole.final
    for steps in (rest // depth * depth, rest % depth):
        tail = build(plan, options, steps, slot)
        executor.execute(tail, 1, step)
        step, slot = step + steps, tail.final
    assert step == STEPS
    found = [executor.gather(name, slot).tobytes() for name in problem.state] + [executor.traces().tobytes()]
    if isinstance(executor, CudaExecutor):
        executor.close()
        return found, executor.notes
    return found, []


@pytest.mark.parametrize("boundary", [("fixed", "fixed"), ("periodic", "fixed"), ("reflecting", "reflecting")])
@pytest.mark.parametrize(("devices", "blocks"), [(1, 8), (2, 5), (3, 2)])
def test_bits(devices: int, blocks: int, boundary: tuple[Boundary, Boundary]) -> None:
    """On the blocks given, the first two cases take boundary tiles alone."""
    problem, driver = random_heat((60, 200), boundary), HostDriver(seed=devices, blocks=blocks)
    found, notes = run(problem, tuple(range(devices)), driver)
    assert found == run(problem, (0,), None)[0]
    assert driver.kernels >= PERSISTENT
    assert not notes
    assert not driver.live


def graded(boundary: tuple[Boundary, Boundary], dtype: str, offsets: Sequence[Index], shape: Index) -> Problem:
    """A field and two profiles, one along each axis; offsets: where each of the three is read."""
    of_u, of_rows, of_columns = offsets

    @stencil
    def grade(u, rows, columns):  # type: ignore[no-untyped-def]
        u.next[0, 0] = 0.5 * u[0, 0] + 0.3 * rows[of_rows] * u[of_u] + columns[of_columns] * (rows[0, 0] - u[0, 0])

    grid, random = Grid(shape, boundary, dtype), np.random.default_rng(1).random
    rows, columns = (grid.profile(name, axis, random(shape[axis])) for axis, name in enumerate(("rows", "columns")))
    return Problem.of(grade(grid.field("u", random(shape)), rows, columns), [Receiver("r", "u", (shape[0] // 2, 3))])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize(("devices", "blocks", "warps", "rows"), [(2, 16, 16, 32), (3, 3, 8, 16), (2, 3, 4, 128)])
def test_bits_of_profiles(
    devices: int,
    blocks: int,
    warps: int,
    rows: int,
    boundary: tuple[Boundary, Boundary],
    dtype: str,
) -> None:
    """By boundary tiles alone, which have 16 warps, and by such of so many rows beside plain ones.

    128 rows and those around them are more values of a profile than four warps have threads.
    """
    problem = graded(boundary, dtype, ((1, -1), (-2, 1), (1, 2)), (252 if rows == 128 else 90, 200))
    gpu = replace(H200, persistent_warps=(warps,), persistent_rows=(rows,))
    driver = HostDriver(seed=devices, blocks=blocks, gpu=gpu)
    found, notes = run(problem, tuple(range(devices)), driver)
    assert found == run(problem, (0,), None)[0]
    (text,) = (text for text in driver.texts if "persistent2d" in text)
    assert f"__launch_bounds__({32 * warps}" in text
    assert ("InteriorTiles<Interior2D>, Block>" in text) == (warps < 16)
    assert not notes


NEAR = st.tuples(st.integers(-2, 2), st.integers(-2, 2))


@settings(max_examples=12)
@given(
    offsets=st.tuples(NEAR, NEAR, NEAR),
    boundary=st.sampled_from(BOUNDARIES),
    dtype=st.sampled_from(["float32", "float64"]),
    shape=st.tuples(st.integers(36, 100), st.integers(5, 200)),
    devices=st.integers(2, 3),
    blocks=st.sampled_from([2, 5, 16]),
)
def test_bits_of_profiles_read_anywhere(
    offsets: tuple[Index, Index, Index],
    boundary: tuple[Boundary, Boundary],
    dtype: str,
    shape: Index,
    devices: int,
    blocks: int,
) -> None:
    """Rows of the narrowest grids are shorter than a tile, slabs of the lowest just thick enough for their halos."""
    problem, driver = graded(boundary, dtype, offsets, shape), HostDriver(seed=devices, blocks=blocks)
    found, notes = run(problem, tuple(range(devices)), driver)
    assert found == run(problem, (0,), None)[0]
    assert driver.kernels >= PERSISTENT or notes
    assert not driver.live


@pytest.mark.parametrize("ordinals", [(0, 1), (0, 0)])
def test_no_more_blocks_than_the_kernel_was_chosen_for(
    ordinals: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a compiler leaves registers for more, too: devices that share a GPU have half of its multiprocessors."""
    monkeypatch.setattr(HostDriver, "resident", lambda *_, **__: 1000)
    problem, options = random_heat((400, 400)), Options("persistent", depth=DEPTH)
    plan, driver = layout(problem, Partition(problem.grid, (2, 1)), options), HostDriver(blocks=4)
    executor = CudaExecutor(plan, STEPS, ordinals, driver=driver)
    schedule = one_iteration(plan, options)
    kernel, _ = kernels_of(executor._execution).exchanging(schedule)
    assert isinstance(kernel, PersistentKernel)
    lowered = lower_persistent(executor._execution, fuse_steps(plan, schedule), kernel)
    launches = {executor._execution.devices.entry(name) for name in ("cuLaunchKernel", "cuLaunchCooperativeKernel")}
    assert isinstance(lowered, Lowered)
    found = [int(row[FIRST + 1]) for row in lowered.buffers[0].table if row[FUNCTION] in launches]
    executor.close()
    assert found == 2 * [persistent_choice.resident(kernel) * 4 // ordinals.count(0)]


def test_one_run_may_have_both_kinds_of_fused_kernels() -> None:
    """Each counts its own boundary tiles, of which there are different numbers."""
    problem, options = random_heat((60, 200)), Options("peer", depth=DEPTH)
    plan = layout(problem, Partition(problem.grid, (2, 1)), options)
    executors = CudaExecutor(plan, STEPS * 3, (0, 1), driver=HostDriver(blocks=5)), InOrderExecutor(plan, STEPS * 3)
    found = []
    for executor in executors:
        load(executor)
        for number, strategy in enumerate(("peer", "persistent", "peer")):
            schedule = one_iteration(plan, replace(options, strategy=strategy))
            executor.execute(schedule, 2, number * 2 * schedule.steps)
        found.append(executor.gather("u", 0).tobytes())
    executors[0].close()
    assert found[0] == found[1]
    assert not executors[0].notes


def test_bits_of_single_steps() -> None:
    problem, driver = random_heat((60, 200)), HostDriver()
    assert run(problem, (0, 1), driver, depth=1)[0] == run(problem, (0,), None)[0]
    assert driver.kernels == PERSISTENT


@pytest.mark.parametrize("depth", [1, DEPTH])
def test_passes_over_large_boxes_are_kernels_of_their_own(depth: int) -> None:
    gpu = replace(H200, costs=replace(H200.costs, bandwidth=1e6))  # passes take long beside launches
    problem, driver = random_heat((60, 200)), HostDriver(gpu=gpu)
    found, notes = run(problem, (0, 1), driver, depth)
    assert found == run(problem, (0,), None)[0]
    assert any("too few loads" in note for note in notes)
    assert "persistent2d" not in driver.kernels


def test_large_cubes_are_told_that_there_are_no_kernels_for_them() -> None:
    driver = HostDriver()
    problem, options = PROBLEMS["heat_cube"](), Options("persistent", depth=1)
    plan = layout(problem, Partition(problem.grid, (1, 1, 1)), options)
    with closing(CudaExecutor(plan, STEPS, (0,), driver=driver)) as executor:
        _, said = kernels_of(executor._execution).exchanging(one_iteration(plan, options))
    assert "need 2D slabs" in str(said)


def test_bits_of_several_stages_with_absorber_and_receivers() -> None:
    problem, driver = yee_with_absorber((110, 330)), HostDriver()
    assert run(problem, (0, 1), driver)[0] == run(problem, (0,), None)[0]
    assert driver.kernels >= PERSISTENT


def test_bits_where_plain_tiles_change_nothing() -> None:
    """Such tiles end before all that they ask for has come: it must not come into the block's next tile."""
    grid = Grid((96, 232))
    u = grid.field("u", np.random.default_rng(1).random(grid.shape))
    problem, driver = Problem.of(wide(u).within(Box((10, 65), (60, 109)))), HostDriver(blocks=3)
    assert run(problem, (0,), driver)[0] == run(problem, (0,), None)[0]
    assert driver.kernels >= PERSISTENT


@pytest.mark.parametrize(("kibibytes", "blocks"), [(99, 3), (64, 3), (24, 40)])
def test_blocks_of_gpus_with_less_shared_memory(kibibytes: int, blocks: int) -> None:
    """What takes as much as H200s give fits no RTX card; lower tiles do, alone and beside plain ones."""
    gpu = H200.with_block_shared(kibibytes << 10)
    problem, driver = yee_with_absorber((110, 330)), HostDriver(gpu=gpu, blocks=blocks)
    found, notes = run(problem, (0, 1), driver)
    assert found == run(problem, (0,), None)[0]
    assert driver.kernels >= PERSISTENT
    assert 0 < driver.asked <= kibibytes << 10
    assert not notes


def test_many_launches_go_on_where_the_last_one_ended() -> None:
    problem, driver = random_heat((60, 200)), HostDriver(gpu=replace(H200, persistent_passes=6))
    plan = layout(problem, Partition(problem.grid, (2, 1)), Options("persistent", depth=1))
    with closing(CudaExecutor(plan, STEPS, (0, 1), driver=driver)) as executor:
        schedule = one_iteration(plan, Options("persistent", depth=1))
        kernel, _ = kernels_of(executor._execution).exchanging(schedule)
        assert isinstance(kernel, PersistentKernel)
        lowered = lower_persistent(executor._execution, schedule, kernel)
        assert isinstance(lowered, Repeated)
        assert lowered.most == 3  # of two passes
    assert run(problem, (0, 1), driver, depth=1)[0] == run(problem, (0,), None)[0]


@pytest.mark.parametrize(("devices", "resident", "fused"), [(2, 2, True), (2, 1, False), (3, 2, False)])
def test_one_gpu_for_several_devices_where_all_kernels_fit(devices: int, resident: int, fused: bool) -> None:
    """Where there are fewer multiprocessors than devices, none is left for a kernel."""
    problem, driver = random_heat((60, 200)), HostDriver(gpus=1, blocks=resident)
    found, notes = run(problem, (0,) * devices, driver)
    assert found == run(problem, (0,), None)[0]
    assert any("fits these devices" in note for note in notes) != fused


@pytest.mark.parametrize(("make", "said"), [
    (lambda problem: run(problem, (0, 1), HostDriver(links=False)), "reach each other"),
    (lambda problem: run(problem, (0, 1), HostDriver(), norm="u"), "no norms"),
])  # fmt: skip
def test_what_it_does_not_serve_is_said(make: Callable[[Problem], tuple[list[bytes], list[str]]], said: str) -> None:
    problem = random_heat((4 * NORM_ROWS, 200))
    found, notes = make(problem)
    assert found == run(problem, (0,), None)[0]
    assert any(said in note for note in notes)


def test_a_signal_that_never_comes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    links = Chain.links

    def mute(self: Chain, device: int, number: int, op: int) -> object:
        found = links(self, device, number, op)
        if device == 2:
            found["side"]["remote"][0, 0] = self.execution.flag(persistent.MET) + 64  # counts where nobody looks
        return found

    monkeypatch.setattr(Chain, "links", mute)
    problem, options = random_heat((90, 200)), Options("persistent", depth=DEPTH)
    plan = layout(problem, Partition(problem.grid, (3, 1)), options)
    executor = CudaExecutor(plan, STEPS, (0, 1, 2), driver=HostDriver(), timeout=2e-5)
    load(executor)
    with pytest.raises(DeviceFault, match=r"'SignalWait flag 1:halo from 2 at the high end .*'SignalOp .* on device 2"):
        executor.execute(one_iteration(plan, options), 2, 0)
    executor.close()
