"""Passes of several steps of which plain tiles make a part, kernels of one step the rest (see `blocked3d.shell`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from peergrid.codegen.cuda.blocked3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.blocked3d.shell import Shell, blocks_between
from peergrid.grid import Box
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.sweeps import OneStep, SeveralSteps, Start, aside
from peergrid.runtime.cuda.memory.fields import Places

Boxes = tuple[Box, ...]


class Shelled:
    """Passes of one length; `works` are all the boxes that devices will be asked for."""

    def __init__(self, execution: ExecutionContext, kernel: PassKernel3D, works: Iterable[tuple[int, Boxes]]) -> None:
        self._execution, self._steps = execution, kernel.steps
        self._plain = SeveralSteps(execution, kernel)
        shells = [shell for work in works for shell in self._plain.shells(*work)]
        self._single = OneStep(execution, [boxes for shell in shells for boxes in shell.steps])

    def starts(self, device: int, boxes: Boxes) -> Iterator[Start]:
        """The launches of each shell one after another, beside the plain tiles if there are any."""
        plain = bool(self._plain.launches(device, boxes))
        for shell in self._plain.shells(device, boxes):
            starts = self._shell(device, shell)
            yield from aside(starts) if plain else starts
        if plain:
            yield from self._plain.starts(device, boxes)

    def _shell(self, device: int, shell: Shell) -> Iterator[Start]:
        for number, boxes in enumerate(shell.steps):
            before = self._between(device, number - 1, shell) if number else None
            after = self._between(device, number, shell) if number + 1 < self._steps else None
            for start in self._single.starts(device, boxes):
                yield replace(start, before=before, after=after, later=number)

    def _between(self, device: int, number: int, shell: Shell) -> Places:
        return self._execution.memory.between(device, number % blocks_between(self._steps), shell.dense)
