"""A kernel of tiles on the devices of an execution: as many and as short tiles as there is room for, and launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.program import Launch, Program
from peergrid.codegen.norm import NORM_ROWS
from peergrid.grid import Box
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch
from peergrid.runtime.cuda.lowering.plan import Boxes
from peergrid.runtime.cuda.lowering.tensor_maps import tensor_maps


class DeviceTiles:
    """Boundary tiles, which are few and slow, and interior ones at the same time."""

    def __init__(self, execution: ExecutionContext, kernel: TiledKernel) -> None:
        self._execution, self._kernel = execution, kernel
        self._needed: dict[Box, tuple[Program, ...]] = {}
        self._cut: dict[tuple[int, Boxes], tuple[Launch, ...]] = {}
        self._alike: dict[TiledKernel, TiledKernel] = {}

    def launches(self, device: int, boxes: Boxes) -> Iterator[KernelLaunch]:
        """The launches that advance the boxes on a device, that of interior tiles the last, if there are any."""
        whole, cut = reduce(Box.hull, boxes), self.cut(device, boxes)
        if not cut:
            return
        queued = self._queued(cut[0])
        for place, launch in enumerate(cut[1:]):
            yield replace(self.launch(device, launch, whole), concurrent=True, waits=queued and place > 0)
        yield self.launch(device, cut[0], whole)

    def cut(self, device: int, boxes: Boxes) -> tuple[Launch, ...]:
        """The tiles of the boxes, those of each program together; the same for every pass over them."""
        if (device, boxes) not in self._cut:
            self._cut[device, boxes] = tuple(self._tiles(device, boxes))
        return self._cut[device, boxes]

    def launch(self, device: int, launch: Launch, whole: Box) -> KernelLaunch:
        """The launch over tiles of a box."""
        values = self._execution.arguments(
            device, whole, self._given, regions=launch.regions, receivers=launch.receivers
        )
        return self._launch(device, launch.program, launch.blocks, values, whole)

    def sums(self, device: int) -> KernelLaunch | None:
        """The launch that adds up what the others left of the norms, if they leave any."""
        program, whole = self._kernel.sums, self._execution.layout.partition.owned(device)
        if self._kernel.norm is None or program is None:
            return None
        bands, values = -(-whole.shape[0] // NORM_ROWS), self._execution.arguments(device, whole, self._given)
        return replace(self._launch(device, program, bands, values, whole), rows=self._kernel.steps)

    def remainder(self, device: int, boxes: Boxes) -> Boxes:
        """The parts of the boxes without tiles."""
        kernel, recorded = self._kernel, self._execution.memory.recorded[device]
        slots = (self.slots(device, box) for box in boxes)
        left = (kernel.shorter(box, 1, n).remainder(box, n, recorded) for box, n in zip(boxes, slots, strict=True))
        return tuple(part for parts in left for part in parts)

    def resident(self, device: int, program: Program) -> int:
        """Thread blocks of a program that the device works on at once."""
        return max(1, self._execution.programs.resident(device, program))

    def slots(self, device: int, box: Box) -> int:
        """Interior tiles that the device works on at once."""
        return self._at_once(device, box, self._kernel.interior)

    def _queued(self, interior: Launch) -> bool:
        """True where strips wait for the few boundary tiles: during long interior tiles of one step they have the
        time, and must not take the room of those, which begin at the same moment.
        """
        if self._kernel.steps > 1 or interior.program is not self._kernel.interior:
            return False
        return int(interior.extents[:, 0].max()) >= self._execution.gpu.long_rows

    def _tiles(self, device: int, boxes: Boxes) -> Iterator[Launch]:
        recorded = self._execution.memory.recorded[device]
        found = [
            launch
            for box in boxes
            for launch in self._as_short(device, box).launches(box, self.slots(device, box), recorded)
        ]
        interior = self._kernel.interior
        programs = {interior.entry: interior} | {
            launch.program.entry: launch.program for launch in found if launch.program.entry != interior.entry
        }
        for program in programs.values():
            same = [replace(launch, program=program) for launch in found if launch.program.entry == program.entry]
            if same:
                yield _together(same)

    def _as_short(self, device: int, box: Box) -> TiledKernel:
        """The kernel with tiles as short as the device has room for; one for all boxes that want the same."""
        slots = self._at_once(device, box, self._kernel.boundary), self.slots(device, box)
        found = self._execution.programs.beside(self._kernel).shorter(box, *slots)
        return self._alike.setdefault(found, found)

    def _at_once(self, device: int, box: Box, program: Program | None) -> int:
        """Tiles that the device works on at once; 1 where the box has none: then their kernel is not needed."""
        if box not in self._needed:
            self._needed[box] = tuple(launch.program for launch in self._kernel.launches(box, 1))
        if program is None or all(needed is not program for needed in self._needed[box]):
            return 1
        return self.resident(device, program) * program.tiles_per_block

    def _launch(self, device: int, program: Program, blocks: int, values: NDArray[Any], box: Box) -> KernelLaunch:
        """The launch of a program, granted its shared memory, with the norms of a box if the kernel takes them."""
        self._execution.programs.resident(device, program)
        maps = tensor_maps(self._execution, device, self._kernel.tensors, values)
        launch = KernelLaunch.of(self._execution, device, program, blocks, values, maps)
        summed = self._execution.norms if self._kernel.norm else None
        return launch if summed is None else replace(launch, norms=summed.structs(device, box))

    @cached_property
    def _given(self) -> Arguments:
        return Arguments(self._kernel.problem)


def tiles_on(execution: ExecutionContext, kernel: TiledKernel) -> DeviceTiles:
    """The tiles of a kernel on an execution's devices, one for all that launch it."""
    return execution.once(("tiles", kernel), lambda: DeviceTiles(execution, kernel))


def _together(launches: Sequence[Launch]) -> Launch:
    """The tiles of several launches of one program in one; tiles say where their receivers begin."""
    regions, served = [], 0
    for launch in launches:
        moved = launch.regions.copy()
        moved["first"] += served
        regions.append(moved)
        served += len(launch.receivers)
    receivers = np.concatenate([launch.receivers for launch in launches])
    return Launch(launches[0].program, np.concatenate(regions), receivers)
