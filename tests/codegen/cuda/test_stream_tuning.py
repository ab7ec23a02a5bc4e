"""Every variant compiles for every architecture without spills; forecasts and remembered decisions."""

from __future__ import annotations

from pathlib import Path

import pytest
from stream_examples import radar, relaxation, yee

from peergrid.codegen.cuda.pass_kernel import PassKernel
from peergrid.codegen.cuda.peer_kernel import PeerKernel
from peergrid.codegen.cuda.persistent_kernel import BARRIER, PersistentKernel
from peergrid.codegen.cuda.stream_parts import Shape
from peergrid.codegen.cuda.tuning import Chip, Report, candidates, choose, forecast
from peergrid.codegen.nvrtc import resources

CHIP = Chip("a chip", "sm_90", 132, 227 * 1024)


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_relaxation_keeps_its_steps_in_registers(arch: str) -> None:
    pytest.importorskip("cuda.core")
    for norm in (None, "u"):
        made = PassKernel(relaxation((2048, 2048)), Shape(8), norm=norm)
        for source in (made.plain.source, PeerKernel(made).plain.source):
            (report,) = resources(source, arch).values()
            assert report.spills == 0
            assert report.registers <= 128


@pytest.mark.nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_100"])
def test_all_kernels_compile(arch: str) -> None:
    pytest.importorskip("cuda.core")
    for problem in (yee((512, 512)), radar((512, 512))):
        made = PassKernel(problem, Shape(4, ahead=2))
        peer, persistent = PeerKernel(made), PersistentKernel(made)
        for program in (made.plain, made.edge, peer.plain, peer.edge, persistent.program):
            assert set(resources(program.source, arch)) == {program.entry}
    assert set(resources(BARRIER, arch)) == {"barrier"}
    made = PassKernel(relaxation((512, 512)), Shape(4), norm="u")
    assert set(resources(made.sums.source, arch)) == {"norm_sum"}


def test_forecast_prefers_what_fits() -> None:
    problem = relaxation((2048, 2048))
    good = forecast(problem, Shape(8), Report(120, 0), CHIP)
    assert good.worth == pytest.approx(8 * 112 / 128)
    assert forecast(problem, Shape(8), Report(240, 0), CHIP).worth < good.worth
    assert forecast(problem, Shape(8), Report(96, 40), CHIP).worth == 0
    assert forecast(problem, Shape(16, 1), Report(60, 0), CHIP).worth == 0


def test_decisions_are_remembered(tmp_path: Path) -> None:
    problem, measured = relaxation((2048, 2048)), list[Shape]()

    def seconds(kernel: PassKernel) -> float:
        measured.append(kernel.shape)
        return abs(kernel.shape.steps - 6.1)

    def decide(folder: Path) -> Shape:
        return choose(problem, problem.grid.box, CHIP, lambda kernel: Report(64 + 8 * kernel.shape.steps, 0), seconds,
                      folder, [Shape(4), Shape(6), Shape(8)])  # fmt: skip

    assert decide(tmp_path) == Shape(6)
    assert len(measured) == 3
    assert decide(tmp_path) == Shape(6)
    assert len(measured) == 3
    with pytest.raises(ValueError, match="fewer steps"):
        choose(problem, problem.grid.box, CHIP, lambda kernel: Report(255, 8), seconds)
    assert len({shape.steps for shape in candidates(problem)}) == 4
