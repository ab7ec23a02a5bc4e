"""The suites: which cases each benchmark consists of. Pure data, so that tests need no GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

from peergrid.bench.measure import Case
from peergrid.bench.own import own_average, own_heat, own_waves, shipped_waves
from peergrid.bench.problems import jacobi, radar
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil import Problem

Metric = Literal["gcells_per_s", "seconds_per_step", "efficiency"]


@dataclass(frozen=True)
class Size:
    """The size of the cases: cells along an axis, steps of a sample."""

    jacobi: int
    ladder: int
    small: tuple[int, int]
    fdtd: int
    own: int
    steps: int


LARGE = Size(jacobi=17408, ladder=8192, small=(4096, 256), fdtd=8192, own=8192, steps=1000)
LITTLE = Size(jacobi=1024, ladder=512, small=(512, 64), fdtd=512, own=1024, steps=48)
"""For virtual devices."""


@dataclass(frozen=True)
class Suite:
    """A benchmark: its cases for given numbers of devices, and what its chart shows."""

    title: str
    metric: Metric
    cases: Callable[[Size, tuple[int, ...]], Iterator[Case]]


def ladder(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """Every strategy on one to all devices: radar on a wide and on a tall grid, and Jacobi; one step per exchange, or
    several.
    """
    n, steps = size.ladder, 8 * size.steps
    problems = {
        "radar, wide": partial(radar, n, 2 * n, steps),
        "radar, tall": partial(radar, 2 * n, n, steps),
        "Jacobi": partial(jacobi, size.jacobi, size.jacobi),
    }
    multi_step: tuple[StrategyName, ...] = ("overlap", "peer")
    for name, make in problems.items():
        for strategy in STRATEGIES:
            for count in counts:
                yield Case(f"{name}: {strategy}", make, count, strategy, 1, size.steps // 10, name)
        for strategy in multi_step:
            for count in counts:
                yield Case(f"{name}: {strategy}, deep", make, count, strategy, 0, size.steps // 4, f"{name}, deep")


def laplace(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """Strong and weak scaling of Jacobi, also sustained, and with one step per pass."""
    n = size.jacobi
    strong = partial(jacobi, n, n)
    strategies: tuple[StrategyName, ...] = ("overlap", "graph", "peer")
    for strategy in strategies:
        for count in counts:
            yield Case(f"strong {strategy}", strong, count, strategy, 0, size.steps, "strong")
    for count in counts:
        yield Case("strong, held", strong, count, "overlap", 0, size.steps, "strong, held", sustained=True)
    for count in counts:
        yield Case("strong, one step", strong, count, "overlap", 1, size.steps // 5, "strong, one step")
    normed: tuple[StrategyName, ...] = ("overlap", "peer")
    for strategy in normed:
        for count in counts:
            series = "strong, norm of every step"
            yield Case(f"{series}, {strategy}", strong, count, strategy, 0, size.steps, series, norm="u")
    for sustained, series in ((False, "weak overlap"), (True, "weak, held")):
        for count in counts:
            make = partial(jacobi, n * count, n)
            yield Case(series, make, count, "overlap", 0, size.steps, series, sustained=sustained)


def fdtd(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """Radar on one device and, four times larger, on all."""
    n, steps = size.fdtd, size.steps // 2
    one = partial(radar, n, n, 8 * size.steps)
    yield Case("radar", one, 1, "overlap", 0, steps, "radar")
    large = partial(radar, 2 * n, 2 * n, 8 * size.steps)
    strategies: tuple[StrategyName, ...] = ("overlap", "peer")
    for strategy in strategies:
        for count in counts:
            yield Case(f"large radar, {strategy}", large, count, strategy, 0, steps // 2, "large radar")


def small(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """Small grids, where latency dominates: one of fixed size, and one of a fixed size per device."""
    whole, each = size.small
    strategies: tuple[StrategyName, ...] = ("async", "overlap", "graph", "peer", "persistent")
    for depth, said in ((0, ", deep"), (1, "")):
        for strategy in strategies:
            for count in counts:
                make = partial(jacobi, whole, whole)
                yield Case(
                    f"{whole}² {strategy}{said}", make, count, strategy, depth, 2 * size.steps, f"{whole}²{said}"
                )
            for count in counts:
                make = partial(jacobi, each * count, each)
                series, base = f"{each}² each {strategy}{said}", f"{each}² each{said}"
                yield Case(series, make, count, strategy, depth, 4 * size.steps, base)


def own(size: Size, counts: tuple[int, ...]) -> Iterator[Case]:
    """Stencils of a user compared with the same ones in peergrid, in interleaved samples."""
    n = size.own
    made: dict[str, tuple[Callable[[], Problem], ...]] = {
        "heat": (partial(jacobi, n, n), partial(own_average, n, n), partial(own_heat, n, n)),
        "waves": (partial(shipped_waves, n, n, lossy=False), partial(own_waves, n, n, lossy=False)),
        "lossy waves": (partial(shipped_waves, n, n, lossy=True), partial(own_waves, n, n, lossy=True)),
    }
    for depth, said in ((0, ""), (1, ", one step")):
        for name, makes in made.items():
            words = ("shipped", "own") if len(makes) == 2 else ("shipped Jacobi", "own Jacobi", "own heat")
            for count in counts:
                for word, make in zip(words, makes, strict=True):
                    series, group = f"{name}: {word}{said}", f"{name}{said} on {count}"
                    yield Case(series, make, count, "overlap", depth, size.steps // 4, series, group=group)


SUITES: dict[str, Suite] = {
    "ladder": Suite("Every strategy: radar wide and tall, Jacobi", "efficiency", ladder),
    "jacobi": Suite("Jacobi", "gcells_per_s", laplace),
    "fdtd": Suite("Radar", "gcells_per_s", fdtd),
    "small": Suite("Small grids", "seconds_per_step", small),
    "own": Suite("Custom stencils compared with shipped models", "gcells_per_s", own),
}
