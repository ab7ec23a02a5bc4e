"""Slabs for GPUs: thinner where rows cost more, at multiples of a norm's blocks, the same bits as even ones."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from runtime_problems import heat_3d, source_3d
from stream_examples import absorbers, relaxation
from stream_examples_3d import diffusion

from peergrid import Grid, Options, Problem
from peergrid.bench.problems import radar
from peergrid.codegen.cuda.choose.balance import balanced, cell_cost, row_costs
from peergrid.codegen.norm import NORM_ROWS
from peergrid.grid import Boundary, Box
from peergrid.grid.partition import Partition
from peergrid.resolve import partition_of
from peergrid.runtime.devices import Devices


def rows(partition: Partition) -> list[int]:
    return [partition.owned(device).shape[0] for device in range(partition.devices)]


def test_slabs_with_an_absorber_are_thinner() -> None:
    found = rows(balanced(absorbers((400, 300), depth=10), 4, 8))
    assert found[0] == found[-1] < found[1] == found[2]
    costs, cuts = row_costs(absorbers((400, 300), depth=10), 8), np.cumsum([0, *found])
    shares = [int(costs[a:b].sum()) for a, b in pairwise(cuts)]
    assert max(shares) - min(shares) <= costs.max()


def test_absorbers_weigh_as_much_as_passes_have_steps() -> None:
    problem = absorbers((400, 2000), depth=10)
    thinner = [rows(balanced(problem, 4, steps))[0] for steps in (1, 2, 4, 8)]
    assert thinner == sorted(thinner, reverse=True)
    assert thinner[0] > thinner[-1]
    single = rows(balanced(problem, 4, 8, block=1))  # eight passes of one step
    assert single == rows(balanced(problem, 4, 1))


def test_rows_that_cost_alike_are_cut_evenly() -> None:
    problem = relaxation((400, 300), "periodic")
    assert len(set(row_costs(problem, 8))) == 1
    assert rows(balanced(problem, 4, 8)) == [100] * 4


@pytest.mark.parametrize(("rows", "devices", "depth"), [(140, 4, 2), (200, 8, 17), (300, 3, 60)])
def test_with_a_norm_slabs_begin_at_multiples_of_its_blocks(rows: int, devices: int, depth: int) -> None:
    """However far halos reach."""
    found = balanced(relaxation((rows, 300)), devices, depth, norm="u")
    assert all(cut % NORM_ROWS == 0 for cut in found.cuts[0][:-1])
    assert len(set(found.cuts[0])) == devices + 1


def test_no_slab_is_thinner_than_two_halos() -> None:
    assert min(rows(balanced(absorbers((70, 300), depth=10), 4, 8))) >= 16


def test_few_rows_are_split_as_usual() -> None:
    problem = relaxation((3, 300))
    assert balanced(problem, 4, 1) == Partition.over(problem.grid, 4)


@pytest.mark.parametrize("shape", [(60,), (60, 9, 9)])
def test_any_number_of_axes(shape: tuple[int, ...]) -> None:
    from peergrid.stencil import stencil

    @stencil
    def relax(u: object) -> None:
        here, there = (0,) * len(shape), (1, *(0,) * (len(shape) - 1))
        u.next[here] = u[here] + u[there]  # type: ignore[attr-defined,index]

    assert sum(rows(balanced(Problem.of(relax(Grid(shape).field("u"))), 3, 2))) == 60


def test_gpus_get_balanced_slabs_unless_a_split_is_asked_for() -> None:
    problem = absorbers((400, 300), depth=10)
    gpus, threads = Devices("cuda", (0, 1, 2)), Devices("cpu", (0, 1, 2))
    assert partition_of(problem, gpus, Options(depth=8)) == balanced(problem, 3, 8)
    assert partition_of(problem, gpus, Options(depth=8, block=1)) == balanced(problem, 3, 8, block=1)
    assert partition_of(problem, gpus, Options(depth=8), (3, 1)) == Partition(problem.grid, (3, 1))
    assert partition_of(problem, threads, Options(depth=8)) == Partition(problem.grid, (3, 1))
    asked = Partition.slabs(problem.grid, (0, 100, 150, 400))
    assert partition_of(problem, gpus, Options(depth=8), asked) is asked


@pytest.mark.parametrize("boundary", ["fixed", "reflecting"])
def test_edges_of_a_cube_cost_nothing(boundary: Boundary) -> None:
    """Interior tiles of 3D passes serve them."""
    assert rows(balanced(diffusion((64, 64, 64), boundary), 4, 2)) == [16] * 4


def test_layers_of_a_cube_cost() -> None:
    grid = Grid((64, 64, 64))
    u, pulse = grid.field("u"), grid.signal("s", np.ones(4))
    layer = Box((0, 0, 0), (6, 64, 64))
    found = rows(balanced(Problem.of([heat_3d(u, 0.1), source_3d(u, pulse).within(layer)]), 4, 2))
    assert found[0] < min(found[1:])


def test_what_was_measured_of_slabs_with_absorbers_follows_from_costs() -> None:
    """Boxes of 2048 rows of a radar, 8 steps a pass: 0.344 ms at an end with 18 rows of absorber, 0.298 ms in the
    middle, 0.12 µs for each row more or less (docs/measurements/boundary-strips.md): as if the end had 380 rows more.
    """
    costs = row_costs(radar(2048, 16384, 1), 8) / 16384
    assert costs[:40].sum() - costs[1000:1040].sum() == pytest.approx((0.344 - 0.298) / 0.12e-3, rel=0.05)


def test_cells_with_more_arithmetic_are_dearer() -> None:
    from peergrid.stencil import stencil

    def cost(terms: int) -> int:
        @stencil
        def summed(u: Any) -> None:
            u.next[0, 0] = sum((0.1 * n * u[1, 0] * u[0, 1] for n in range(1, terms)), u[0, 0])

        problem = Problem.of(summed(Grid((400, 300)).field("u")))
        return cell_cost(problem, [Box((0, 0), (8, 300))], 8)

    assert cost(12) > 2 * cost(4) > 2
