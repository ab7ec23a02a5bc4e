"""The kernels that make a schedule's passes: known from the layout, before any device has memory for it.

Lowering launches what is answered here, and `needed` lists its texts: all programs of a run are compiled side by side
before the first is loaded. What a device says of its room moves tiles, hardly ever a text; such a text is compiled when
it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property

from peergrid.codegen.cuda import service
from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.choose.one_step3d import one_pass
from peergrid.codegen.cuda.choose.shape2d import one_step, pass_kernel
from peergrid.codegen.cuda.choose.shape3d import across_edges
from peergrid.codegen.cuda.choose.steps import several_steps, supports
from peergrid.codegen.cuda.common.pitches import pitched_as
from peergrid.codegen.cuda.fused import exchange
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.codegen.cuda.persistent_choice import persistent_kernel, saves_launches
from peergrid.codegen.cuda.reduce import reduce_program
from peergrid.codegen.cuda.stream3d.kernel import StreamKernel
from peergrid.codegen.cuda.stream3d.rotation import rotation_of
from peergrid.codegen.cuda.stream3d.slabs import slabs
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.grid.box import intersect, subtract
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.items import computations
from peergrid.runtime.cuda.lowering.merged import Merged, neighbours
from peergrid.runtime.cuda.lowering.one_step import OneStepPlan
from peergrid.runtime.cuda.lowering.own_kernel import OwnKernel
from peergrid.runtime.cuda.lowering.own_plan import OwnPlan
from peergrid.runtime.cuda.lowering.plan import KernelPlan, Served, Setting, Texts, Work, Works
from peergrid.runtime.cuda.lowering.programs import Needed
from peergrid.runtime.cuda.lowering.slabs import SlabsPlan, works_in
from peergrid.runtime.cuda.lowering.streaming import StreamingPlan
from peergrid.runtime.cuda.lowering.tiled import SummedPlan, TiledPlan
from peergrid.runtime.memory import owned_receivers
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.ops import Compute, Reduce
from peergrid.schedule.passes.fused import neighbour

UTILITY = Needed({service.SOURCE: 0})
"""The small kernels that every run has."""
FusedKernel = PeerKernel | PersistentKernel
"""A kernel that exchanges by itself."""
UNFIT = "no persistent kernel fits these devices: each pass is a separate kernel"


@dataclass(frozen=True)
class ManyPasses:
    """The text of a kernel that makes many passes in one launch."""

    kernel: PersistentKernel

    def needed(self) -> Needed:
        return Needed.of([self.kernel.program])

    def served(self) -> Served:
        yield self.kernel.program.entry, "all cells of a device, many passes in one launch"


@dataclass(frozen=True)
class Kernels:
    """The kernels that make the passes of schedules over a layout.

    norm: a field the norm of whose change is summed up; gpu: what kernels are chosen for; multiprocessors: of each
    device; reaches: whether one device may use another's memory; own: the kernel of a problem whose updates say what is
    read and no more.
    """

    layout: Layout
    norm: str | None
    gpu: GpuModel
    multiprocessors: tuple[int, ...]
    reaches: Callable[[int, int], bool]
    own: OwnKernel | None = None

    def plans(self, schedule: Schedule, merged: Collection[Merged] = ()) -> dict[int, KernelPlan]:
        """The plans by which queues make the passes of each number of steps; merged: computations of one launch.
        Raises UsageError where no kernel makes so many.
        """
        works, once = dict[int, list[Work]](), {number: one for one in merged for number in (*one.first, *one.second)}
        for number, ops in computations(schedule):
            boxes = (once[number].whole,) if number in once else tuple(op.box for op in ops)
            if number not in once or number == once[number].second[0]:
                works.setdefault(ops[0].steps, []).append((ops[0].device, boxes))
        plans = {steps: self._plan(steps, tuple(found)) for steps, found in works.items()}
        awaited = tuple(dict.fromkeys(((one.device, (one.whole,)), one.boxes) for one in merged))
        for steps, plan in plans.items():
            if isinstance(plan, StreamingPlan) and awaited:
                plans[steps] = replace(plan, awaited=awaited)
        return plans

    def merged(self, schedule: Schedule) -> tuple[Merged, ...]:
        """The computations in two queues that one launch makes, the first tiles of which are those of the first queue.
        Graphs have none.
        """
        found, captured = tuple(neighbours(schedule)), schedule.options.strategy == "graph"
        if not found or captured or self.own is not None or self.norm is not None:
            return ()
        plan = self.plans(schedule, found)[1]
        keys = {(one.device, one.whole, one.boxes) for one in found}
        soon = {key for key in keys if isinstance(plan, StreamingPlan) and plan.soon(*key)}
        kept = tuple(one for one in found if (one.device, one.whole, one.boxes) in soon)
        # Where other devices make two launches, their boxes may forbid that anyone streams.
        return kept if kept and isinstance(self.plans(schedule, kept)[1], StreamingPlan) else ()

    def exchanging(self, schedule: Schedule) -> tuple[FusedKernel | None, str]:
        """The kernel that exchanges by itself, of strategies `peer` and `persistent`, where there is one that can; else
        none, and why (empty: as expected).
        """
        if schedule.options.strategy == "peer":
            return self._peer(schedule), ""
        if schedule.options.strategy == "persistent" and not _shorter(self.layout, schedule):
            return self._persistent(schedule)
        return None, ""

    def _peer(self, schedule: Schedule) -> PeerKernel | None:
        if self.own or self.layout.devices < 2 or not self._fusable(schedule):
            return None
        made = pass_kernel(self.layout.problem, self.layout.blocks[0], self.norm, gpu=self.gpu)
        return None if made is None else PeerKernel.of(made)

    def _persistent(self, schedule: Schedule) -> tuple[PersistentKernel | None, str]:
        if self.own is not None:
            return None, "persistent kernels make updates of stencils only: each pass is a separate kernel"
        if _reduces(schedule):
            return None, "persistent kernels make no reductions: where one is due, each pass is a separate kernel"
        if self.norm is not None:
            return None, "persistent kernels compute no norms: each pass is a separate kernel"
        plan, largest = self.layout, max(box.size for _, (box,) in self._owned)
        if not self._fusable(schedule) or pass_kernel(plan.problem, plan.blocks[0], least=1, gpu=self.gpu) is None:
            return None, (
                "persistent kernels need 2D slabs twice as thick as their halos, one pass between exchanges, and "
                "neighbours that exchange and reach each other: each pass is a separate kernel"
            )
        streamed = plan.blocks == (1,) and one_step(plan.problem, largest, self.gpu) is not None
        if streamed or not saves_launches(plan.problem, plan.blocks[0], largest, self.gpu.costs):
            return None, (
                "a persistent kernel has too few loads in flight for boxes this large, and launches cost little there: "
                "each pass is a separate kernel"
            )
        boxes = tuple(box for _, (box,) in self._owned)
        found = persistent_kernel(plan.problem, plan.blocks[0], boxes, self.gpu, self.multiprocessors)
        return found, UNFIT if found is None else ""

    def needed(self, schedule: Schedule) -> Needed:
        """The texts of all that will be launched, as far as the layout determines them."""
        return Needed.together([*(plan.needed() for plan in self.used(schedule)), self._reducing(schedule), UTILITY])

    def queued(self, schedule: Schedule) -> Needed:
        """The same where queues make every pass, as they do in a trace."""
        plans = (plan.needed() for plan in self.plans(schedule).values())
        return Needed.together([*plans, self._reducing(schedule), UTILITY])

    def used(self, schedule: Schedule) -> tuple[Texts, ...]:
        """The kernels of the passes of a schedule: fused ones if there are such, else those that queues launch."""
        match self.exchanging(schedule)[0]:
            case PeerKernel() as kernel:
                return (TiledPlan(self._setting, kernel, self._owned),)
            case PersistentKernel() as kernel:
                return (ManyPasses(kernel),)
            case None:
                return tuple(self.plans(schedule, self.merged(schedule)).values())

    def served(self, schedule: Schedule) -> Served:
        """Sentences about the kernels and the cells that each serves."""
        for plan in self.used(schedule):
            yield from plan.served()

    def wrap(self, schedule: Schedule) -> bool:
        """True where every pass reads across periodic edges of its device's own by itself, so that nothing is copied
        there: passes of all lengths, as runs may end by shorter ones, and schedules of a layout follow each other.
        """
        layout = self.layout
        if not layout.wrapped or len(layout.blocks) > 1 or self.norm is not None or layout.problem.reductions:
            return False
        lengths = (steps for steps in range(1, layout.blocks[0] + 1) if supports(layout.problem, steps, self.gpu))
        plans = [*self.plans(schedule).values(), *(self._plan(steps, self._owned) for steps in lengths)]
        return bool(plans) and all(plan.wraps(layout.partition.owned) for plan in plans)

    def _reducing(self, schedule: Schedule) -> Needed:
        """The texts of the reductions."""
        names = dict.fromkeys(op.reduction for op in schedule.ops if isinstance(op, Reduce))
        return Needed.of(reduce_program(self.layout.problem, name) for name in names)

    def _plan(self, steps: int, works: Works) -> KernelPlan:
        if self.own is not None:
            if steps > 1:
                name = self.own.program.entry
                raise UsageError(f"'{name}' makes one step in a pass, got passes of {steps}; use block = 1.")
            return OwnPlan(self.own, works)
        if self.norm is None:
            return self._unsummed(steps, works)
        partition = self.layout.partition
        inside = tuple((device, intersect(boxes, partition.owned(device))) for device, boxes in works)
        outside = ((device, subtract(boxes, partition.owned(device))) for device, boxes in works)
        beyond = tuple((device, boxes) for device, boxes in outside if boxes)
        owned = TiledPlan(self._setting, self._several(steps, self.norm), inside)
        return SummedPlan(partition, owned, self._unsummed(steps, beyond) if beyond else None)

    def _unsummed(self, steps: int, works: Works) -> KernelPlan:
        setting = self._setting
        problem = setting.problem
        if steps > 1:
            wrapping = across_edges(problem, steps, self.gpu)
            if wrapping is not None:
                return StreamingPlan(setting, wrapping, works)
            return TiledPlan(setting, self._several(steps), works)
        if problem.grid.ndim == 3:
            streamed = self._streaming(one_pass(problem, self.gpu), works)
            return streamed or self._in_slabs(works) or OneStepPlan(setting, works)
        kernel = one_step(problem, _largest(works).size, self.gpu)
        return OneStepPlan(setting, works) if kernel is None else TiledPlan(setting, kernel, works)

    def _streaming(self, kernel: StreamKernel | None, works: Works) -> StreamingPlan | None:
        """The plan by a kernel that streams; None where it does not pay."""
        if kernel is None or not kernel.parts(_largest(works), self.gpu).interior or not _independent(kernel, works):
            return None
        return StreamingPlan(self._setting, kernel, works)

    def _in_slabs(self, works: Works) -> SlabsPlan | None:
        """The plan by slabs whose updates differ; None where no kernel streams."""
        setting, parts = self._setting, list[tuple[Box, KernelPlan]]()
        for slab, problem in slabs(setting.problem) if setting.rotation is None else ():
            if cells := works_in(slab, works):
                streamed = self._streaming(one_pass(problem, self.gpu, slab), cells)
                parts.append((slab, streamed or OneStepPlan(setting, cells)))
        return SlabsPlan(tuple(parts)) if any(plan.streams for _, plan in parts) else None

    def _several(self, steps: int, norm: str | None = None) -> TiledKernel:
        kernel = several_steps(self.layout.problem, steps, norm, self.gpu)
        if kernel is None:
            raise UsageError(
                f"No kernel makes {steps} steps of this problem in one pass; use block = 1, or leave the block open."
            )
        return kernel

    @cached_property
    def _setting(self) -> Setting:
        recorded = tuple(owned_receivers(self.layout, device) for device in range(self.layout.devices))
        problem, found = self.layout.problem, rotation_of(self.layout.problem, self.layout.blocks)
        return Setting(found.step if found else problem, self.gpu, recorded, found, pitched_as(problem))

    @property
    def _owned(self) -> Works:
        """The box that each device owns."""
        return tuple((device, (self.layout.partition.owned(device),)) for device in range(self.layout.devices))

    def _fusable(self, schedule: Schedule) -> bool:
        """True if kernels can fuse the exchange: intervals are one pass over slabs of devices that reach each other,
        and all neighbours exchange.
        """
        plan = self.layout
        return (
            schedule.options.within in (None, "store")
            and len(plan.blocks) == 1
            and not _shorter(plan, schedule)
            and not _reduces(schedule)
            and exchange.supports(plan.problem, plan.partition, plan.blocks[0])
            and all(self.reaches(halo.source, halo.target) for halo in plan.halos)
            and _exchanging(plan)
        )


def _largest(works: Works) -> Box:
    """The largest box that a device advances."""
    return max((box for _, boxes in works for box in boxes), key=lambda box: box.size)


def _independent(kernel: StreamKernel, works: Works) -> bool:
    """True if the boxes of a device may be streamed at the same time, by several queues."""
    each: dict[int, dict[Box, None]] = {}
    for device, boxes in works:
        each.setdefault(device, {}).update(dict.fromkeys(boxes))
    return all(kernel.independent(tuple(boxes)) for boxes in each.values())


def kernels_of(execution: ExecutionContext) -> Kernels:
    """The kernels that make the passes on an execution context."""
    norm = None if execution.norms is None else execution.norms.field
    return Kernels(
        execution.layout, norm, execution.gpu, execution.multiprocessors, execution.peers.reaches, execution.own
    )


def _reduces(schedule: Schedule) -> bool:
    return any(isinstance(op, Reduce) for op in schedule.ops)


def _shorter(layout: Layout, schedule: Schedule) -> bool:
    """True if a schedule has another pass than the layout's, as the last iteration of a run may have."""
    return {op.steps for op in schedule.ops if isinstance(op, Compute)} != set(layout.blocks)


def _exchanging(layout: Layout) -> bool:
    """True if every two neighbours have halos for each other, in one direction at least."""
    pairs = {frozenset((halo.source, halo.target)) for halo in layout.halos}
    sides = ((device, neighbour(layout, device, side)) for device in range(layout.devices) for side in (0, 1))
    return all(found is None or {device, found[0]} in pairs for device, found in sides)
