"""Thin regions of 3D boxes put together row by row: every cell once, with the blocks that the kernel wants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from runtime_problems import heat_3d, source_3d
from stream_examples_3d import radar

from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.onestep import OneStepKernels
from peergrid.codegen.cuda.onestep.groups import groups
from peergrid.codegen.cuda.onestep.regions import Region, Variant, regions
from peergrid.codegen.cuda.onestep.rows3d import RowRegion, row_regions
from peergrid.codegen.cuda.onestep.wide import THREADS
from peergrid.codegen.cuda.stream3d.remainder import remainders
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.grid import Box, Grid
from peergrid.stencil import Problem, Stage, footprint

SHAPE = (18, 20, 70)


@pytest.mark.parametrize("box", [Box.of(SHAPE), Box((2, 3, 5), (9, 20, 33))])
def test_row_regions_hold_every_cell_once(box: Box) -> None:
    problem = radar(SHAPE)
    for number, group in enumerate(groups(problem)):
        found = regions(problem, number, group, box)
        made = row_regions(found, 4)
        assert sum(r.box.size for row in made for r in row.regions) == sum(r.box.size for r in found)
        held = {cell: region.variant for region in found for cell in region.box.cells()}
        assert all(held[cell] == part.variant for row in made for part in row.regions for cell in part.box.cells())
        assert len(made) < len(found) or box != problem.grid.box


def test_row_regions_of_overlapping_regions_hold_no_other_cells() -> None:
    """What boxes need around them overlaps; between two such regions a source's row is another's."""
    grid = Grid((48, 22, 45), ("fixed", "reflecting", "fixed"))
    u = grid.field("u", 0)
    source = Stage((source_3d(u, grid.signal("s", [1.0])).within(Box.cell((12, 10, 25))),))
    problem, boxes = (
        Problem.of([source, heat_3d(u, 0.1)]),
        ((0, 0, 48, 5), (0, 17, 48, 22), (7, 5, 14, 17), (14, 5, 18, 17)),
    )
    around = [Box((zlo, ylo, 0), (zhi, yhi, 45)) for zlo, ylo, zhi, yhi in boxes]
    found = [region for box in around for region in regions(problem, 0, groups(problem)[0], box, carries=False)]
    held = {(cell, region.variant) for region in found for cell in region.box.cells()}
    made = {(cell, part.variant) for row in row_regions(found, 4) for part in row.regions for cell in part.box.cells()}
    assert made == held


def test_blocks_of_a_table_follow_one_another() -> None:
    gpu = replace(H200, wide_cube=1 << 30)
    problem = radar(SHAPE)
    launches = OneStepKernels.of(problem, [[problem.grid.box]], gpu).launches([problem.grid.box])
    assert [launch.kernel for launch in launches] == ["rows_0", "rows_1"]
    for launch in launches:
        table = launch.table()
        assert list(table["first"]) == sorted(table["first"])
        assert launch.blocks > table["first"][-1]
        cells = sum(box.size for _, box in launch.regions)
        assert launch.blocks * THREADS * 4 >= cells


def test_what_has_most_of_the_cells_has_a_kernel_of_its_own() -> None:
    """Also where the grid is small; the rest shares launches."""
    grid = Grid((40, 40, 80))
    u = grid.field("u", 0)
    problem = Problem.of([heat_3d(u, 0.1)])
    inner, *rest = reversed(OneStepKernels.of(problem, [[grid.box]]).launches([grid.box]))
    assert inner.kernel == "wide_0"
    assert 2 * inner.box.size > grid.box.size
    assert all(launch.kernel != "wide_0" for launch in rest)


def test_narrow_rows_leave_no_thread_idle() -> None:
    """A row of seven columns is two accesses of four cells, one of columns 5 and 6 is one: 128 to a block."""
    for low, high, accesses in ((0, 7, 2), (5, 7, 1), (3, 5, 2)):
        region = RowRegion(Box((0, 0, low), (18, 20, high)), ())
        assert region.blocks(4) == -(-accesses * 18 * 20 // THREADS)


def test_thin_regions_go_with_one_beside_them() -> None:
    """A column between two wider regions costs no access of its own; two wide regions are apart."""
    one, two = (Variant(0, (), (name,), mirrored=False) for name in ("u", "v"))
    columns = ((0, 10, one), (10, 11, two), (11, 50, one), (50, 60, two), (61, 62, one))
    found = [Region(Box((0, 0, low), (3, 3, high)), variant) for low, high, variant in columns]
    parts = sorted(row.parts for row in row_regions(found, 4))
    assert parts == [columns[:2], columns[2:3], columns[3:4], columns[4:]]


def test_a_remainder_shrinks_to_what_is_left() -> None:
    """After the last step it is the boxes themselves; before, what the later steps read; nothing twice."""
    problem = radar(SHAPE)
    rest = (Box((0, 0, 0), (18, 6, 70)), Box((4, 8, 10), (7, 12, 30)))
    (part,) = remainders(problem, 3, rest)
    for later, boxes in zip((2, 1, 0), part.steps, strict=True):
        covered = np.zeros(SHAPE, int)
        for box in boxes:
            covered[box.slices((0, 0, 0))] += 1
        needs = footprint(problem, later).inputs
        expected = np.zeros(SHAPE, int)
        for box in rest:
            for name in problem.state:
                expected[problem.grid.clip(needs[name].apply(box)).slices((0, 0, 0))] = 1
        assert (covered <= 1).all()
        assert (covered >= expected).all()
    assert (covered == expected).all()


def test_what_is_narrow_is_a_remainder_of_its_own() -> None:
    """With room for what its steps in between leave; of one step there is nothing."""
    gpu = replace(H200, narrow_cells=1)
    problem = radar(SHAPE)
    broad, narrow = Box((0, 0, 0), (18, 6, 70)), Box((0, 6, 0), (18, 20, 5))
    one, two = remainders(problem, 2, (broad, narrow), gpu)
    assert one.dense is None
    assert two.dense is not None
    written = [region.box for n, g in enumerate(groups(problem)) for region in regions(problem, n, g, two.steps[0][0])]
    assert all(two.dense.covers(box) for box in written)
    assert two.steps[-1] == (narrow,)
    assert [one.dense for one in remainders(problem, 1, (broad, narrow), gpu)] == [None]


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_nvrtc_takes_the_text(arch: str) -> None:
    pytest.importorskip("cuda.core")
    problem = radar(SHAPE, dtype="float64")
    text = OneStepKernels.of(problem, [[problem.grid.box]]).source
    assert "rows_0" in text
    assert compile_cubin(text, arch)[:4] == b"\x7fELF"
