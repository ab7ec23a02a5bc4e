"""A transmission line that ends at an edge of the grid: a line of voltages and currents on cells beside that edge.

The line has cells of √3 c dt, one cell of which sends the source's wave towards the edge; the other end absorbs. The
edge's field is that of the line's last voltage, the line's last current that around the edge. As long as it runs,

    I_m ← I_m - (k/R) (V_m+1 - V_m),   V_m ← V_m - R k (I_m - I_m-1),   k = 1/√3.

Method: J. G. Maloney, K. L. Shlager and G. S. Smith, IEEE Trans. Antennas Propag. 42 (1994) 289; the absorbing end is
Mur's first condition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Box, Field, Index, Signal
from peergrid.models.fdtd3d.constants import ETA_0
from peergrid.models.fdtd3d.domain import Component, TransmissionLine
from peergrid.models.fdtd3d.lattice import Lattice, electric_of
from peergrid.models.fdtd3d.yee import neighbours
from peergrid.models.waveforms import Doubles
from peergrid.stencil import Update, stencil, where

FED = 5  # the cell at which the wave is sent
LAST = 10  # the cell at the edge
STEP = 1 / sqrt(3)


@dataclass(frozen=True)
class Line:
    """A line on the grid: its cells lie from `cell` - 10 · `back` to `cell`, the edge's own."""

    lattice: Lattice
    source: TransmissionLine
    name: str
    cell: Index
    back: Index
    voltage: Field
    current: Field
    whole: Signal
    half: Signal
    active: Signal

    @classmethod
    def of(cls, lattice: Lattice, source: TransmissionLine, name: str) -> Line:
        cell = lattice.cell(source.node)
        back = _free_way(lattice, cell, name)
        first = tuple(i + LAST * b for i, b in zip(cell, back, strict=True))
        box = Box.cell(cell).hull(Box.cell(first))
        grid = lattice.grid
        domain, drive = lattice.domain, source.drive
        signals = {
            "whole": drive.samples(domain.steps, domain.dt, half=False),
            "half": drive.samples(domain.steps, domain.dt, half=True),
            "active": drive.active(domain.steps, domain.dt).astype(np.float64),
        }
        voltage, current = (grid.field(f"{name}.{what}", within=box) for what in ("voltage", "current"))
        whole, half, active = (grid.signal(f"{name}.{what}", samples) for what, samples in signals.items())
        return cls(lattice, source, name, cell, back, voltage, current, whole, half, active)

    def at(self, place: int) -> Box:
        """A cell of the line."""
        return Box.cell(tuple(i + (LAST - place) * b for i, b in zip(self.cell, self.back, strict=True)))

    def updates(self, fields: Mapping[Component, Field]) -> tuple[Update, ...]:
        """The line's own updates, between the half steps of H and E."""
        loop = [
            (sign, axis, fields[of])
            for sign, along, of in neighbours(electric_of(self.source.axis))
            if (axis := self.lattice.along(along)) is not None
        ]
        made = []
        for place in range(LAST + 1):
            made.append(self._update(place, loop).within(self.at(place)))
        return tuple(made)

    def edge(self, fields: Mapping[Component, Field]) -> Update:
        """The update of the edge's field, after those."""

        @stencil
        def fed(e: Any, voltage: Any, active: Any) -> None:
            at = (0,) * len(self.cell)
            e.next[at] = where(active.now > 0, -voltage[at], e[at])

        return fed(fields[electric_of(self.source.axis)], self.voltage, self.active).within(Box.cell(self.cell))

    def _update(self, place: int, loop: Any) -> Update:
        """One cell: its current, then its voltage from the new currents."""
        back, resistance = self.back, self.source.resistance
        ahead, at = tuple(-b for b in back), (0,) * len(back)
        axes = [(sign, axis) for sign, axis, _ in loop]

        @stencil
        def line(v: Any, i: Any, sources: Any, whole: Any, half: Any, active: Any) -> None:
            def shifted(offset: Index, by: Index) -> Index:
                return tuple(a + b for a, b in zip(offset, by, strict=True))

            def current(of: int, offset: Index) -> Any:
                if of == LAST:
                    total: Any = None
                    for (sign, axis), h in zip(axes, sources, strict=True):
                        before = tuple(-(k == axis) for k in range(len(at)))
                        part = h[at] - h[before]
                        if total is None:
                            total = part if sign > 0 else -part
                        else:
                            total = total + part if sign > 0 else total - part
                    return total * (1 / ETA_0)
                found = i[offset] - STEP / resistance * (v[shifted(offset, ahead)] - v[offset])
                return found + STEP / resistance * half.now if of == FED - 1 else found

            def voltage(of: int, offset: Index) -> Any:
                change = current(of, offset) - current(of - 1, shifted(offset, back))
                found = v[offset] - resistance * STEP * change
                return found + STEP * whole.now if of == FED else found

            mur = (1 - sqrt(3)) / (1 + sqrt(3))
            new = voltage(place, at) if place else mur * (voltage(1, ahead) - v[at]) + v[ahead]
            v.next[at] = where(active.now > 0, new, v[at])
            i.next[at] = where(active.now > 0, current(place, at), i[at])

        return line(self.voltage, self.current, [h for _, _, h in loop], self.whole, self.half, self.active)


def _free_way(lattice: Lattice, cell: Index, name: str) -> Index:
    """The direction from a cell in which there is room for the line."""
    for axis, extent in enumerate(lattice.grid.shape):
        for way in (1, -1):
            if 0 <= cell[axis] + way * LAST < extent:
                return tuple(way * (k == axis) for k in range(lattice.grid.ndim))
    raise UsageError(
        f"Transmission line '{name}' is expected on a grid with {LAST} cells beside it along some axis, got "
        f"{' × '.join(map(str, lattice.domain.shape))} cells; enlarge the grid."
    )


def incident(source: TransmissionLine, steps: int, dt: float) -> tuple[Doubles, Doubles]:
    """Voltage and current of the wave sent: before each step, at the line's last cell, were it to go on there."""
    whole, half = source.drive.samples(steps, dt, half=False), source.drive.samples(steps, dt, half=True)
    cells = max(round(0.667 * steps), LAST + 2)
    v, i = np.zeros(cells), np.zeros(cells)
    found_v, found_i = np.zeros(steps), np.zeros(steps)
    first = second = 0.0
    mur = (1 - sqrt(3)) / (1 + sqrt(3))
    for n in range(steps):
        found_v[n], found_i[n] = v[LAST], i[LAST]
        i[:-1] -= STEP / source.resistance * (v[1:] - v[:-1])
        i[FED - 1] += STEP / source.resistance * half[n]
        v[1:] -= source.resistance * STEP * (i[1:] - i[:-1])
        v[FED] += STEP * whole[n]
        v[0] = mur * (v[1] - first) + second
        first, second = v[0], v[1]
    return found_v, found_i
