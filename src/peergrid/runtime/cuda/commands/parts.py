"""One command buffer split by GPU among submission threads; they keep only the order that the driver can observe.

Each part has the rows of some GPUs in the list's order. Rows of different parts have two things in common: words that
queues wait for by themselves, which any order of issue leaves right, and events, of which a wait means the last record
before it was issued. So a wait follows the record before it, and a record the waits (and the record) before it: the
part first looks into a word whether the other is that far.

No circular wait exists: a row follows only rows that come earlier in the list, iteration after iteration, and devices
for which a part waits depend only on what was issued earlier in the list. So the first row of the list that is not yet
issued can always be.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.runtime.cuda.commands.buffer import LINE, CommandBuffer, CommandWriter, Words
from peergrid.runtime.cuda.commands.rows import CALL, CONTEXT, FIRST, FUNCTION, KIND

Place = tuple[int, int]
"""A row of the command buffer, and its iteration relative to the present one: 0 or -1."""


@dataclass(frozen=True)
class Events:
    """Addresses of driver functions that order queues: two whose order of issue matters, and one for semaphores."""

    record: int
    wait: int
    semaphore: int

    def use(self, row: Words) -> tuple[int, bool] | None:
        """The event that a row uses, and whether it records it."""
        if row[FUNCTION] == self.record:
            return int(row[FIRST]), True
        if row[FUNCTION] == self.wait:
            return int(row[FIRST + 1]), False
        return None


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a command buffer; `progress` has a word for each: the rows it has issued, zero at first.

    Without `progress` there is one part, the command buffer itself.
    """

    buffers: tuple[CommandBuffer, ...]
    progress: Words

    def rewind(self) -> None:
        self.progress[:] = 0


def whole(commands: CommandBuffer) -> Parts:
    """A command buffer as its only part."""
    return Parts((commands,), np.zeros(0, np.int64))


def split(commands: CommandBuffer, part_of: Mapping[int, int], events: Events) -> Parts:
    """The command buffer in parts: rows go where `part_of` says for their context.

    A command buffer that waits for devices or other hosts stays whole: what comes after may rely on it.
    """
    owners = [part_of.get(int(row[CONTEXT]), -1) for row in commands.table]
    parts = sorted(set(owners))
    waits = any(row[KIND] != CALL for row in commands.table)
    if (
        len(parts) < 2
        or -1 in parts
        or waits
        or not all(commands.reader(relocation) >= 0 for relocation in commands.relocations)
    ):
        return whole(commands)
    progress = np.zeros(LINE * len(parts), np.int64)
    work = _Split(commands, [parts.index(owner) for owner in owners], events, int(progress.ctypes.data))
    return Parts(tuple(work.part(number) for number in range(len(parts))), progress)


class _Split:
    """One split: where each row goes, as which of its part's rows, and which rows of other parts it follows."""

    def __init__(self, commands: CommandBuffer, owners: Sequence[int], events: Events, progress: int) -> None:
        self.commands, self.owners, self._progress = commands, owners, progress
        self._counts = [0] * (max(owners) + 1)
        self._done: list[int] = []  # rows of its part that are issued once a row is
        for owner in owners:
            self._counts[owner] += 1
            self._done.append(self._counts[owner])
        self._follows = self._needed(befores(commands.table, events))
        self._followed = {row for places in self._follows.values() for row, _ in places}

    def part(self, number: int) -> CommandBuffer:
        """The command buffer of one part."""
        commands, made = self.commands, CommandWriter(keep=[*self.commands.keep])
        rows = [row for row, owner in enumerate(self.owners) if owner == number]
        untold = 0
        for row in rows:
            op, follows = commands.ops[row], self._follows.get(row, ())
            if untold and (follows or row not in self._followed):
                made.publish(op, self._word(number), untold, len(rows))
                untold = 0
            for other, iteration in follows:
                party = self.owners[other]
                count = self._counts[party]
                made.wait_for(op, self._word(party), self._done[other] + iteration * count, count)
            made.rows.append([int(word) for word in commands.table[row]])
            made.ops.append(op)
            if row in self._followed:
                untold = self._done[row]
        if untold:
            made.publish(commands.ops[rows[-1]], self._word(number), untold, len(rows))
        made.relocations = [
            relocation for relocation in commands.relocations if self.owners[commands.reader(relocation)] == number
        ]
        return made.finish()

    def _word(self, part: int) -> int:
        return self._progress + 8 * LINE * part

    def _needed(self, before: Mapping[int, Sequence[Place]]) -> dict[int, list[Place]]:
        """For each row the rows of other parts that it waits for, without those its part has waited for already."""
        known: dict[tuple[int, int], int] = {}
        others = {row: [p for p in places if self.owners[p[0]] != self.owners[row]] for row, places in before.items()}
        for row, places in others.items():
            for place in places:
                key = (self.owners[row], self.owners[place[0]])
                known[key] = max(known.get(key, self._goal(place)), self._goal(place))
        known = {key: goal - self._counts[key[1]] for key, goal in known.items()}  # from the iteration before
        needed: dict[int, list[Place]] = {}
        for row in sorted(others):
            for place in sorted(others[row], key=self._goal, reverse=True):
                key = (self.owners[row], self.owners[place[0]])
                if self._goal(place) > known[key]:
                    known[key] = self._goal(place)
                    needed.setdefault(row, []).append(place)
        return needed

    def _goal(self, place: Place) -> int:
        row, iteration = place
        return self._done[row] + iteration * self._counts[self.owners[row]]


def befores(table: Words, events: Events) -> dict[int, list[Place]]:
    """For each row that uses an event, the rows that have to be issued before it for the event's sake."""
    uses: dict[int, list[tuple[int, bool]]] = {}
    for number, row in enumerate(table):
        found = events.use(row)
        if found is not None:
            uses.setdefault(found[0], []).append((number, found[1]))
    return {row: list(_before(line, at)) for line in uses.values() for at, (row, _) in enumerate(line)}


def _before(line: Sequence[tuple[int, bool]], at: int) -> Iterator[Place]:
    """Back to the last record, the iteration before included; a wait follows that alone, a record the waits too."""
    _, records = line[at]
    if not any(recorded for _, recorded in line):
        return
    for back in range(1, len(line) + 1):
        row, recorded = line[at - back]
        if recorded or records:
            yield row, 0 if at >= back else -1
        if recorded:
            return
