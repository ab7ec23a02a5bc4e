"""Passes of one step over 3D boxes by kernels that stream, and by those of `onestep` for the cells that they leave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.program import Launch
from peergrid.codegen.cuda.stream3d.kernel import PACE, Parts, StreamKernel
from peergrid.grid import Box
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.sweeps import OneStep, Start, aside

Boxes = tuple[Box, ...]


class Streamed:
    """Passes of one length; `works` are all the boxes that devices will be asked for."""

    def __init__(self, execution: ExecutionContext, kernel: StreamKernel, works: Iterable[tuple[int, Boxes]]) -> None:
        self._execution, self._kernel = execution, kernel
        parts = [self._parts(*work) for work in works]
        self._single = OneStep(execution, [boxes for part in parts for boxes in (part.beside, part.after) if boxes])
        self._counters: dict[tuple[int, Box, int], int] = {}

    def starts(self, device: int, boxes: Boxes) -> Iterator[Start]:
        """The launches of cells that are left beside the others, those of cells that are made anew behind them."""
        parts = self._parts(device, boxes)
        plain = [start for box in parts.plain for start in self._plain(device, box)]
        if parts.beside:
            starts = self._single.starts(device, parts.beside)
            yield from aside(starts) if plain else starts
        yield from plain
        if parts.after:
            yield from self._single.starts(device, parts.after)

    def _parts(self, device: int, boxes: Boxes) -> Parts:
        return self._kernel.parts_of(boxes, self._execution.gpu, self._execution.memory.recorded[device])

    def _plain(self, device: int, box: Box) -> Iterator[Start]:
        slots = [self._slots(device, number) for number in range(len(self._kernel.programs))]
        for number, launch in enumerate(self._kernel.launches(box, slots)):
            program, values = launch.program, self._execution.template(device).copy()
            values["lo"][0], values["hi"][0] = box.lo, box.hi
            values["regions"] = self._execution.devices.constant(device, launch.regions)
            values["count"] = len(launch.regions)
            function = self._function(device, number)
            pace = self._pace(device, box, number, launch, slots[number])
            yield Start(function, launch.blocks, program.threads, program.shared_bytes, values, (pace,))

    def _function(self, device: int, number: int) -> int:
        program = self._kernel.programs[number]
        return self._execution.programs.function(device, program.source, program.entry)

    def _slots(self, device: int, number: int) -> int:
        """Thread blocks that the device works on at once."""
        program, devices = self._kernel.programs[number], self._execution.devices
        return max(1, devices.resident(device, self._function(device, number), program.threads, program.shared_bytes))

    def _pace(self, device: int, box: Box, number: int, launch: Launch, slots: int) -> NDArray[Any]:
        """What keeps the blocks of a launch in step, if all of them run at once."""
        clocks, devices = self._kernel.clocks(number, launch), self._execution.devices
        lead = self._kernel.shapes[number].lead if launch.blocks <= slots else 0
        if (device, box, number) not in self._counters:
            self._counters[device, box, number] = devices.allocate(device, 4 * (clocks + 1))
            devices.driver.fill(self._counters[device, box, number], 0, clocks + 1)
        return np.array([(self._counters[device, box, number], lead, clocks)], PACE)
