"""Yee's scheme as stencils, generated over axes: the curl of any components, dispersive media, and stretched axes.

Components are kept times the length of the edge they lie on, H also times η₀, so that a curl is a difference of plain
differences and one factor serves it whatever the spacings are (a, b, c cyclic):

    e_a = d_a E_a,  h_a = η₀ d_a H_a,  e_a ← ca e_a + cb (δ_b h_c - δ_c h_b),  h_a ← da h_a + db (δ_c e_b - δ_b e_c)

Differences of h are taken backwards, those of e forwards. Axes along which nothing varies have no difference. In an
absorber what a stretched axis changes is added afterwards, axis by axis, so that most cells have one and the same
update.
Method: Yee, IEEE Trans. Antennas Propag. 14 (1966) 302; for stretched axes see `absorber`, for poles `dispersion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from peergrid.grid import Box, Field, Table
from peergrid.models.fdtd3d.domain import AXES, Component
from peergrid.stencil import Cell, Update, stencil


class Indexed(NamedTuple):
    """A coefficient that is looked up: a number for each combination of media, and the field that says which."""

    table: Table
    number: Field


Coefficient = Indexed | Field | float


@dataclass(frozen=True)
class Stretched:
    """A derivative within an absorber: its memories, one for each stretch, and the numbers that move them on.

    gain, decay, feed: profiles along the axis, one for each stretch; of stretches that are added up there is one gain.
    """

    added: bool
    memory: tuple[Field, ...]
    gain: tuple[Field, ...]
    decay: tuple[Field, ...]
    feed: tuple[Field, ...]


@dataclass(frozen=True)
class PoleState:
    """The memory of one pole, real part and, unless it only decays, imaginary part, with its decay and its feed."""

    memory: tuple[Field, ...]
    decay: tuple[Coefficient, ...]
    feed: tuple[Coefficient, ...]


@dataclass(frozen=True)
class Difference:
    """A term of a curl: the difference of a field along an axis of the grid, with its sign."""

    sign: int
    axis: int
    of: Field


@dataclass(frozen=True)
class Curl:
    """The update of one component: target ← keep · target + factor · (differences), less its poles' memories.

    keep None: 1.
    """

    target: Field
    keep: Coefficient | None
    factor: Coefficient
    differences: tuple[Difference, ...]
    poles: tuple[PoleState, ...] = ()


def neighbours(component: Component) -> tuple[tuple[int, int, Component], ...]:
    """The differences of a component's curl: sign, axis (0 to 2) along which, of which component."""
    own = AXES.index(component[1])
    b, c = (own + 1) % 3, (own + 2) % 3
    if component[0] == "E":
        return (1, b, _named("H", c)), (-1, c, _named("H", b))
    return (1, c, _named("E", b)), (-1, b, _named("E", c))


def _named(letter: str, axis: int) -> Component:
    found: Component = f"{letter}{AXES[axis]}"  # type: ignore[assignment]
    return found


def advance(name: str, box: Box, curls: Sequence[Curl], ahead: bool) -> Update:
    """The update of some components in a box; ahead: differences are taken forwards."""

    @stencil
    def step(given: Any) -> None:
        for curl, (target, keep, factor, sources, poles) in zip(curls, given, strict=True):
            at = (0,) * box.ndim
            total = None
            for term, u in zip(curl.differences, sources, strict=True):
                total = _signed(total, term.sign, _difference(u, term.axis, ahead))
            kept = target[at] if curl.keep is None else here(keep) * target[at]
            value = kept + here(factor) * total
            for memory, decay, feed in poles:
                value = value - memory[0][at]
                _remember(memory, decay, feed, target[at])
            target.next[at] = value

    step.function.__name__ = name
    return step([_arguments(curl) for curl in curls]).within(box)


def stretch(name: str, box: Box, curl: Curl, term: Difference, layer: Stretched, ahead: bool) -> Update:
    """The change of a component by a stretched axis, after its update: factor · (derivative - difference)."""

    @stencil
    def step(target: Any, factor: Any, u: Any, memory: Any, gain: Any, decay: Any, feed: Any) -> None:
        at = (0,) * box.ndim
        plain = _difference(u, term.axis, ahead)
        change = here(factor) * (_stretched(plain, memory, gain, decay, feed, layer.added) - plain)
        target.next[at] = _signed(target[at], term.sign, change)

    step.function.__name__ = name
    return step(curl.target, curl.factor, term.of, layer.memory, layer.gain, layer.decay, layer.feed).within(box)


def more(name: str, box: Box, curl: Curl, term: Difference, share: float, ahead: bool) -> Update:
    """The change of a component by a share of one difference of its curl, after its update."""

    @stencil
    def step(target: Any, factor: Any, u: Any, share: Any) -> None:
        at = (0,) * box.ndim
        change = share * (here(factor) * _difference(u, term.axis, ahead))
        target.next[at] = _signed(target[at], term.sign, change)

    step.function.__name__ = name
    return step(curl.target, curl.factor, term.of, share).within(box)


def _arguments(curl: Curl) -> Any:
    sources = [term.of for term in curl.differences]
    poles = [(p.memory, p.decay, p.feed) for p in curl.poles]
    return curl.target, 1.0 if curl.keep is None else curl.keep, curl.factor, sources, poles


def here(value: Any) -> Any:
    """A coefficient in a stencil: what is looked up for the cell, a field's value in it, or a number."""
    if isinstance(value, tuple):
        table, index = value
        return table[here(index)]
    return value[(0,) * value.described.grid.ndim] if isinstance(value, Cell) else value


def _difference(u: Any, axis: int, ahead: bool) -> Any:
    ndim = u.described.grid.ndim
    far = tuple((1 if ahead else -1) * (k == axis) for k in range(ndim))
    at = (0,) * ndim
    return u[far] - u[at] if ahead else u[at] - u[far]


def _signed(total: Any, sign: int, part: Any) -> Any:
    if total is None:
        return part if sign > 0 else -part
    return total + part if sign > 0 else total - part


def _stretched(difference: Any, memory: Any, gain: Any, decay: Any, feed: Any, added: bool) -> Any:
    """The derivative along a stretched axis; its memories move on."""
    at = (0,) * memory[0].described.grid.ndim
    value = difference
    if not added:
        for m, g, d, f in zip(memory, gain, decay, feed, strict=True):
            before, value = value, g[at] * value + m[at]
            m.next[at] = d[at] * m[at] - f[at] * before
        return value
    value = gain[0][at] * value
    for m in memory:
        value = value - m[at]
    for m, d, f in zip(memory, decay, feed, strict=True):
        m.next[at] = d[at] * m[at] + f[at] * value
    return value


def _remember(memory: Any, decay: Any, feed: Any, before: Any) -> None:
    """A pole's memory moves on: memory ← decay · memory + feed · field, real or complex."""
    at = (0,) * memory[0].described.grid.ndim
    real = memory[0]
    if len(memory) == 1:
        real.next[at] = here(decay[0]) * real[at] + here(feed[0]) * before
        return
    imaginary, (a, b) = memory[1], (here(d) for d in decay)
    real.next[at] = a * real[at] - b * imaginary[at] + here(feed[0]) * before
    imaginary.next[at] = b * real[at] + a * imaginary[at] + here(feed[1]) * before
