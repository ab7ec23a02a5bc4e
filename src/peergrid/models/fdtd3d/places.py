"""Yee's scheme on a line of places, on which a plane wave lives (`incident`): its media, its updates, its steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Index
from peergrid.models.fdtd3d.domain import Component
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.media import placed, raw
from peergrid.models.fdtd3d.yee import neighbours
from peergrid.models.waveforms import Doubles

Complex = NDArray[np.complex128]
Values = Mapping[Component, Doubles]
Entering = Callable[[Component, int, Values], None]
"""A function that changes a component on the line after its update at a step."""


@dataclass(frozen=True)
class Memory:
    """A pole at each cell (see `media`)."""

    values: Complex
    decay: Complex
    feed: Complex


@dataclass(frozen=True)
class Term:
    """A difference of a curl: its sign, how far ahead one of its values is, how far back the other, of what."""

    sign: int
    ahead: int
    back: int
    of: Component


@dataclass(frozen=True)
class LineUpdate:
    """The update of one component in some cells: values ← keep · values + factor · (differences) - memories.

    keep, factor: a number, or one for each of these cells.
    """

    component: Component
    keep: float | Doubles
    factor: float | Doubles
    first: int
    stop: int
    terms: tuple[Term, ...]
    memories: tuple[Memory, ...] = ()

    def make(self, line: Values) -> None:
        """The new values in place of the old ones."""
        values = line[self.component][self.first : self.stop]
        total = sum(t.sign * (self._read(line[t.of], t.ahead) - self._read(line[t.of], -t.back)) for t in self.terms)
        found = self.keep * values + self.factor * total
        for memory in self.memories:
            found -= memory.values.real
            memory.values[:] = memory.decay * memory.values + memory.feed * values
        values[:] = found

    def share(self, cell: int, of: Component, read: int) -> float:
        """The gain of a cell for one more of another component in a cell that it reads."""
        factor = self.factor if isinstance(self.factor, float) else float(self.factor[cell - self.first])
        terms = (t for t in self.terms if t.of == of)
        return factor * sum(t.sign * ((cell + t.ahead == read) - (cell - t.back == read)) for t in terms)

    def _read(self, values: Doubles, by: int) -> Doubles:
        return values[self.first + by : self.stop + by]


@dataclass(frozen=True)
class Line:
    """A line of cells for some components of a wave; slopes: places from node to node along x, y and z."""

    lattice: Lattice
    slopes: Index
    components: tuple[Component, ...]

    def terms(self, component: Component) -> Iterator[Term]:
        """The differences of a component's curl."""
        for sign, axis, of in neighbours(component):
            if (slope := self.slopes[axis]) and of in self.lattice.domain.live:
                yield Term(sign, slope, 0, of) if component[0] == "H" else Term(sign, 0, slope, of)

    def update(self, component: Component, media: NDArray[np.intp], edge: int) -> LineUpdate:
        """The update of a component but for so many cells at both ends; media: the index of each cell's."""
        terms, inner = tuple(self.terms(component)), media[edge:-edge]
        numbers = {int(i): placed(self.lattice, component, self.lattice.media[i]) for i in np.unique(inner)}
        given: tuple[float | Doubles, ...] = next(iter(numbers.values()))
        if len(numbers) > 1:
            given = tuple(_table({i: pair[k] for i, pair in numbers.items()})[inner].real for k in (0, 1))
        keep, factor = given
        memories = tuple(self._memories(component, inner))
        return LineUpdate(component, keep, factor, edge, len(media) - edge, terms, memories)

    def _memories(self, component: Component, media: NDArray[np.intp]) -> Iterator[Memory]:
        numbers = {int(i): raw(component, self.lattice.media[i], self.lattice.domain.dt) for i in np.unique(media)}
        for pole in range(max(len(one.decay) for one in numbers.values())):
            there = {i: one for i, one in numbers.items() if len(one.decay) > pole}
            others = dict.fromkeys(numbers, 0j)
            decay = _table(others | {i: one.decay[pole] for i, one in there.items()})[media]
            yield Memory(
                np.zeros(len(media), np.complex128),
                decay,
                _table(others | {i: one.feed[pole] for i, one in there.items()})[media],
            )

    def stepped(
        self, updates: Sequence[LineUpdate], cells: int, kept: tuple[int, int], entering: Entering
    ) -> Mapping[Component, Doubles]:
        """Each component in the cells from the first to the last kept, shape (steps, cells kept).

        E is that before each step, H that half a step later; the line begins empty.
        """
        steps, (first, last) = self.lattice.domain.steps, kept
        line = {component: np.zeros(cells) for component in self.components}
        found = {component: np.zeros((steps, last + 1 - first)) for component in self.components}
        for n in range(steps):
            for letter in "HE":
                for update in (one for one in updates if one.component[0] == letter):
                    component = update.component
                    if letter == "E":
                        found[component][n] = line[component][first : last + 1]
                    update.make(line)
                    entering(component, n, line)
                    if letter == "H":
                        found[component][n] = line[component][first : last + 1]
        return found


def _table(values: Mapping[int, complex]) -> Complex:
    found = np.zeros(max(values) + 1, np.complex128)
    for index, value in values.items():
        found[index] = value
    return found
