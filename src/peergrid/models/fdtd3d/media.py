"""The numbers that go into the stencils from media: by medium, and where they are, numbers or fields on the grid.

Conduction currents are taken half way between two steps. A pole with weight w and rate r (see `domain.Pole`) follows
the recursion of I. Giannakis and A. Giannopoulos, IEEE Trans. Antennas Propag. 62 (2014) 2669: with a = exp(r dt),
z = ε₀ exp(r dt/2) w (a - 1) / (r dt), y = ε₀ w (exp(r dt/2) - 1) / r and S = (ε₀ε + Σ Re(y)) / dt, A = S + σ/2,

    E ← (S - σ/2 - Σ Re(z)) / A · E + curl / A - Σ Re(Q),   Q ← a Q - z (1 - a) / A · E   (E of before the step).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from peergrid.grid import Array, Box, Index
from peergrid.models.fdtd3d.constants import EPSILON_0, ETA_0, MU_0
from peergrid.models.fdtd3d.domain import Component, MediaIds, Medium
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.yee import Coefficient, PoleState


@dataclass(frozen=True)
class Numbers:
    """The numbers of one medium: keep · field + factor · curl; of each pole its decay and its feed, complex.

    factor: of E seconds / F, of H seconds / H, each times metres.
    """

    keep: float
    factor: float
    decay: tuple[complex, ...] = ()
    feed: tuple[complex, ...] = ()


def electric(medium: Medium, dt: float) -> Numbers:
    """Of E. In a perfect conductor it never changes."""
    if medium.stops_electric:
        return Numbers(1.0, 0.0, (0j,) * len(medium.poles), (0j,) * len(medium.poles))
    loss = 0.5 * (medium.conductivity + EPSILON_0 * sum(pole.conductivity for pole in medium.poles))
    storage = EPSILON_0 * medium.permittivity / dt
    decay, feed, back = [], [], 0.0
    for pole in medium.poles:
        whole, half = np.expm1(pole.rate * dt), np.expm1(0.5 * pole.rate * dt)
        through = pole.weight * whole / (pole.rate * dt)
        storage -= EPSILON_0 / dt * (-pole.weight / pole.rate * half).real
        coupling = EPSILON_0 * (1 + half) * through
        back -= coupling.real
        decay.append(complex(1 + whole))
        feed.append(complex(coupling * whole))
    total = storage + loss
    return Numbers((storage - loss + back) / total, 1 / total, tuple(decay), tuple(f / total for f in feed))


def magnetic(medium: Medium, dt: float) -> Numbers:
    """Of H. In a perfect magnetic conductor it never changes."""
    if medium.stops_magnetic:
        return Numbers(1.0, 0.0)
    storage, loss = MU_0 * medium.permeability / dt, 0.5 * medium.magnetic_loss
    return Numbers((storage - loss) / (storage + loss), 1 / (storage + loss))


@dataclass(frozen=True, eq=False)
class Lookup:
    """The values of a field on a box: a number for each medium, at the medium of each cell.

    others: media of single cells that take the place of those in `ids`.
    """

    numbers: Array
    ids: MediaIds
    others: Mapping[Index, int]

    def __call__(self, box: Box) -> Array:
        found: Array = self.numbers[self.ids[box.slices((0,) * box.ndim)]]
        for cell, medium in self.others.items():
            if cell in box:
                found[tuple(i - lo for i, lo in zip(cell, box.lo, strict=True))] = self.numbers[medium]
        return found


@dataclass(frozen=True)
class Factors:
    """The numbers of a component where it changes: keep (None: 1), factor, and the memories of poles in a box."""

    keep: Coefficient | None
    factor: Coefficient
    poles: tuple[PoleState, ...]


def raw(component: Component, medium: Medium, dt: float) -> Numbers:
    """The numbers of a medium for a component."""
    return electric(medium, dt) if component[0] == "E" else magnetic(medium, dt)


def placed(lattice: Lattice, component: Component, medium: Medium) -> tuple[float, float]:
    """The numbers of a medium for a component, in the units of the stencils (see `yee`): keep, and a curl's factor."""
    numbers = raw(component, medium, lattice.domain.dt)
    unit = lattice.scale(component) * (1 / ETA_0 if component[0] == "E" else ETA_0)
    return numbers.keep, numbers.factor * unit


def factors(lattice: Lattice, component: Component) -> Factors:
    """The factors of a component: numbers where they are the same everywhere, else fields."""
    dt, used = lattice.domain.dt, np.flatnonzero(lattice.used(component))
    numbers = {int(index): raw(component, lattice.media[index], dt) for index in used}
    scaled = {i: placed(lattice, component, lattice.media[i]) for i in numbers}
    keep = _field(lattice, component, "keep", {i: kept for i, (kept, _) in scaled.items()})
    factor = _field(lattice, component, "factor", {i: factor for i, (_, factor) in scaled.items()})
    return Factors(None if keep == 1.0 else keep, factor, tuple(_poles(lattice, component, numbers)))


def _field(
    lattice: Lattice, component: Component, name: str, values: Mapping[int, float], box: Box | None = None
) -> Coefficient:
    """A number where all media in use have the same, else a field, on a box alone if there is one."""
    first = next(iter(values.values()))
    if all(value == first for value in values.values()):
        return first
    table = np.zeros(len(lattice.media), lattice.grid.dtype)
    for index, value in values.items():
        table[index] = value
    lookup = Lookup(table, lattice.ids(component), lattice.others.get(component, {}))
    return lattice.grid.field(f"{component}.{name}", lookup, within=box)


def _poles(lattice: Lattice, component: Component, numbers: Mapping[int, Numbers]) -> list[PoleState]:
    box = lattice.dispersive
    most = max((len(n.decay) for n in numbers.values()), default=0)
    if box is None or not most:
        return []
    box = box & lattice.region(component)
    made: list[PoleState] = []
    for place in range(most):
        decay = {i: n.decay[place] for i, n in numbers.items() if len(n.decay) > place}
        feed = {i: n.feed[place] if len(n.feed) > place else 0j for i, n in numbers.items()}
        usual = next(iter(decay.values()))
        decay = {i: decay.get(i, usual) for i in numbers}
        rings = any(value.imag for value in (*decay.values(), *feed.values()))
        parts: list[tuple[str, Callable[[complex], float]]] = [("real", lambda z: z.real)]
        if rings:
            parts.append(("imaginary", lambda z: z.imag))
        label = f"{component}.pole{place + 1}"
        made.append(
            PoleState(
                tuple(lattice.grid.field(f"{label}.{part}", within=box) for part, _ in parts),
                tuple(
                    _field(
                        lattice, component, f"pole{place + 1}.decay.{part}", {i: of(v) for i, v in decay.items()}, box
                    )
                    for part, of in parts
                ),
                tuple(
                    _field(lattice, component, f"pole{place + 1}.feed.{part}", {i: of(v) for i, v in feed.items()}, box)
                    for part, of in parts
                ),
            )
        )
    return made
