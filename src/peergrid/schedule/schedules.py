"""The schedules of a run from a step on: whole iterations, and the rest."""

from __future__ import annotations

from functools import partial

from peergrid.schedule.build import Options, Schedule, build, one_iteration, repeated
from peergrid.schedule.layout import Layout
from peergrid.schedule.pass_plan import due as due_within


class Schedules:
    """The schedules of a run, each made once."""

    def __init__(self, layout: Layout, options: Options) -> None:
        self._layout, self._options = layout, options
        self._made: dict[tuple[object, ...], Schedule] = {}

    def through(self, steps: int, step: int, slot: int) -> list[tuple[Schedule, int]]:
        """The schedules that advance by `steps` steps from a step and a slot on, with their repetitions: periods, and
        the rest.

        A period begins where reductions repeat; if they are too far apart for one schedule, the steps up to each of
        them are split in this way.
        """
        found: list[tuple[Schedule, int]] = []
        every, end = repeated(self._layout.problem), step + steps
        while step < end:
            stop, times, whole = end, 0, self._schedule(0, slot, None if every is None else 0)
            if every is None:
                stop = min(end, *(step - step % one.every + one.every for one in self._layout.problem.reductions))
                times = (stop - step - 1) // whole.steps  # the rest ends where reductions are due
            elif step % every:
                stop = min(end, step - step % every + every)  # from here on periods are equal
            else:
                times = (end - step) // whole.steps
            rest = stop - step - times * whole.steps
            last = self._schedule(rest, slot, step + times * whole.steps) if rest else whole
            found += [(whole, times)] * bool(times) + [(last, 1)] * bool(rest)
            step, slot = stop, last.final
        return found

    def _schedule(self, steps: int, slot: int, start: int | None) -> Schedule:
        """The schedule of so many steps from a slot and a step of the run; of 0 steps, one period."""
        due = due_within(self._layout.problem, start, steps)
        key = steps, slot, due if steps else start
        if key not in self._made:
            make = one_iteration if not steps else partial(build, steps=steps)
            self._made[key] = make(self._layout, self._options, first=slot, start=start)
        return self._made[key]
