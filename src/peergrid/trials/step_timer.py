"""Seconds of a step on GPUs, measured: arrangements that lay memory out alike are carried out on the same memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import inf
from statistics import median

from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.schedule import Layout, Schedule

SAMPLES = 3
LEAST = 0.8  # of the seconds of a sample are those of its steps, whatever one iteration took
SAMPLE_SECONDS, MOST_SECONDS = 3e-3, 12e-3  # of a sample: at least so many; where one takes more, few do


class StepTimer:
    """Seconds of a step of one arrangement after another; each begins at step 0 again.

    make: an executor for a layout, with room for what `most` steps record. One executor exists at a time: arrangements
    of one depth and block after another share it.
    """

    def __init__(self, make: Callable[[Layout], CudaExecutor], most: int) -> None:
        self._make, self._most = make, most
        self._executor: CudaExecutor | None = None
        self._laid: tuple[int, int | None] | None = None

    def seconds(self, schedule: Schedule, plan: Layout) -> float:
        """The median of some samples; infinite where `most` steps are fewer than one iteration has.

        schedule: one iteration; plan: the layout that it is of. Raises what making the executor or carrying the
        schedule out raises; the next arrangement has an executor of its own.
        """
        room = self._most // schedule.steps
        if room < 1:
            return inf
        try:
            return _seconds(self._executor_of(schedule, plan), schedule, room)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the executor's memory back."""
        made, self._executor, self._laid = self._executor, None, None
        if made is not None:
            made.close()

    def _executor_of(self, schedule: Schedule, plan: Layout) -> CudaExecutor:
        laid = schedule.options.depth, schedule.options.block
        if self._executor is None or self._laid != laid:
            self.close()
            self._executor, self._laid = self._make(plan), laid
        return self._executor


def _seconds(executor: CudaExecutor, schedule: Schedule, room: int) -> float:
    """The median of samples of as many iterations as take `SAMPLE_SECONDS`, at most so many as there is room for; a
    power of two, as graphs hold. What a call takes beside its iterations, as one by itself shows, does not count.
    """

    def sample(times: int) -> float:
        began = time.perf_counter()
        executor.execute(schedule, times, 0)
        return time.perf_counter() - began

    sample(1)
    alone = [sample(1), sample(1)]
    once = spent = min(alone)
    times = 1
    while spent < SAMPLE_SECONDS and 2 * times <= room:
        times *= min(1 << int(SAMPLE_SECONDS / spent).bit_length(), 1 << (room // times).bit_length() - 1)
        spent = sample(times)
    known = alone if times == 1 else []
    enough = SAMPLES if spent < MOST_SECONDS else 1
    found = median([*known, *(sample(times) for _ in range(enough - len(known)))])
    rest = (found - once) / (times - 1) if times > 1 else found
    return max(rest, LEAST * found / times) / schedule.steps
