"""Passes over boxes cut into tiles, and what the tiles of 3D boxes leave: a remainder, made step by step. With norms,
what devices own, which is summed up, and what they advance beyond it, which counts on another device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.common.program import Launch
from peergrid.codegen.cuda.stream3d.remainder import Remainder, remainders
from peergrid.grid import Box
from peergrid.grid.box import intersect, subtract
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.lowering.device_tiles import DeviceTiles, tiles_on
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch, chained
from peergrid.runtime.cuda.lowering.one_step import OneStepPlan
from peergrid.runtime.cuda.lowering.plan import Boxes, KernelPlan, Served, Setting, Works
from peergrid.runtime.cuda.lowering.programs import Needed
from peergrid.runtime.cuda.memory.fields import Places

ROLES = {
    "interior": "interior tiles",
    "boundary": "all other tiles",
    "layer": "boundary strips",
}
"""The cells that the programs of a kernel of tiles serve, by the name of the attribute."""


@dataclass(frozen=True)
class TiledPlan(KernelPlan):
    """Tiles of all kinds at the same time, and with them, in launches one after another, the parts of a remainder."""

    setting: Setting
    kernel: TiledKernel
    works: Works

    def needed(self) -> Needed:
        found = dict.fromkeys(launch.program for _, launch in self._cut())
        sums = self.kernel.sums if self.kernel.norm else None
        parts = [Needed.of(program for program in (*found, sums) if program not in (None, self.kernel.layer))]
        if self.kernel.layer in found:
            parts.append(Needed({}, (self.kernel,)))
        if self.kernel.leaves_remainder:
            parts.append(self._single(self._expected()).needed())
        return Needed.together(parts)

    def served(self) -> Served:
        for device, launch in self._cut():
            role = next((name for name in ROLES if getattr(self.kernel, name, None) == launch.program), "")
            yield launch.program.entry, f"{ROLES.get(role, 'tiles')}, {len(launch.regions)} on GPU {device}"
        if self.kernel.leaves_remainder:
            yield from self._single(self._expected()).served()

    def launches(self, execution: ExecutionContext, device: int, boxes: Boxes) -> Iterator[KernelLaunch]:
        tiles = tiles_on(execution, self.kernel)
        interior = list(tiles.launches(device, boxes))
        if self.kernel.leaves_remainder:
            single = execution.once((self, "remainder"), lambda: self._single(self._left(tiles)))
            for part in self._parts(tiles.remainder(device, boxes)):
                steps = self._steps(execution, device, part, single)
                yield from chained(steps) if interior else steps
        yield from interior

    def sums(self, execution: ExecutionContext, device: int) -> KernelLaunch | None:
        return tiles_on(execution, self.kernel).sums(device)

    def _cut(self) -> Iterator[tuple[int, Launch]]:
        """The tiles of each device's boxes, where one of a kind runs at once: how many do says where they lie, not
        which there are.
        """
        for device, boxes in self.works:
            for box in boxes:
                yield from ((device, one) for one in self.kernel.launches(box, 1, self.setting.recorded[device]))

    def _expected(self) -> Iterator[tuple[int, Remainder]]:
        """The parts of the remainder as far as boxes determine them."""
        recorded = self.setting.recorded
        for device, boxes in self.works:
            left = chain.from_iterable(self.kernel.remainder(box, 1, recorded[device]) for box in boxes)
            yield from ((device, part) for part in self._parts(left))

    def _left(self, tiles: DeviceTiles) -> Iterator[tuple[int, Remainder]]:
        """The parts of the remainder on devices, as their tiles leave it."""
        for device, boxes in self.works:
            yield from ((device, part) for part in self._parts(tiles.remainder(device, boxes)))

    def _parts(self, left: Iterable[Box]) -> tuple[Remainder, ...]:
        return remainders(self.kernel.problem, self.kernel.steps, left, self.setting.gpu)

    def _single(self, parts: Iterable[tuple[int, Remainder]]) -> OneStepPlan:
        """The plan of the single steps of all parts."""
        parts = tuple(parts)
        works = tuple((device, boxes) for device, part in parts for boxes in part.steps)
        later = tuple(part.later(number) for _, part in parts for number in range(len(part.steps)))
        return OneStepPlan(self.setting, works, later)

    def _steps(
        self, execution: ExecutionContext, device: int, part: Remainder, single: OneStepPlan
    ) -> Iterator[KernelLaunch]:
        """The steps of a part, one after another, with memory between them."""

        def between(number: int) -> Places:
            return execution.memory.between(device, number, part.dense)

        for number, boxes in enumerate(part.steps):
            before = between(number - 1) if number else None
            after = between(number) if number + 1 < self.kernel.steps else None
            for launch in single.launches(execution, device, boxes, part.later(number)):
                if scratch := execution.memory.scratch(device, number):
                    launch.values["scratch"][0] = scratch
                yield replace(launch, before=before, after=after, later=number)


@dataclass(frozen=True)
class SummedPlan(KernelPlan):
    """`owned` with norms for what devices own, `beyond` without for the rest, if there is any."""

    partition: Partition
    owned: TiledPlan
    beyond: KernelPlan | None

    def needed(self) -> Needed:
        return Needed.together(plan.needed() for plan in self._plans)

    def served(self) -> Served:
        for plan in self._plans:
            yield from plan.served()

    def launches(self, execution: ExecutionContext, device: int, boxes: Boxes) -> Iterator[KernelLaunch]:
        owned = self.partition.owned(device)
        if (outside := subtract(boxes, owned)) and self.beyond is not None:
            yield from chained(self.beyond.launches(execution, device, outside))
        yield from self.owned.launches(execution, device, intersect(boxes, owned))

    def sums(self, execution: ExecutionContext, device: int) -> KernelLaunch | None:
        return self.owned.sums(execution, device)

    @property
    def _plans(self) -> tuple[KernelPlan, ...]:
        return (self.owned,) if self.beyond is None else (self.owned, self.beyond)
