"""One launch of a kernel, resolved to addresses, without what differs from pass to pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from peergrid.runtime.cuda.memory.fields import Places


@dataclass(frozen=True, eq=False)
class KernelLaunch:
    """One launch; `values` is the kernel's struct, to which slots and time step are still to be added, `more` what
    follows it, behind which comes, if there are any, one of `norms`: that of the slot which the pass writes.

    rows: rows of blocks; concurrent: whether it may run at the same time as the next launch of the pass; waits:
    whether, then, it waits for the launch before; before, after: where it finds and leaves the state, if not in the
    slots of the pass; later: steps of the pass before it.
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
    before: Places | None = None
    after: Places | None = None
    later: int = 0

    def arguments(self, target: int) -> tuple[NDArray[Any], ...]:
        """The arguments after `values` in a pass that writes this slot."""
        return (*self.more, *self.norms[target : target + 1])


def chained(launches: Iterable[KernelLaunch]) -> Iterator[KernelLaunch]:
    """The launches one after another, as the stages of a step have to be, all concurrent with the next of the pass."""
    for place, launch in enumerate(launches):
        yield replace(launch, concurrent=True, waits=place > 0)
