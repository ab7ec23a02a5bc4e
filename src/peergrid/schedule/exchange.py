"""The order of halos in an exchange: which copies may run at the same time.

On a shared bus two copies in opposite directions slow each other down, as do two into one device; the first orders
avoid that, and `all` is for a switch that connects every pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

from peergrid.schedule.layout import Halo

Order = Literal["left-right", "pairwise", "all"]
Stages = tuple[tuple[Halo, ...], ...]


def left_right(halos: Iterable[Halo]) -> Stages:
    """Everybody sends towards larger indices, then everybody towards smaller ones."""
    return _grouped(halos, lambda halo: 0 if halo.direction > (0,) * len(halo.direction) else 1)


def pairwise(halos: Iterable[Halo]) -> Stages:
    """Pairs exchange both ways, no device in two pairs at once: even-odd, then odd-even along a chain.

    Pairs are coloured greedily in order of their devices; a ring of odd length needs a third stage.
    """
    pieces = tuple(halos)
    colour: dict[tuple[int, int], int] = {}
    for pair in sorted({_pair(h) for h in pieces}):
        taken = {c for other, c in colour.items() if set(pair) & set(other)}
        colour[pair] = next(c for c in range(len(taken) + 1) if c not in taken)
    return _grouped(pieces, lambda halo: colour[_pair(halo)])


def all_at_once(halos: Iterable[Halo]) -> Stages:
    """One stage."""
    return _grouped(halos, lambda _: 0)


ORDERS: dict[Order, Callable[[Iterable[Halo]], Stages]] = {
    "all": all_at_once,
    "left-right": left_right,
    "pairwise": pairwise,
}


def _pair(halo: Halo) -> tuple[int, int]:
    return min(halo.source, halo.target), max(halo.source, halo.target)


def _grouped(halos: Iterable[Halo], stage_of: Callable[[Halo], int]) -> Stages:
    """The stages in order; in each, halos of one source stand together, so that one kernel can store them."""
    stages: dict[int, list[Halo]] = {}
    for halo in sorted(halos, key=lambda halo: halo.source):
        stages.setdefault(stage_of(halo), []).append(halo)
    return tuple(tuple(stages[number]) for number in sorted(stages))
