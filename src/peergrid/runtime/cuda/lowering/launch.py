"""One launch of a kernel, resolved to addresses, without what differs from pass to pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from peergrid.codegen.cuda.common.program import Program
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.memory.fields import Places
from peergrid.schedule.ops import Queue


@dataclass(frozen=True, eq=False)
class KernelLaunch:
    """One launch; `values` is the kernel's struct, to which slots and time step are still to be added, `more` what
    follows it, behind which comes, if there are any, one of `norms`: that of the slot which the pass writes.

    rows: rows of blocks; concurrent: whether it may run at the same time as the next launch of the pass; waits:
    whether, then, it waits for the launch before; cooperative: whether its blocks use common barriers; before, after:
    where it finds and leaves the state, if not in the slots of the pass; renewed: the places in the struct of fields
    that it finds in the slot which the pass writes; later: steps of the pass before it.
    """

    function: int
    blocks: int
    threads: int
    shared: int
    values: NDArray[Any]
    more: tuple[NDArray[Any], ...] = ()
    norms: tuple[NDArray[Any], ...] = ()
    rows: int = 1
    concurrent: bool = False
    waits: bool = False
    cooperative: bool = False
    before: Places | None = None
    after: Places | None = None
    renewed: tuple[int, ...] = ()
    later: int = 0

    @classmethod
    def of(
        cls,
        execution: ExecutionContext,
        device: int,
        program: Program,
        blocks: int,
        values: NDArray[Any],
        more: tuple[NDArray[Any], ...] = (),
    ) -> KernelLaunch:
        """The launch of so many blocks of a program on a device."""
        function = execution.programs.function(device, program.source, program.entry)
        return cls(function, blocks, program.threads, program.shared_bytes, values, more)

    def write(
        self,
        commands: CommandWriter,
        number: int,
        queue: Queue,
        slots: tuple[int, int],
        level: int,
        clock: int | None = None,
    ) -> None:
        """The call for operation `number` of a pass from one slot to the other, from a time level on.

        clock: the address of a word that the level counts from, in graphs; else it counts from the iteration's step.
        """
        values, (source, target) = self.values.copy(), slots
        values["source"], values["target"] = slots
        for places, slot, kind in ((self.before, source, "pitch"), (self.after, target, "into")):
            if places is not None:
                values["fields"]["slot"][0, :, slot] = places.addresses
                values["fields"][kind][0] = places.pitches
        found = values["fields"]["slot"][0]
        found[list(self.renewed), source] = found[list(self.renewed), target]
        if clock is not None:
            values["clock"], values["step"] = clock, level
        commands.launch(
            number,
            queue,
            self.function,
            self.blocks,
            self.threads,
            values,
            shared=self.shared,
            more=(*self.more, *self.norms[target : target + 1]),
            rows=self.rows,
            cooperative=self.cooperative,
        )
        if clock is None:
            commands.relocate(values["step"], level, None)


def chained(launches: Iterable[KernelLaunch]) -> Iterator[KernelLaunch]:
    """The launches one after another, as the stages of a step have to be, all concurrent with the next of the pass."""
    for place, launch in enumerate(launches):
        yield replace(launch, concurrent=True, waits=place > 0)
