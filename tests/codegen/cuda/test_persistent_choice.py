"""Which kernel makes many passes: chosen by counting, as fast as the best of those that were measured."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from runtime_problems import heat_2d

from peergrid import Box, Grid, Problem, stencil
from peergrid.bench.own import own_waves
from peergrid.bench.problems import jacobi, radar
from peergrid.codegen.cuda import gpu_model
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.persistent_choice import ALONE_ROWS, persistent_kernel, resident
from peergrid.codegen.nvrtc import resources
from peergrid.grid.partition import Partition

RECORD = Path(__file__).parents[3] / "benchmarks/results/h200-x2-edge-rows.json"
H200 = 132  # multiprocessors
MAKE: dict[str, Callable[[int, int], Problem]] = {
    "Jacobi": jacobi.__wrapped__,
    "waves": lambda rows, columns: own_waves.__wrapped__(rows, columns, lossy=False),
    "radar": lambda rows, columns: radar.__wrapped__(rows, columns, 100),
}


@stencil
def damping(u):  # type: ignore[no-untyped-def]
    u.next[0, 0] = 0.9 * u[0, 0]


@cache
def problem_of(name: str, rows: int, columns: int) -> Problem:
    return MAKE[name](rows, columns)


def chosen(problem: Problem, steps: int, devices: int = 1, multiprocessors: int = H200) -> PersistentKernel:
    partition = Partition.over(problem.grid, devices)
    boxes = tuple(partition.owned(device) for device in range(devices))
    kernel = persistent_kernel(problem, steps, boxes, gpu_model.H200, (multiprocessors,) * devices)
    assert kernel is not None
    return kernel


def measured() -> list[Any]:
    rows = json.loads(RECORD.read_text())["rows"]
    return [
        pytest.param(*key, {row["edge_rows"]: row["us_per_step"] for row in group}, id=f"{key[0]}-{key[1]}-{key[2]}")
        for key, group in groupby(rows, key=lambda row: (row["name"], row["depth"], row["shape"][0], row["shape"][1]))
    ]


@pytest.mark.parametrize(("name", "depth", "rows", "columns", "times"), measured())
def test_what_is_chosen_was_fast(name: str, depth: int, rows: int, columns: int, times: dict[int, float]) -> None:
    kernel = chosen(problem_of(name, rows, columns), depth)
    assert kernel.interior
    assert times[kernel.rows] <= 1.16 * min(times.values())


def test_what_is_chosen_loses_little_in_the_mean() -> None:
    lost = []
    for case in measured():
        name, depth, rows, columns, times = case.values
        lost.append(times[chosen(problem_of(name, rows, columns), depth).rows] / min(times.values()) - 1)
    assert sum(lost) / len(lost) <= 0.03


def test_the_smallest_grids_have_one_edge_tile_for_each_block() -> None:
    kernel = chosen(problem_of("Jacobi", 256, 256), 8)
    assert not kernel.interior
    assert kernel.rows in ALONE_ROWS
    tiles = -(-256 // kernel.rows) * -(-256 // kernel.block.columns)
    assert tiles <= H200


def test_devices_with_the_same_share_get_the_kernel_of_one() -> None:
    problem = problem_of("Jacobi", 4096, 4096)
    assert chosen(problem, 8, devices=8).rows == chosen(problem_of("Jacobi", 512, 4096), 8).rows


def test_a_gpu_with_few_multiprocessors_gets_a_kernel_too() -> None:
    assert chosen(problem_of("Jacobi", 1024, 4096), 8, multiprocessors=1).rows in gpu_model.H200.persistent_rows


@pytest.mark.parametrize("device", range(3))
def test_the_slowest_device_decides_wherever_it_is(device: int) -> None:
    """What is damped there takes boundary tiles; the last one is left out, whose tiles beside it are others."""
    rows, columns = 8192, 2048
    grid, first = Grid((rows, columns)), device * rows // 4 + 10
    u, damped = grid.field("u", 0.0), Box((first, 0), (first + rows // 8, columns))
    problem = Problem.of([heat_2d(u, 0.2), damping(u).within(damped)])
    assert chosen(problem, 8, devices=4).rows == 128  # 96 without what is damped


@pytest.mark.nvrtc
@pytest.mark.parametrize("architecture", ["sm_80", "sm_100"])
@pytest.mark.parametrize(("name", "steps"), [("Jacobi", 1), ("Jacobi", 4), ("Jacobi", 8), ("waves", 4), ("radar", 4)])
def test_compilers_leave_room_for_as_many_blocks_as_forecast(name: str, steps: int, architecture: str) -> None:
    pytest.importorskip("cuda.core")
    kernel = chosen(problem_of(name, 1024, 4096), steps)
    (report,) = resources(kernel.program.source, architecture).values()
    blocks = gpu_model.H200.registers // (-(-report.registers // 8) * 8 * kernel.threads)
    assert abs(blocks - resident(kernel)) <= 1
