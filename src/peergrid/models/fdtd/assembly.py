"""From stencils to the stages of a step: each stage on disjoint boxes, with the absorber confined to its sides.

The absorber costs the interior nothing: its update there is the plain one, and its fields exist on the sides alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Literal

from peergrid.grid import Box, Field, Grid
from peergrid.models.fdtd import yee
from peergrid.models.fdtd.coefficients import Coefficients
from peergrid.models.fdtd.cpml import AbsorberLayer, profiles
from peergrid.models.fdtd.materials import Geometry
from peergrid.models.fdtd.model import Absorber
from peergrid.stencil import Stage, Update

End = Literal["lo", "hi", ""]
Memory = tuple[Field, ...]

MAGNETIC = {
    (False, False): yee.magnetic,
    (True, False): yee.magnetic_x,
    (False, True): yee.magnetic_y,
    (True, True): yee.magnetic_xy,
}
ELECTRIC = {
    (False, False): yee.electric,
    (True, False): yee.electric_x,
    (False, True): yee.electric_y,
    (True, True): yee.electric_xy,
}


@dataclass(frozen=True)
class Frame:
    """The values that the whole assembly shares."""

    grid: Grid
    geometry: Geometry
    layers: tuple[AbsorberLayer, AbsorberLayer]
    absorber: Absorber
    dt: float


@dataclass(frozen=True)
class Fields:
    """The three components on one grid."""

    ez: Field
    hx: Field
    hy: Field

    @classmethod
    def on(cls, grid: Grid) -> Fields:
        return cls(grid.field("Ez"), grid.field("Hx"), grid.field("Hy"))


@dataclass(frozen=True)
class AxisSpan:
    """Indices lo <= i < hi along one axis; `end` says in which absorber, '' in none."""

    lo: int
    hi: int
    end: End = ""


@dataclass(frozen=True)
class StageCuts:
    """The cuts of one stage: the spans along x and y, and the absorber's memory (ψ, 1/κ, b, c) at the ends of each."""

    spans: tuple[tuple[AxisSpan, ...], tuple[AxisSpan, ...]]
    memory: tuple[Mapping[End, Memory], Mapping[End, Memory]]

    def boxes(self) -> Iterator[tuple[Box, Memory, Memory]]:
        """Every box with the fields of the absorber along x and along y; None in the interior."""
        for x, y in product(*self.spans):
            box = Box((x.lo, y.lo), (x.hi, y.hi))
            yield box, self.memory[0].get(x.end, ()), self.memory[1].get(y.end, ())


def magnetic_spans(cells: int, periodic: bool, absorbing: tuple[int, int]) -> tuple[AxisSpan, ...]:
    """The spans of H along an axis of `cells` cells with absorbers of the given depths at its ends."""
    low, high = (0, 0) if periodic else absorbing
    return _proper(AxisSpan(0, low, "lo"), AxisSpan(low, cells - high), AxisSpan(cells - high, cells, "hi"))


def electric_spans(cells: int, periodic: bool, absorbing: tuple[int, int]) -> tuple[AxisSpan, ...]:
    """The spans of Ez. It stays zero on the outer nodes of an axis that is not periodic, as at a conductor."""
    if periodic:
        return (AxisSpan(0, cells),)
    low, high = absorbing
    first, last = max(low, 1), cells - max(high, 1)
    return _proper(AxisSpan(1, first, "lo"), AxisSpan(first, last + 1), AxisSpan(last + 1, cells, "hi"))


def cut(frame: Frame, half: bool) -> StageCuts:
    """The cut of the H stage (`half` true) or of the Ez stage (false)."""
    divide = magnetic_spans if half else electric_spans
    x, y = (
        divide(cells, wraps, part.cells)
        for cells, wraps, part in zip(frame.geometry.cells.shape, frame.geometry.periodic, frame.layers, strict=True)
    )
    return StageCuts((x, y), (_memory(frame, 0, (x, y), half), _memory(frame, 1, (x, y), half)))


def magnetic_stage(f: Fields, k: Coefficients, cut: StageCuts) -> Stage:
    """Hx and Hy from Ez."""
    return Stage(
        tuple(
            MAGNETIC[bool(x), bool(y)](f.ez, f.hx, f.hy, k.ch_x, k.ch_y, *x, *y).within(box)
            for box, x, y in cut.boxes()
        )
    )


def electric_stage(f: Fields, k: Coefficients, cut: StageCuts) -> Stage:
    """Ez from Hx and Hy; without losses the interior reads no `ca`."""
    updates: list[Update] = []
    for box, x, y in cut.boxes():
        if x or y or k.lossy:
            updates.append(ELECTRIC[bool(x), bool(y)](f.ez, f.hx, f.hy, k.ca, k.cb, *x, *y).within(box))
        else:
            updates.append(yee.electric_lossless(f.ez, f.hx, f.hy, k.cb).within(box))
    return Stage(tuple(updates))


def _memory(
    frame: Frame, axis: int, spans: tuple[tuple[AxisSpan, ...], tuple[AxisSpan, ...]], half: bool
) -> dict[End, Memory]:
    """The absorber's fields along one axis, one for each end, on the cells of that end."""
    across = spans[1 - axis]
    profiles = _profiles(frame, axis, half) if any(span.end for span in spans[axis]) else ()
    memory: dict[End, Memory] = {}
    for span in spans[axis]:
        if span.end:
            whole = frame.grid.box.with_axis(1 - axis, across[0].lo, across[-1].hi)
            name = f"psi_{'H' if half else 'E'}.{'xy'[axis]}.{span.end}"
            memory[span.end] = (frame.grid.field(name, within=whole.with_axis(axis, span.lo, span.hi)), *profiles)
    return memory


def _profiles(frame: Frame, axis: int, half: bool) -> Memory:
    geometry = frame.geometry
    curves = profiles(
        frame.layers[axis], frame.absorber, geometry.spacing[axis], geometry.cells.shape[axis], frame.dt, half
    )
    prefix = f"cpml.{'xy'[axis]}.{'H' if half else 'E'}"
    return tuple(
        frame.grid.profile(f"{prefix}.{name}", axis, values[: frame.grid.shape[axis]])
        for name, values in zip(("inverse_kappa", "b", "c"), curves, strict=True)
    )


def _proper(*spans: AxisSpan) -> tuple[AxisSpan, ...]:
    return tuple(span for span in spans if span.lo < span.hi)
