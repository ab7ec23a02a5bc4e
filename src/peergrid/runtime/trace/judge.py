"""Two opinions on a schedule: the static proof and the replay of a trace. On mutants they have to agree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peergrid.runtime.trace.cells import exact_reads
from peergrid.runtime.trace.interleave import interleave
from peergrid.runtime.trace.replay import check_trace
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.faults import Fault
from peergrid.schedule.happens_before import happens_before
from peergrid.schedule.mutate import Mutant
from peergrid.schedule.ops import Compute, Copy
from peergrid.schedule.unroll import unroll
from peergrid.schedule.verify import program, prove

Outcome = Literal["killed", "implied", "spare", "commutes", "unused", "disagreement"]
"""
killed        both reject the mutant
implied       both accept: what is missing is ordered all the same, every pair of computations and copies as before
spare         both accept: less is ordered than before, but no two accesses that conflict
commutes      both accept: the operations that changed places, or the source that was changed, give the same values
unused        the mutant lacks cells that kernels may read, but that no expression uses: the static proof accepts it
              as soon as it counts the cells that are used in place of those that are declared
disagreement  one accepts what the other rejects; one of them is wrong
"""

REDUNDANT: frozenset[Outcome] = frozenset({"implied", "spare", "commutes", "unused"})


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, with what the two checkers found against it."""

    mutant: Mutant
    outcome: Outcome
    static: tuple[Fault, ...]
    traced: tuple[Fault, ...]


def check(layout: Layout, turns: tuple[Schedule, ...], seed: int = 0) -> tuple[Fault, ...]:
    """What the replay of one random legal order finds against the turns."""
    return check_trace(layout, interleave(turns, seed))


def judge(layout: Layout, original: Schedule, mutant: Mutant, seed: int = 0) -> Verdict:
    """Let both checkers look at a mutant."""
    turns = program(layout, mutant.schedule)
    static, traced = prove(layout, turns).faults, check(layout, turns, seed)
    return Verdict(mutant, _outcome(layout, original, mutant, bool(static), bool(traced)), static, traced)


def _outcome(layout: Layout, original: Schedule, mutant: Mutant, static: bool, traced: bool) -> Outcome:
    if static and traced:
        return "killed"
    if traced:
        return "disagreement"
    if static:
        used = prove(layout, program(layout, mutant.schedule), exact_reads)
        return "unused" if used.holds else "disagreement"
    if not mutant.kind.startswith(("drop", "absent")):
        return "commutes"
    return "implied" if _pairs(original) <= _pairs(mutant.schedule) else "spare"


Touch = tuple[int, int]
"""A computation or copy: its turn, and its number among those of the turn."""


def _pairs(schedule: Schedule) -> frozenset[tuple[Touch, Touch]]:
    """Which computations and copies of two turns are over before which others begin."""
    order = happens_before(unroll((schedule, schedule)))
    touching = [number for number, op in enumerate(schedule.ops) if isinstance(op, Compute | Copy)]
    rank = {number: i for i, number in enumerate(touching)}
    chosen = [
        ((p.turn, rank[p.number]), bit, before)
        for p, bit, before in zip(order.done, order.bits, order.before, strict=True)
        if p.number in rank
    ]
    return frozenset((one, two) for two, _, before in chosen for one, bit, _ in chosen if before & bit)
