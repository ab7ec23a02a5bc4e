"""The suites: which cases each benchmark consists of. Pure data, so that tests need no GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from peergrid.bench.measure import Case
from peergrid.bench.problems import jacobi, radar
from peergrid.schedule.strategies import STRATEGIES

Metric = Literal["gcells_per_s", "seconds_per_step"]


@dataclass(frozen=True)
class Size:
    """How large the cases are: cells along an axis, steps of a sample; norms: whether devices compute them."""

    jacobi: int
    ladder: int
    small: tuple[int, int]
    fdtd: int
    steps: int
    norms: bool


LARGE = Size(jacobi=17408, ladder=8192, small=(4096, 256), fdtd=8192, steps=1000, norms=True)
LITTLE = Size(jacobi=1024, ladder=512, small=(512, 64), fdtd=512, steps=48, norms=False)
"""For virtual devices."""


@dataclass(frozen=True)
class Suite:
    """A benchmark: its cases for given numbers of devices, and what its chart shows."""

    title: str
    metric: Metric
    cases: Callable[[Size, tuple[int, ...]], Iterator[Case]]


def ladder(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """Every strategy on 1 to all devices, on a wide and on a tall grid, one step per exchange."""
    for aspect, rows, columns in (("wide", size.ladder, 2 * size.ladder), ("tall", 2 * size.ladder, size.ladder)):
        make = partial(jacobi, rows, columns)
        for strategy in STRATEGIES:
            for count in counts:
                yield Case(f"{aspect} {strategy}", make, count, strategy, 1, size.steps // 5, f"{aspect} serial")
        for strategy in ("overlap", "peer"):
            for count in counts:
                series = f"{aspect} {strategy}, deep"
                yield Case(series, make, count, strategy, 0, size.steps // 2, f"{aspect} overlap, deep")


def laplace(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """One grid on more and more devices, a grid that grows with them, and one step per pass."""
    n = size.jacobi
    strong = partial(jacobi, n, n)
    for strategy in ("overlap", "graph", "peer"):
        for count in counts:
            yield Case(f"strong {strategy}", strong, count, strategy, 0, size.steps, "strong overlap")
    for count in counts:
        yield Case("strong, one step", strong, count, "overlap", 1, size.steps // 5, "strong, one step")
    if size.norms:
        for count in counts:
            series = "strong, norm of every step"
            yield Case(series, strong, count, "async", 0, size.steps, series, norm="u")
    for count in counts:
        make = partial(jacobi, n * count, n)
        yield Case("weak overlap", make, count, "overlap", 0, size.steps, "weak overlap")


def fdtd(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """Radar on one device and, four times larger, on all; then two devices, wide and tall, plain against overlapped."""
    n, steps = size.fdtd, size.steps // 2
    one = partial(radar, n, n, 8 * size.steps)
    yield Case("radar", one, 1, "overlap", 0, steps, "radar")
    large = partial(radar, 2 * n, 2 * n, 8 * size.steps)
    for count in counts:
        yield Case("large radar", large, count, "overlap", 0, steps // 2, "large radar")
    for aspect, rows, columns in (("wide", n // 2, 2 * n), ("tall", 2 * n, n // 2)):
        make = partial(radar, rows, columns, 8 * size.steps)
        for strategy in ("serial", "overlap"):
            for count in (c for c in (1, 2) if c in counts):
                series = f"{aspect} radar, {'plain' if strategy == 'serial' else 'overlapped'}"
                yield Case(series, make, count, strategy, 1, steps, f"{aspect} radar, plain")


def small(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """Grids so small that waiting costs most: one of fixed size, and one of a fixed size per device."""
    whole, each = size.small
    for depth, said in ((0, ", deep"), (1, "")):
        for strategy in ("async", "overlap", "graph", "peer", "persistent"):
            for count in counts:
                series = f"{whole}² {strategy}{said}"
                yield Case(series, partial(jacobi, whole, whole), count, strategy, depth, 2 * size.steps, series)
            for count in counts:
                series = f"{each}² each {strategy}{said}"
                make = partial(jacobi, each * count, each)
                yield Case(series, make, count, strategy, depth, 4 * size.steps, series)


SUITES: dict[str, Suite] = {
    "ladder": Suite("Every strategy, wide and tall", "gcells_per_s", ladder),
    "jacobi": Suite("Jacobi", "gcells_per_s", laplace),
    "fdtd": Suite("Radar", "gcells_per_s", fdtd),
    "small": Suite("Small grids", "seconds_per_step", small),
}
