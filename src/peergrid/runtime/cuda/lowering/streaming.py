"""Passes of one step over 3D boxes by kernels that stream, and by those of `one_step` for the cells that they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.program import Launch
from peergrid.codegen.cuda.stream3d.kernel import AWAITED, PACE, WRAPS, Parts, StreamKernel
from peergrid.codegen.cuda.stream3d.tensors import tensors
from peergrid.grid import Box
from peergrid.grid.box import intersect, subtract
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch, chained
from peergrid.runtime.cuda.lowering.one_step import OneStepPlan
from peergrid.runtime.cuda.lowering.plan import Boxes, KernelPlan, Served, Setting, Work, Works
from peergrid.runtime.cuda.lowering.programs import Needed
from peergrid.runtime.cuda.lowering.tensor_maps import tensor_maps
from peergrid.stencil import Problem


@dataclass(frozen=True)
class StreamingPlan(KernelPlan):
    """The cells that streaming kernels leave, made at the same time, and those that are made anew behind them.

    awaited: of works with boxes that come first, which another queue awaits, these boxes.
    """

    setting: Setting
    kernel: StreamKernel
    works: Works
    awaited: tuple[tuple[Work, Boxes], ...] = ()

    streams: ClassVar[bool] = True

    def needed(self) -> Needed:
        return Needed.together((Needed.of(self.kernel.programs), *(plan.needed() for plan in self._single)))

    def served(self) -> Served:
        for device, boxes in self.works:
            for box in self._parts(device, boxes).interior:
                yield from ((program.entry, f"cells {box.lo} to {box.hi}") for program in self.kernel.programs)
        for plan in self._single:
            yield from plan.served()

    def launches(
        self, execution: ExecutionContext, device: int, boxes: Boxes, awaited: Boxes = ()
    ) -> Iterator[KernelLaunch]:
        """As of any plan; awaited: boxes that come first, and then set the word of the device (see `awaited_word`)."""
        parts = self._parts(device, boxes)
        streams = [launch for box in parts.interior for launch in self._streams(execution, device, box, awaited)]
        for plan, cells in self.beside(parts):
            others = plan.launches(execution, device, cells)
            yield from chained(others) if streams else others
        yield from streams
        for plan, cells in self.behind(parts):
            yield from self._late(plan.launches(execution, device, subtract(cells, *awaited)))

    def begins(self, device: int, boxes: Boxes, awaited: Boxes) -> bool:
        """True if launches beside the stream make cells of boxes that come first: they read ghost cells, too."""
        return any(intersect(cells, *awaited) for _, cells in self.beside(self._parts(device, boxes)))

    def continues(self, device: int, boxes: Boxes, awaited: Boxes) -> bool:
        """True if launches follow boxes that come first before the other boxes are done."""
        return any(intersect(cells, *awaited) for _, cells in self.behind(self._parts(device, boxes)))

    def launches_of_awaited(
        self, execution: ExecutionContext, device: int, boxes: Boxes, awaited: Boxes
    ) -> Iterator[KernelLaunch]:
        """The launches that follow the boxes that come first, once the word of the device is set."""
        for plan, cells in self.behind(self._parts(device, boxes)):
            yield from self._late(plan.launches(execution, device, intersect(cells, *awaited)))

    def beside(self, parts: Parts) -> Iterator[tuple[OneStepPlan, Boxes]]:
        """The plans, each with its cells, whose launches run at the same time as the stream."""
        if parts.beside:
            yield self._others, parts.beside
        if self._early is not None and parts.after:
            yield self._early, parts.after

    def behind(self, parts: Parts) -> Iterator[tuple[OneStepPlan, Boxes]]:
        """The plan, with its cells, whose launches go on from what the stream has made."""
        found = self.setting.rotation
        if cells := parts.after if found is None else found.late_parts(parts.after):
            yield self._behind, cells

    def soon(self, device: int, box: Box, boxes: Boxes) -> bool:
        """True if one launch over a box makes some boxes in it first, and no other makes their cells for the stream:
        launches beside it find room when most of its tiles have ended.

        Where fields rotate, early and late stages change what the stream does not make (see `begins`, `continues`); no
        launch over some of the boxes awaits early ones over the others.
        """
        gpu, found = self.setting.gpu, self.setting.rotation
        if found is not None and found.passed:
            return False
        parts = self.parts((box,), ())
        others = parts.beside
        if found is None:
            heard = self.kernel.problem.receiver_boxes(self.setting.recorded[device])
            others = (*others, *parts.after, *heard)
        alone = not any(part.overlaps(one) for part in others for one in boxes)
        return alone and any(self.kernel.soon(inside, boxes, gpu) for inside in parts.interior)

    def wraps(self, owned: Callable[[int], Box]) -> bool:
        grid = self.kernel.problem.grid
        for device, boxes in self.works:
            parts, own = self._parts(device, boxes), owned(device)
            whole = [wraps and own.shape[axis] == grid.shape[axis] for axis, wraps in enumerate(grid.periodic)]
            missing = any(one and not cells for one, cells in zip(whole, self.kernel.wraps(own), strict=True))
            if parts.beside or parts.after or missing:
                return False
        return True

    @cached_property
    def _others(self) -> OneStepPlan:
        """The kernels of cells beside the stream and, if no fields rotate, of those behind it."""
        parts = ((device, self._parts(device, boxes)) for device, boxes in self.works)
        anew = self.setting.rotation is None
        left = ((device, cells) for device, part in parts for cells in (part.beside, part.after if anew else ()))
        return OneStepPlan(self.setting, _filled(left))

    @cached_property
    def _early(self) -> OneStepPlan | None:
        """The kernels of stages before those of the stream, if fields rotate: at the same time."""
        found = self.setting.rotation
        if found is None or found.early is None:
            return None
        works = _filled((work[0], self._parts(*work).after) for work in self.works)
        return OneStepPlan(self._heard(found.early), works)

    @cached_property
    def _behind(self) -> OneStepPlan:
        """The kernels of the cells behind the stream."""
        found, awaited = self.setting.rotation, dict(self.awaited)
        if found is None:
            return self._others
        late = ((work, found.late_parts(self._parts(*work).after)) for work in self.works)
        cut = ((work[0], cells, awaited.get(work, ())) for work, cells in late)
        apart = ((device, part(cells, *first)) for device, cells, first in cut for part in (intersect, subtract))
        return OneStepPlan(self._heard(found.late), _filled(apart))

    @property
    def _single(self) -> Iterator[OneStepPlan]:
        """All kernels of one step, once."""
        plans = (self._others, self._early, self._behind)
        return (plan for plan in dict.fromkeys(plans) if plan is not None)

    def _heard(self, problem: Problem) -> Setting:
        """The setting of a part of the rotation's stages: it serves all receivers or none."""
        recorded = self.setting.recorded if problem.receivers else ((),) * len(self.setting.recorded)
        return replace(self.setting, problem=problem, recorded=recorded)

    def parts(self, boxes: Boxes, recorded: tuple[int, ...]) -> Parts:
        """The parts of boxes by the kernels that make them; recorded: the receivers of the device."""
        whole = self.setting.rotation is not None
        parts = self.kernel.parts_of(boxes, self.setting.gpu, recorded, whole)
        # Where fields rotate, late stages are made behind the stream alone: kernels beside it have made theirs.
        return replace(parts, after=intersect(parts.after, *parts.interior)) if whole else parts

    def _parts(self, device: int, boxes: Boxes) -> Parts:
        return self.parts(boxes, self.setting.recorded[device])

    def _late(self, launches: Iterable[KernelLaunch]) -> Iterator[KernelLaunch]:
        """Launches behind the stream, which find there what early stages have left."""
        found = self.setting.rotation
        names = tuple(self.setting.problem.fields)
        renewed = tuple(names.index(name) for name in found.passed) if found is not None else ()
        return (replace(launch, renewed=renewed) for launch in launches)

    def _streams(self, execution: ExecutionContext, device: int, box: Box, awaited: Boxes) -> Iterator[KernelLaunch]:
        slots = [max(1, execution.programs.resident(device, program)) for program in self.kernel.programs]
        wraps = np.array([(self.kernel.wraps(execution.layout.partition.owned(device)),)], WRAPS)
        none, last = np.zeros(1, AWAITED), len(slots) - 1
        box = self.kernel.accessed(box, execution.layout.partition.owned(device))
        for number, launch in enumerate(self.kernel.launches(box, slots, awaited)):
            if not launch.blocks:  # of cells that no update of its stages writes
                continue
            program, values = launch.program, execution.arguments(device, box, regions=launch.regions)
            blocks = min(slots[number], launch.blocks) if self.kernel.shapes[number].lead else launch.blocks
            pace = self._pace(execution, device, box, number, launch, blocks)
            first = none
            if awaited and number == last:
                count = self.kernel.awaited(box, slots[number], awaited)
                first = np.array([(awaited_word(execution, device), count)], AWAITED)
            maps = tensor_maps(execution, device, partial(tensors, self.kernel.pipelines[number]), values)
            yield KernelLaunch.of(execution, device, program, blocks, values, (pace, wraps, first, *maps))

    def _pace(
        self, execution: ExecutionContext, device: int, box: Box, number: int, launch: Launch, blocks: int
    ) -> NDArray[Any]:
        """The counters that keep the blocks of a launch in step, all of which run at once."""
        lead, clocks = self.kernel.shapes[number].lead, self.kernel.clocks(number, launch, blocks)
        counters = execution.once((self, device, box, number), lambda: _zeros(execution, device, clocks + 1))
        return np.array([(counters, lead, clocks)], PACE)


def _filled(works: Iterable[Work]) -> Works:
    """The works that have cells."""
    return tuple((device, cells) for device, cells in works if cells)


def awaited_word(execution: ExecutionContext, device: int) -> int:
    """The address of the word that a launch sets once its first tiles are done; behind it their number."""
    return execution.once(("awaited", device), lambda: _zeros(execution, device, 4))


def _zeros(execution: ExecutionContext, device: int, count: int) -> int:
    """The address of so many counters, all zero."""
    address = execution.devices.allocate(device, 4 * count)
    execution.devices.driver.fill(address, 0, count)
    return address
