"""The shape of a pass: candidates, a forecast from the compiler's report, and a memory of what was measured.

A forecast needs no GPU: the share of a tile's work that is not redundant, times the smaller of what memory and what
the multiprocessors' resident warps allow. It orders the candidates; a short measurement of the best few decides, and
the decision is remembered on disk, keyed by the device and the text of the kernel.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from peergrid.codegen.cuda.pass_kernel import PassKernel, slots_of
from peergrid.codegen.cuda.stream_parts import Shape
from peergrid.grid import Box
from peergrid.stencil import Problem

FULL_WARPS = 16  # resident warps per multiprocessor from which on more help little
MOST_REGISTERS = 255


@dataclass(frozen=True)
class Chip:
    """What a forecast asks of a device: multiprocessors, shared memory of each in bytes."""

    name: str
    arch: str
    multiprocessors: int
    shared_limit: int


@dataclass(frozen=True)
class Report:
    """The compiler's word on a kernel."""

    registers: int
    spills: int


@dataclass(frozen=True)
class Forecast:
    """A shape with its worth: steps per pass that are not redundant, weighted by how well the device is filled."""

    shape: Shape
    worth: float


def candidates(problem: Problem, steps: int | None = None) -> tuple[Shape, ...]:
    """The shapes worth looking at; steps: how many a pass has to make, if that is given."""
    lengths = (4, 6, 8, 12) if steps is None else (steps,)
    columns = (4, 8, 2) if problem.itemsize == 4 else (2, 4)
    return tuple(
        Shape(length, width, ahead=ahead, rotate=rotate)
        for length in lengths
        for width in columns
        for ahead in (4, 2)
        for rotate in (True, False)
    )


def forecast(problem: Problem, shape: Shape, report: Report, chip: Chip) -> Forecast:
    """The worth of a shape; 0 for one that spills or does not fit."""
    kernel = PassKernel(problem, shape)
    fits = kernel.plain.shared_bytes <= chip.shared_limit
    if report.spills or report.registers > MOST_REGISTERS or kernel.cut.columns <= 0 or not fits:
        return Forecast(shape, 0.0)
    slots = slots_of(report.registers, kernel.plain, chip.multiprocessors, chip.shared_limit)
    filled = min(1.0, slots / chip.multiprocessors / FULL_WARPS)
    return Forecast(shape, shape.steps * kernel.cut.columns / shape.width * filled)


def choose(
    problem: Problem,
    box: Box,
    chip: Chip,
    compiled: Callable[[PassKernel], Report],
    measured: Callable[[PassKernel], float],
    folder: Path | None = None,
    shapes: Sequence[Shape] = (),
    finalists: int = 4,
) -> Shape:
    """The fastest shape for passes over `box`.

    compiled: the compiler's report on a kernel; measured: seconds of one step of it on the device; folder: where
    decisions are remembered between runs. Raises ValueError where no candidate fits the device.
    """
    chosen = tuple(shapes) or candidates(problem)
    place = None if folder is None else folder / f"{_key(problem, box, chip, chosen)}.json"
    if place is not None and place.exists():
        return Shape(**json.loads(place.read_text())["shape"])
    ranked = best(problem, chip, chosen, compiled, finalists)
    if not ranked:
        raise ValueError(f"None of {len(chosen)} shapes fits {chip.name}; offer one with fewer steps or columns.")
    seconds = {shape: measured(PassKernel(problem, shape)) for shape in ranked}
    shape = min(ranked, key=seconds.__getitem__)
    if place is not None:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(json.dumps({"shape": asdict(shape), "seconds_per_step": seconds[shape]}))
    return shape


def best(
    problem: Problem, chip: Chip, shapes: Iterable[Shape], compiled: Callable[[PassKernel], Report], count: int
) -> tuple[Shape, ...]:
    """The shapes of the highest forecasts, best first."""
    found = [forecast(problem, shape, compiled(PassKernel(problem, shape)), chip) for shape in shapes]
    worthy = sorted((f for f in found if f.worth > 0), key=lambda f: -f.worth)
    return tuple(f.shape for f in worthy[:count])


def _key(problem: Problem, box: Box, chip: Chip, shapes: Sequence[Shape]) -> str:
    """A name for the decision; the texts of the kernels stand for the problem."""
    texts = PassKernel(problem, shapes[0])
    facts = (chip.name, chip.arch, box.shape, [asdict(s) for s in shapes], texts.plain.source, texts.edge.source)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:24]
