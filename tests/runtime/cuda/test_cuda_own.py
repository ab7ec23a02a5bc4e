"""Kernels that are no stencils', on GPUs that the host stands for: the bits of virtual devices."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from host_driver import COMPILER, HostDriver
from scipy import sparse

from peergrid import Options
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.codegen.nvrtc import resources
from peergrid.errors import DeviceFault, DoesNotFit, UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.devices import Devices
from peergrid.runtime.own_kernel import Place
from peergrid.runtime.trace.replay import check_recorded
from peergrid.schedule import build, layout
from peergrid.schedule.strategies import STRATEGIES
from peergrid.sparse import CsrMatrix, Products, RangeProducts, SlicedMatrix, power_iteration
from peergrid.sparse.gpus import GpuProduct
from peergrid.sparse.problem import products
from peergrid.spins import Relaxation, random_graph
from peergrid.spins.gpu_kernel import GpuHalfStep
from peergrid.spins.problem import FIELD, half_steps
from peergrid.spins.rule import first_words, thresholds

host = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
RANDOM = np.random.default_rng(3)
GRAPH = random_graph(90 * 32, 3)


def banded(n: int, dtype: str) -> CsrMatrix:
    """Rows of none to some hundred nonzeros near the diagonal, one of thousands: more than fit a round."""
    found = sparse.random_array((n, n), density=0.04, rng=RANDOM, format="coo")
    near = np.abs(found.coords[1] - found.coords[0]) < 300
    entries = found.data[near], (found.coords[0][near], found.coords[1][near])
    dense = sparse.coo_array(entries, shape=(n, n)).tolil()
    dense[n // 3] = RANDOM.random(n)
    dense[5:40] = 0
    return CsrMatrix.of(dense.astype(dtype))


MATRICES = {dtype: banded(2500, dtype) for dtype in ("float32", "float64")}


def place(count: int, driver: HostDriver) -> Place:
    return Place(Devices("cuda", tuple(range(count))), driver=driver)


def on_processors(matrix: CsrMatrix, vector: Any, count: int) -> bytes:
    with Products(matrix, vector, "cpu:1") as run:
        run.advance(count)
        return run.vector().tobytes()


@host
@pytest.mark.parametrize("kind", ["rows", "slices"])
@pytest.mark.parametrize("dtype", MATRICES)
def test_products_have_the_bits_of_virtual_devices(dtype: str, kind: str) -> None:
    rows = MATRICES[dtype]
    matrix = SlicedMatrix.of(rows) if kind == "slices" else rows
    vector = RANDOM.standard_normal(rows.rows).astype(dtype)
    for count in (1, 3):
        driver = HostDriver()
        with Products(matrix, vector, place(count, driver)) as found:
            found.advance(3)
            assert found.vector().tobytes() == on_processors(rows, vector, 3)
        assert not driver.live


@host
def test_the_power_iteration_has_the_same_bits() -> None:
    matrix = CsrMatrix.of(np.diag(np.arange(1.0, 41.0)) + 0.01)
    alone, found = (power_iteration(matrix, where, 1e-3) for where in ("cpu:1", place(2, HostDriver())))
    assert (found.value, found.products) == (alone.value, alone.products)
    assert found.vector.tobytes() == alone.vector.tobytes()


@host
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_strategy_and_route_leaves_the_same_bits(strategy: Any) -> None:
    """Whole vectors, words and all, go to every device: by the route that the strategy takes, or through the host."""
    matrix, vector = MATRICES["float64"], RANDOM.standard_normal(2500)
    with Relaxation(GRAPH, 0.4, 11, "cpu:1") as run:
        run.advance(5)
        wanted = run.sha256()
    for links, route in ((True, None), (True, "store"), (False, None)):
        driver = HostDriver(links=links)
        options = Options(strategy, route=route)
        with Products(matrix, vector, place(3, driver), options) as found:
            found.advance(5)
            assert found.vector().tobytes() == on_processors(matrix, vector, 5)
            assert links or any("cannot reach the memory" in note for note in found.notes)
        with Relaxation(GRAPH, 0.4, 11, place(3, driver), options) as relaxed:
            relaxed.advance(5)
            assert relaxed.sha256() == wanted
        assert not driver.live


@host
@pytest.mark.parametrize("kind", ["rows", "slices"])
@pytest.mark.parametrize("dtype", MATRICES)
def test_one_range_of_addresses_leaves_the_same_bits(dtype: str, kind: str) -> None:
    """Of 2500 numbers on pages of 4096 bytes: some pages have rows of two devices."""
    rows = MATRICES[dtype]
    matrix = SlicedMatrix.of(rows) if kind == "slices" else rows
    vector = RANDOM.standard_normal(rows.rows).astype(dtype)
    for count in (1, 3):
        driver = HostDriver()
        with RangeProducts(matrix, vector, place(count, driver)) as found:
            found.advance(2)
            found.advance(3)
            assert found.vector().tobytes() == on_processors(rows, vector, 5)
            found.set(vector)
            found.advance(1)
            assert found.vector().tobytes() == on_processors(rows, vector, 1)
        assert not driver.live


@host
def test_devices_read_what_they_were_granted_and_no_more() -> None:
    """A chain whose rows read one number on each side; with the right to none of the others' pages that is a stray."""
    chain = CsrMatrix.of(sparse.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(2048, 2048)))
    vector, driver = RANDOM.standard_normal(2048), HostDriver()
    with RangeProducts(chain, vector, place(2, driver)) as found:
        found.advance(4)
        assert found.vector().tobytes() == on_processors(chain, vector, 4)
    for reach in ((0, 0), (0, 2047)):
        with (
            RangeProducts(chain, vector, place(2, driver), reach) as stray,
            pytest.raises(DeviceFault, match="CUDA_ERROR_ILLEGAL_ADDRESS"),
        ):
            stray.advance(1)
    assert not driver.live


def test_one_range_asks_for_gpus_that_reach_each_other() -> None:
    with pytest.raises(UsageError, match="GPUs of one process are expected here, got cpu:2"):
        RangeProducts(MATRICES["float64"], np.ones(2500), "cpu:2")
    with pytest.raises(UsageError, match="GPU 0 does not reach GPU 1: let each have a copy"):
        RangeProducts(MATRICES["float64"], np.ones(2500), place(2, HostDriver(links=False)))
    with pytest.raises(UsageError, match="A vector of 2500 numbers is expected"):
        RangeProducts(MATRICES["float64"], np.ones(2499), place(2, HostDriver()))


@host
@pytest.mark.parametrize("strategy", ["async", "overlap", "peer"])
def test_queues_did_what_was_proved(strategy: Any) -> None:
    first = first_words(GRAPH.words, 11)
    problem, options = half_steps(first), Options(strategy)
    plan = layout(problem, Partition.over(problem.grid, 3), options)
    kernel = GpuHalfStep(GRAPH, thresholds(0.4), 11, problem)
    with closing(CudaExecutor(plan, 0, (0, 1, 2), driver=HostDriver(), own=kernel)) as executor:
        for slot in (0, 1):
            executor.load(FIELD, first.view(np.float32), slot)
        schedule = build(plan, options, 2, 0)
        executor.execute(schedule, 1, 0)
        found = executor.record(schedule, 2, 2)
    assert len(found.log.iterations) == 2
    assert [str(fault) for fault in check_recorded(plan, found)] == []


@host
def test_tables_count_in_the_memory_that_is_needed() -> None:
    with pytest.raises(DoesNotFit, match="free"):
        Products(MATRICES["float64"], np.ones(2500), place(2, HostDriver(free=300_000)))


def test_passes_of_several_steps_are_refused() -> None:
    with pytest.raises(UsageError, match=r"one step between two exchanges, got depth = 2\."):
        Products(MATRICES["float64"], np.ones(2500), "cpu:2", Options("async", 2))


@pytest.mark.nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_kernels_compile_without_spills(architecture: str) -> None:
    pytest.importorskip("cuda.core")
    for matrix in MATRICES.values():
        source = GpuProduct(matrix, products(matrix, np.ones(2500))).program.source
        found = resources(expanded(source), architecture)
        assert {name: one.spills for name, one in found.items()} == {"multiply_rows": 0, "multiply_slices": 0}
    with Relaxation(GRAPH, 0.4) as run:
        source = GpuHalfStep(GRAPH, thresholds(0.4), 11, run.layout.problem).program.source
    assert resources(expanded(source), architecture)["half_step_pass"].spills == 0
