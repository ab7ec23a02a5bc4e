"""The pauses of a run: at every multiple of the given periods, and often enough to show progress."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from peergrid.simulate import Simulation

PAUSE_SECONDS = 0.25


def advance(simulation: Simulation, until: int, every: Sequence[int], at: Sequence[int] = ()) -> Iterator[int]:
    """Advance to step `until`; yield the step at each pause.

    every: periods in steps; the run pauses at all their multiples, and at the steps `at`. Between them it pauses about
    four times a second, at whole exchange intervals so that no exchange is wasted.
    """
    depth = simulation.options.depth
    chunk = depth
    while simulation.step < until:
        stops = [until, *((simulation.step // n + 1) * n for n in every if n > 0)]
        stops += [step for step in at if step > simulation.step]
        ends = _aligned(simulation.step + chunk, depth)
        before, seconds = simulation.step, simulation.seconds
        simulation.run(min(*stops, ends) - simulation.step)
        chunk = _next_chunk(simulation.step - before, simulation.seconds - seconds, chunk, depth)
        yield simulation.step


def _aligned(step: int, depth: int) -> int:
    return max(step // depth, 1) * depth


def _next_chunk(steps: int, seconds: float, chunk: int, depth: int) -> int:
    """The next chunk, at most twice this one, towards the desired time between pauses."""
    wanted = int(steps * PAUSE_SECONDS / max(seconds, 1e-6))
    return max(depth, min(2 * chunk, wanted))
