"""What the catalogue holds: problems, each as runs of some depth under some strategy on some devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import kinds3d
import problems3d
import reduction_problems
import runtime_problems
import stream_problems
import table_problems
from gpu_checks.problems import cube, example, radius_four, relaxed

from catalogue import problems
from peergrid.bench.problems import radar
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.grid import Boundary, Dtype
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem

SERVICE = "service"
"""The case of the small kernels that every run has, which are left out of the others."""
Make = Callable[[], Problem]
DEPTHS = (1, 2, 3)


GPUS = {
    arch: replace(H200, multiprocessors=count).with_block_shared(shared)
    for arch, count, shared in (("sm_80", 108, 163 << 10), ("sm_90", 132, 227 << 10), ("sm_100", 148, 227 << 10))
}
"""A100, H200, B200."""


@dataclass(frozen=True)
class Case:
    """A run whose kernels are recorded; depth: steps between exchanges (None: as many as one pass is worth)."""

    name: str
    make: Make
    depth: int | None = None
    strategy: StrategyName = "overlap"
    devices: int = 1
    norm: str | None = None


def _line() -> Iterator[Case]:
    yield Case("line", partial(problems.line, 1 << 20))
    yield Case("line periodic", partial(problems.line, 1 << 20, "periodic"))
    yield Case("line small", partial(problems.line, 300))


def _plane() -> Iterator[Case]:
    jacobi, square = partial(relaxed, 4096, 4096), (4096, 4096)
    for depth in (1, 2, 4, 8):
        yield Case(f"jacobi {depth}", jacobi, depth)
    yield Case("jacobi periodic", partial(relaxed, 4096, 4096, ("periodic", "fixed")), 8)
    yield Case("heat", partial(problems.heat, square))
    yield Case("heat float64", partial(problems.heat, square, dtype="float64"))
    yield Case("heat reflecting", partial(problems.heat, square, "reflecting"))
    for depth in (1, None):
        said = "one step" if depth else "passes"
        yield Case(f"gray-scott {said}", partial(problems.gray_scott, square), depth)
        yield Case(f"lattice-boltzmann {said}", partial(problems.lattice_boltzmann, (4096, 2048)), depth)
        yield Case(f"radius4 {said}", partial(radius_four, 4096, 4096), depth)
        yield Case(f"squares {said}", partial(problems.squares, square), depth)
        yield Case(f"waves {said}", partial(runtime_problems.yee_on, (2048, 2048), "fixed"), depth)
        yield Case(f"radar {said}", partial(radar, 2048, 2048, 100), depth)
        yield Case(f"gpr {said}", example, depth)
        yield Case(f"acoustic plane {said}", partial(problems.waves, (4096, 4096)), depth)
    yield Case("acoustic plane matched", partial(problems.waves, (4096, 4096), problems.MATCHED), 1)
    yield Case("tti plane", partial(problems.waves, (4096, 4096), epsilon=1e-4, delta=5e-5, tilt=1e-4), 1)


def _fused() -> Iterator[Case]:
    """Norms, and kernels with the exchange in them."""
    jacobi, periodic = partial(relaxed, 4096, 4096), partial(relaxed, 4096, 4096, ("periodic", "fixed"))
    large, small = partial(radar, 2048, 2048, 100), partial(radar, 400, 500, 30)
    yield Case("jacobi norm", jacobi, norm="u")
    yield Case("jacobi norm one step", jacobi, 1, norm="u")
    yield Case("radar norm", large, norm="Ez")
    yield Case("jacobi x2", jacobi, 8, devices=2)
    for name, make in (("jacobi", jacobi), ("jacobi periodic", periodic), ("radar", large)):
        for depth in (1, None):
            said = "one step" if depth else "passes"
            yield Case(f"{name} peer {said}", make, depth, "peer", 2)
    yield Case("jacobi peer norm", jacobi, None, "peer", 2, "u")
    yield Case("jacobi periodic peer norm", periodic, None, "peer", 2, "u")
    for devices in (1, 2):
        yield Case(f"small jacobi persistent x{devices}", partial(relaxed, 1024, 1024), 4, "persistent", devices)
        yield Case(f"small radar persistent x{devices}", small, 4, "persistent", devices)
    yield Case("small jacobi persistent one step", partial(relaxed, 1024, 1024), 1, "persistent", 2)
    yield Case("large jacobi persistent", partial(relaxed, 3072, 4096), 8, "persistent", 2)


def _volume() -> Iterator[Case]:
    made: tuple[tuple[str, Make], ...] = (
        ("heat3d", partial(problems3d.heat_problem, 512)),
        ("heat3d float64", partial(problems3d.heat_problem, 256, "float64")),
        ("yee3d", partial(problems3d.yee_problem, 512)),
        ("layers3d", partial(problems3d.layers_problem, 256)),
        ("maxwell3d", partial(problems3d.maxwell_problem, 256)),
        ("cube", partial(cube, (96, 80, 72))),
    )
    for name, make in made:
        yield Case(f"{name} one step", make, 1)
        yield Case(f"{name} passes", make)
    periodic = partial(problems.yee_periodic, 256)
    yield Case("yee3d periodic one step", periodic, 1)
    yield Case("yee3d periodic passes", periodic)
    yield Case("heat3d two steps", made[0][1], 2)
    for name in ("acoustic", "acoustic_prev", "tti", "box27"):
        yield Case(f"{name} one step", partial(problems3d.CASES[name][0], 256), 1)
        yield Case(f"{name} two steps", partial(problems3d.CASES[name][0], 256), 2)
    by_index = partial(table_problems.media, (256, 256, 256))
    yield Case("media3d one step", by_index, 1)
    yield Case("media3d two steps", by_index, 2)
    yield Case("radar3d one step", partial(problems.radar3d, (384, 256, 256)), 1)
    yield Case("tti at once", partial(problems3d.tti_one_stage_problem, 128), 1)
    shots = ("shot vti", "shot tti", "shot density")
    for name in ("acoustic 16th order", "elastic", "gray-scott", "burgers", "d3q19", *shots):
        yield Case(f"volume {name} one step", partial(kinds3d.KINDS[name], (256, 256, 256)), 1)


def _small() -> Iterator[Case]:
    """Small problems that between them use all of the language."""
    for name, make in runtime_problems.PROBLEMS.items():
        yield Case(f"test {name}", make, 1)
    types: tuple[Dtype, ...] = ("float32", "float64")
    boundaries: tuple[Boundary, ...] = ("fixed", "periodic", "reflecting")
    for name, maker in stream_problems.PLANE.items():
        for depth, boundary, dtype in zip(DEPTHS, boundaries, (*types, types[0]), strict=True):
            yield Case(f"test {name} {depth}", partial(maker, (300, 400), (boundary,) * 2, dtype), depth)
    for depth in DEPTHS:
        yield Case(f"test cube {depth}", partial(stream_problems.cube, (60, 50, 70), boundaries, "float32"), depth)
    for shape in ((5000,), (70, 1300), (20, 9, 300)):
        reduced = partial(reduction_problems.problem, shape, "reflecting", "float32")
        yield Case(f"test reductions {len(shape)}d", reduced, 1)
    yield Case("test line", partial(stream_problems.line, (500,), ("reflecting",), "float64"), 1)


@cache
def cases() -> dict[str, Case]:
    """All cases by their names."""
    every = ([Case(SERVICE, partial(problems.line, 100))], _line(), _plane(), _fused(), _volume(), _small())
    return named(case for part in every for case in part)


def named(listed: Iterable[Case]) -> dict[str, Case]:
    """Cases by their names, of which no two are the same."""
    found = dict[str, Case]()
    for case in listed:
        assert case.name not in found, f"two cases are named '{case.name}'"
        found[case.name] = case
    return found
