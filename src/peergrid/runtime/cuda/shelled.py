"""Passes of several steps of which plain tiles make a part, and the kernels of one step the rest (see `shell3d`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from peergrid.codegen.cuda.pass3d import PassKernel3D
from peergrid.codegen.cuda.shell3d import blocks_between
from peergrid.grid import Box
from peergrid.runtime.cuda.station import Station
from peergrid.runtime.cuda.sweeps import OneStep, Places, SeveralSteps, Start

Boxes = tuple[Box, ...]


class Shelled:
    """Passes of one length; `works` are all the boxes that devices will be asked for."""

    def __init__(self, station: Station, kernel: PassKernel3D, works: Iterable[tuple[int, Boxes]]) -> None:
        self._station, self._steps = station, kernel.steps
        self._plain = SeveralSteps(station, kernel)
        self._single = OneStep(station, [shell for work in works for shell in self._plain.shells(*work)])

    def starts(self, device: int, boxes: Boxes) -> Iterator[Start]:
        """The shell's launches one after another, beside the plain tiles if there are any."""
        plain = bool(self._plain.launches(device, boxes))
        for place, start in enumerate(self._shell(device, boxes)):
            yield replace(start, beside=plain, behind=plain and place > 0)
        if plain:
            yield from self._plain.starts(device, boxes)

    def _shell(self, device: int, boxes: Boxes) -> Iterator[Start]:
        for number, shell in enumerate(self._plain.shells(device, boxes)):
            before = self._between(device, number - 1) if number else None
            after = self._between(device, number) if number + 1 < self._steps else None
            for start in self._single.starts(device, shell):
                yield replace(start, before=before, after=after, later=number)

    def _between(self, device: int, number: int) -> Places:
        return self._station.memory.between(device, number % blocks_between(self._steps))
