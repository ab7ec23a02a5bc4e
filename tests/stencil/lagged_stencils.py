"""Waves whose step before lies in a field of its own, or in `u.prev`."""

from __future__ import annotations

from typing import Any

from peergrid import stencil


@stencil
def wave(u: Any) -> None:
    u.next[0] = u[-1] + u[1] - u.prev[0]


@stencil
def by_hand(u: Any, old: Any) -> None:
    u.next[0] = u[-1] + u[1] - old[0]
    old.next[0] = u[0]


@stencil
def add(u: Any) -> None:
    u.next[0] = u[0] + 1
