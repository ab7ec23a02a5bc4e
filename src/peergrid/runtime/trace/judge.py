"""Two opinions on a schedule: the static proof and the replay of a trace. On mutants they have to agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal

import peergrid.runtime.trace.replay as replay
import peergrid.schedule.verify as proof
from peergrid.runtime.trace.cells import exact_reads
from peergrid.runtime.trace.interleave import entries
from peergrid.runtime.trace.usage import Usage
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.access_table import AccessTable
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import happens_before
from peergrid.schedule.mutate import Mutant
from peergrid.schedule.ops import Queue, Touching, queues_of
from peergrid.schedule.unroll import unroll
from peergrid.schedule.verify import program
from peergrid.schedule.windows import Window, kinds

Outcome = Literal["killed", "implied", "spare", "commutes", "unused", "disagreement"]
"""
killed        both reject the mutant
implied       both accept: what is missing is ordered all the same, every pair of operations that touch fields as before
spare         both accept: less is ordered than before, but no two accesses that conflict
commutes      both accept: the operations that changed places, or the source that was changed, give the same values
unused        the mutant lacks cells that kernels may read, but that no expression uses: the static proof accepts it
              as soon as it counts the cells that are used in place of those that are declared
disagreement  one accepts what the other rejects; one of them is wrong
"""

REDUNDANT: frozenset[Outcome] = frozenset({"implied", "spare", "commutes", "unused"})


@dataclass(frozen=True)
class Verdict:
    """The verdict on a mutant, with the first fault that each checker found."""

    mutant: Mutant
    outcome: Outcome
    static: Fault | None
    traced: Fault | None


def check(layout: Layout, iterations: tuple[Schedule, ...], seed: int = 0) -> tuple[Fault, ...]:
    """The faults of the iterations that the replay of one random legal order finds."""
    return tuple(Checkers(layout, iterations).replayed(iterations, seed))


def replayed_by_window(
    layout: Layout, iterations: tuple[Schedule, ...], windows: Iterable[Window] | None = None
) -> Iterator[Fault]:
    """The same for many devices: from one window of each kind (see `schedule.windows`), where they are known these."""
    for window in kinds(layout, iterations) if windows is None else windows:
        usage = Usage(layout, window.iterations, window.devices)
        yield from filter(window.concerns, replay.objections(window.iterations, entries(window.iterations), usage))


class Checkers:
    """Both checkers, with the data of the operations of some schedules, as many programs share most of them."""

    def __init__(self, layout: Layout, schedules: Iterable[Schedule]) -> None:
        self.layout, self._schedules = layout, tuple(schedules)
        self._table, self._usage = AccessTable(layout, self._schedules), Usage(layout, self._schedules)

    def proved(self, iterations: tuple[Schedule, ...]) -> Iterator[Fault]:
        """The faults that the static proof finds in iterations made of these schedules."""
        return proof.objections(iterations, self._table)

    def used(self, iterations: tuple[Schedule, ...]) -> Iterator[Fault]:
        """The same, with the cells that are used in place of the declared ones."""
        return proof.objections(iterations, self._used)

    def replayed(self, iterations: tuple[Schedule, ...], seed: int = 0) -> Iterator[Fault]:
        """The faults that the replay of one random legal order finds."""
        return replay.objections(iterations, entries(iterations, seed), self._usage)

    @cached_property
    def _used(self) -> AccessTable:
        return AccessTable(self.layout, self._schedules, exact_reads)


def judge(layout: Layout, original: Schedule, mutant: Mutant, checkers: Checkers | None = None) -> Verdict:
    """Check a mutant with both checkers, each until its first fault; checkers: with data of its operations."""
    iterations = program(layout, mutant.schedule)
    both = Checkers(layout, iterations) if checkers is None else checkers
    static, traced = next(both.proved(iterations), None), next(both.replayed(iterations), None)
    if static and traced:
        outcome: Outcome = "killed"
    elif traced:
        outcome = "disagreement"
    elif static:
        outcome = "disagreement" if next(both.used(iterations), None) else "unused"
    else:
        outcome = _redundant(original, mutant)
    return Verdict(mutant, outcome, static, traced)


def judge_all(layout: Layout, original: Schedule, mutants: Iterable[Mutant]) -> Iterator[Verdict]:
    """The verdicts on many mutants, which share the data of their operations."""
    found = tuple(mutants)
    checkers = Checkers(layout, chain.from_iterable(program(layout, mutant.schedule) for mutant in found))
    for mutant in found:
        yield judge(layout, original, mutant, checkers=checkers)


def _redundant(original: Schedule, mutant: Mutant) -> Outcome:
    """The reason why a mutant is as good as the original."""
    if not mutant.kind.startswith(("drop", "absent")):
        return "commutes"
    left = _ordered(mutant.schedule)
    kept = (all(a <= b for a, b in zip(before, left[one], strict=True)) for one, before in _ordered(original).items())
    return "implied" if all(kept) else "spare"


AccessId = tuple[int, int]
"""An operation that reads or writes fields: its iteration, and its number among those there."""


def _ordered(schedule: Schedule) -> Mapping[AccessId, tuple[int, ...]]:
    """For each such operation of two iterations, the number of operations of each queue that are over before it
    begins.
    """
    order = happens_before(unroll((schedule, schedule))).accessing
    numbers = [number for number, op in enumerate(schedule.ops) if isinstance(op, Touching)]
    rank = {number: i for i, number in enumerate(numbers)}
    queues: dict[Queue, int] = {}
    for placed, bit in zip(order.done, order.bits, strict=True):
        (queue,) = queues_of(placed.op)
        queues[queue] = queues.get(queue, 0) | bit
    lines = [queues[queue] for queue in sorted(queues)]
    return {
        (placed.iteration, rank[placed.number]): tuple((before & line).bit_count() for line in lines)
        for placed, before in zip(order.done, order.before, strict=True)
    }
