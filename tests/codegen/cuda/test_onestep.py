"""One-pass kernels: how stages and cells are grouped, and that NVRTC takes the text for every architecture."""

from __future__ import annotations

from pathlib import Path

import pytest
from runtime_problems import PROBLEMS, heat_2d, source

from peergrid import Box, Grid, Problem, stencil
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.onestep import OneStepKernels
from peergrid.codegen.cuda.onestep.groups import SOURCE, TARGET, groups, scratch_fields
from peergrid.codegen.cuda.onestep.kernels import is_wide
from peergrid.codegen.cuda.onestep.regions import regions
from peergrid.codegen.nvrtc import CompileError, compile_cubin, resources

pytest.importorskip("cuda.core")
ARCHITECTURES = ("sm_80", "sm_90", "sm_100")


@stencil
def ahead(u, v):
    u.next[0, 0] = u[0, 0] + v[-2, 0] + v[2, 0]


@stencil
def smooth(u):
    u.next[0, 0] = 0.5 * (u[-1, 0] + u[1, 0])


def driven() -> Problem:
    grid = Grid((512, 512))
    u = grid.field("u")
    lamp = source(u, grid.signal("s", [1.0, 2.0])).within(Box.cell((100, 200)))
    return Problem.of([heat_2d(u, 0.2), lamp])


def test_a_source_joins_the_stage_before_it() -> None:
    (group,) = groups(driven())
    assert group.stages == (0, 1)
    assert (group.before["u"], group.after["u"]) == (SOURCE, TARGET)


def test_a_field_written_twice_passes_through_scratch() -> None:
    grid = Grid((32, 32))
    u = grid.field("u")
    problem = Problem.of([heat_2d(u, 0.2), smooth(u)])
    first, second = groups(problem)
    assert (first.before["u"], first.after["u"]) == (SOURCE, 0)
    assert (second.before["u"], second.after["u"]) == (0, TARGET)
    assert scratch_fields(problem) == ("u",)


def test_regions_cover_every_cell_once() -> None:
    problem = driven()
    (group,) = groups(problem)
    found = regions(problem, 0, group, problem.grid.box)
    assert sum(region.box.size for region in found) == 512 * 512
    assert not any(a.box.overlaps(b.box) for a in found for b in found if a is not b)
    source = [r for r in found if len(r.variant.members) == 2]
    assert [r.box for r in source] == [Box.cell((100, 200))]


def test_cells_that_keep_their_value_are_in_no_region_where_both_slots_have_it() -> None:
    problem = driven()
    (group,) = groups(problem)
    found = regions(problem, 0, group, problem.grid.box, carries=False)
    assert sum(region.box.size for region in found) == 510 * 510
    edge = Box((0, 0), (1, 512))
    assert not OneStepKernels.of(problem, [(edge,)], carries=False).launches((edge,))
    assert OneStepKernels.of(problem, [(edge,)]).launches((edge,))


def test_stages_before_are_not_made_around_cells_that_never_change() -> None:
    grid = Grid((64, 64))
    u, v = grid.field("u"), grid.field("v")
    inner = Box((8, 8), (56, 56))
    problem = Problem.of([ahead(v, u).within(inner), ahead(u, v).within(inner)])
    edge = Box((0, 0), (8, 64))
    assert not OneStepKernels.of(problem, [(edge,)], carries=False).launches((edge,))
    assert OneStepKernels.of(problem, [(edge,)]).launches((edge,))


def test_the_interior_pays_nothing_for_source_and_edge() -> None:
    problem = driven()
    whole = OneStepKernels.of(problem, [[problem.grid.box]])
    assert len(whole.wide) == 1
    launches = whole.launches([problem.grid.box])
    assert [launch.kernel for launch in launches] == ["cells_0", "wide_0", "wide_0"]  # the largest last
    wide = whole.source[whole.source.index("wide_0") : whole.source.index("cell_0")]
    assert "sample" not in wide
    table = launches[0].table()
    assert list(table["first"]) == sorted(table["first"])


def test_a_step_of_one_kernel_begins_where_the_one_before_ended() -> None:
    grid = Grid((512, 512))
    u = grid.field("u")
    one, two = Problem.of([heat_2d(u, 0.2)]), Problem.of([heat_2d(u, 0.2), smooth(u)])
    turning = "a.target ? gridDim.x - 1 - blockIdx.x : blockIdx.x"
    assert turning in OneStepKernels.of(one, [[grid.box]]).source
    assert turning not in OneStepKernels.of(two, [[grid.box]]).source


def test_small_regions_share_a_launch() -> None:
    grid = Grid((40, 40), boundary="reflecting")
    problem = Problem.of(heat_2d(grid.field("u"), 0.2))
    (group,) = groups(problem)
    assert not any(is_wide(region, grid.box.size, H200) for region in regions(problem, 0, group, grid.box))
    assert len(OneStepKernels.of(problem, [[grid.box]]).launches([grid.box])) == 1


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("name", PROBLEMS)
def test_nvrtc_takes_the_text(name: str, arch: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]()
    text = OneStepKernels.of(problem, [[problem.grid.box]]).source
    assert compile_cubin(text, arch, tmp_path)[:4] == b"\x7fELF"


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_large_regions_spill_nothing(arch: str) -> None:
    problem = driven()
    report = resources(OneStepKernels.of(problem, [[problem.grid.box]]).source, arch)
    assert report["wide_0"].spills == 0
    assert 16 <= report["wide_0"].registers <= 64


def test_a_refused_text_comes_with_the_compilers_words() -> None:
    with pytest.raises(CompileError, match="NVRTC refused a generated kernel"):
        compile_cubin("nonsense", "sm_90")
