"""The strategies: each a builder of the same few operations, in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from peergrid.errors import UsageError
from peergrid.schedule.ops import Op, Route
from peergrid.schedule.pass_plan import PassPlan
from peergrid.schedule.strategies.overlap import overlap
from peergrid.schedule.strategies.peer import peer
from peergrid.schedule.strategies.persistent import persistent
from peergrid.schedule.strategies.serial import serial
from peergrid.schedule.strategies.stream_ordered import stream_ordered
from peergrid.schedule.strategies.threads import threads

StrategyName = str
"""A key of `STRATEGIES`."""

Builder = Callable[[PassPlan], Iterator[Op]]


@dataclass(frozen=True)
class Strategy:
    """A builder with the default route of its halos."""

    build: Builder
    route: Route


STRATEGIES: dict[StrategyName, Strategy] = {
    "serial": Strategy(serial, "copy"),
    "async": Strategy(stream_ordered, "copy"),
    "threads": Strategy(threads, "copy"),
    "overlap": Strategy(overlap, "copy"),
    # the same operations, replayed as a CUDA graph where devices have them; copies cost a graph more than stores
    "graph": Strategy(overlap, "store"),
    "peer": Strategy(peer, "store"),
    "persistent": Strategy(persistent, "store"),
}


def strategy(name: str, route: Route = "copy") -> Callable[[Builder], Builder]:
    """Register a builder of operations under a name for runs, proofs and trials.

    route: the default one of its halos. Raises UsageError for a name that exists.
    """
    if name in STRATEGIES:
        raise UsageError(f"A new name of a strategy is expected, got '{name}', which exists; give another.")
    if route not in get_args(Route):
        raise UsageError(f"A route is one of {', '.join(get_args(Route))}, got '{route}'.")

    def known(build: Builder) -> Builder:
        STRATEGIES[name] = Strategy(build, route)
        return build

    return known
