"""The numbers that go into the stencils from media: by medium, and where they are: numbers, or tables by one field of
whole numbers (see `combinations`), or fields.

Conduction currents are taken half way between two steps. A pole with weight w and rate r (see `domain.Pole`) follows
the recursion of I. Giannakis and A. Giannopoulos, IEEE Trans. Antennas Propag. 62 (2014) 2669: with a = exp(r dt),
z = ε₀ exp(r dt/2) w (a - 1) / (r dt), y = ε₀ w (exp(r dt/2) - 1) / r and S = (ε₀ε + Σ Re(y)) / dt, A = S + σ/2,

    E ← (S - σ/2 - Σ Re(z)) / A · E + curl / A - Σ Re(Q),   Q ← a Q - z (1 - a) / A · E   (E of before the step).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from peergrid.grid import Box, Field
from peergrid.models.fdtd3d.combinations import ByMedium, combinations
from peergrid.models.fdtd3d.constants import EPSILON_0, ETA_0, MU_0
from peergrid.models.fdtd3d.domain import Component, Medium
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.yee import Coefficient, Indexed, PoleState


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


def factors(lattice: Lattice) -> Mapping[Component, Factors]:
    """The factors of all components: numbers where they are the same everywhere, else by the cell's media."""
    used = {component: _used(lattice, component) for component in lattice.domain.live}
    by_media = _by_media(lattice, used)
    return {component: _Placing(lattice, component, numbers, by_media).factors() for component, numbers in used.items()}


def _used(lattice: Lattice, component: Component) -> Mapping[int, Numbers]:
    """The numbers of the media that a component meets where it changes."""
    found = np.flatnonzero(lattice.used(component))
    return {int(index): raw(component, lattice.media[index], lattice.domain.dt) for index in found}


@dataclass(frozen=True, eq=False)
class _ByMedia:
    """The field that says which combination of media a cell has, and each component's medium in each combination."""

    index: Field
    media: Mapping[Component, tuple[int, ...]]


def _by_media(lattice: Lattice, used: Mapping[Component, Mapping[int, Numbers]]) -> _ByMedia | None:
    """One field in place of those of coefficients, where it takes that of two or more; None elsewhere.

    In two dimensions fields are small, and kept as they are.
    """
    alike = {component: _alike(numbers) for component, numbers in used.items()}
    varying = {component: groups for component, groups in alike.items() if len(groups) > 1}
    if lattice.grid.ndim < 3 or sum(_coefficients(used[component]) for component in varying) < 2:
        return None
    found = combinations(lattice, {component: _classes(lattice, groups) for component, groups in varying.items()})
    if found is None:
        return None
    media = {
        component: tuple(varying[component][place][0] for place in places)
        for component, places in found.classes.items()
    }
    return _ByMedia(lattice.grid.field("media", found), media)


def _alike(numbers: Mapping[int, Numbers]) -> list[list[int]]:
    """Media in groups of those whose numbers are the same to the bit."""
    groups: dict[str, list[int]] = {}
    for index, found in numbers.items():
        groups.setdefault(repr(found), []).append(index)
    return list(groups.values())


def _classes(lattice: Lattice, groups: Iterable[list[int]]) -> NDArray[np.intp]:
    """The number of each medium's group; 0 for media that are not in use."""
    found = np.zeros(len(lattice.media), np.intp)
    for place, group in enumerate(groups):
        found[group] = place
    return found


def _coefficients(numbers: Mapping[int, Numbers]) -> int:
    """The coefficients of a component that differ from medium to medium, of poles as many as at least."""
    every = [((n.keep,), (n.factor,), (n.decay, n.feed)) for n in numbers.values()]
    return sum(len({*values}) > 1 for values in zip(*every, strict=True))


@dataclass(frozen=True, eq=False)
class _Placing:
    """The numbers of a component's media, put onto the grid."""

    lattice: Lattice
    component: Component
    numbers: Mapping[int, Numbers]
    by_media: _ByMedia | None

    def factors(self) -> Factors:
        scaled = {i: placed(self.lattice, self.component, self.lattice.media[i]) for i in self.numbers}
        keep = self._coefficient("keep", {i: kept for i, (kept, _) in scaled.items()})
        factor = self._coefficient("factor", {i: factor for i, (_, factor) in scaled.items()})
        return Factors(None if keep == 1.0 else keep, factor, tuple(self._poles()))

    def _coefficient(self, name: str, values: Mapping[int, float], box: Box | None = None) -> Coefficient:
        """A number where all media in use have the same; else looked up or a field, on a box alone if there is one."""
        first, label = next(iter(values.values())), f"{self.component}.{name}"
        if all(value == first for value in values.values()):
            return first
        if self.by_media is not None:
            entries = [values[medium] for medium in self.by_media.media[self.component]]
            return Indexed(self.lattice.grid.table(label, entries), self.by_media.index)
        table = np.zeros(len(self.lattice.media), self.lattice.grid.dtype)
        table[list(values)] = list(values.values())
        return self.lattice.grid.field(label, ByMedium.of(self.lattice, self.component, table), within=box)

    def _poles(self) -> Iterator[PoleState]:
        box = self.lattice.dispersive
        most = max((len(n.decay) for n in self.numbers.values()), default=0)
        if box is not None:
            for place in range(most):
                yield self._pole(place, box & self.lattice.region(self.component))

    def _pole(self, place: int, box: Box) -> PoleState:
        """The memory of a pole, and what moves it on; media without one keep their usual decay, and feed nothing."""
        decay = {i: n.decay[place] for i, n in self.numbers.items() if len(n.decay) > place}
        feed = {i: n.feed[place] if len(n.feed) > place else 0j for i, n in self.numbers.items()}
        usual = next(iter(decay.values()))
        decay = {i: decay.get(i, usual) for i in self.numbers}
        parts: list[tuple[str, Callable[[complex], float]]] = [("real", lambda z: z.real)]
        if any(value.imag for value in (*decay.values(), *feed.values())):
            parts.append(("imaginary", lambda z: z.imag))
        label = f"pole{place + 1}"

        def numbers(name: str, values: Mapping[int, complex]) -> tuple[Coefficient, ...]:
            named = ((f"{label}.{name}.{part}", {i: of(v) for i, v in values.items()}) for part, of in parts)
            return tuple(self._coefficient(one, found, box) for one, found in named)

        memory = (f"{self.component}.{label}.{part}" for part, _ in parts)
        return PoleState(
            tuple(self.lattice.grid.field(name, within=box) for name in memory),
            numbers("decay", decay),
            numbers("feed", feed),
        )
