"""Which kernels make a schedule's passes: known from the layout, before any device has memory for it.

Lowering launches what is answered here, and `needed` lists its texts: all programs of a run are compiled side by side
before the first is loaded. What a device says of its room moves tiles, hardly ever a text; such a text is compiled when
it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, groupby

from peergrid.codegen.cuda import onestep, service
from peergrid.codegen.cuda.blocked1d.pass_kernel import PassKernel1D
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.blocked3d.shell import shells
from peergrid.codegen.cuda.choose.shape2d import one_step, pass_kernel
from peergrid.codegen.cuda.choose.steps import several_steps
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.codegen.cuda.linked import links
from peergrid.codegen.cuda.linked.peer import PeerKernel
from peergrid.codegen.cuda.linked.persistent import PersistentKernel
from peergrid.codegen.cuda.reduce import ReduceKernel
from peergrid.codegen.cuda.stream3d.choose import one_pass
from peergrid.codegen.cuda.stream3d.kernel import StreamKernel
from peergrid.codegen.cuda.suited import suited
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.programs import Kernel, Needed
from peergrid.runtime.inorder import owned_receivers
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.ops import Compute, Copy, Op, Reduce, hosts_of
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

Boxes = tuple[Box, ...]
Work = tuple[int, Boxes]
"""A device, and what it advances in one pass."""
Works = tuple[Work, ...]


@dataclass(frozen=True)
class ByRegions:
    """Passes of one step over boxes cut into regions (see `onestep`)."""

    works: Works


@dataclass(frozen=True)
class ByTiles:
    """Passes over boxes cut into tiles."""

    kernel: Kernel
    works: Works


@dataclass(frozen=True)
class WithShells:
    """Passes of which plain tiles leave what is made step by step."""

    kernel: PassKernel3D
    works: Works


@dataclass(frozen=True)
class ByStreams:
    """Passes of one step over 3D boxes by kernels that stream."""

    kernel: StreamKernel
    works: Works


Plain = ByRegions | ByTiles | WithShells | ByStreams


@dataclass(frozen=True)
class Summed:
    """Passes that sum up the norms of what a device owns; what they advance beyond it counts on another."""

    kernel: PassKernel
    works: Works
    beyond: Plain | None


Passes = Plain | Summed

UNFIT = "no persistent kernel fits these devices: each pass is a kernel of its own"


def joint(number: int, op: Op) -> tuple[object, ...]:
    """Neighbouring operations with the same key may be carried out together."""
    match op:
        case Compute():
            return ("compute", op.queue, op.level, op.steps, op.source, op.target)
        case Copy():
            return ("copy", op.queue, op.source_device, op.slot)
        case _:
            return (number,)


def computations(schedule: Schedule) -> Iterator[tuple[int, list[Compute]]]:
    """What is computed together, host by host, with the number of its first operation."""
    for host in sorted({h for op in schedule.ops for h in hosts_of(op)}):
        mine = [(n, op) for n, op in enumerate(schedule.ops) if host in hosts_of(op)]
        for _, part in groupby(mine, key=lambda numbered: joint(*numbered)):
            numbered = list(part)
            found = [op for _, op in numbered if isinstance(op, Compute)]
            if found:
                yield numbered[0][0], found


@dataclass(frozen=True)
class Kernels:
    """What the passes of schedules over a layout are made by.

    norm: a field the norm of whose change is summed up; gpu: what kernels are fitted to; multiprocessors: of each
    device; reaches: whether one device may use another's memory.
    """

    plan: Layout
    norm: str | None
    gpu: GpuModel
    multiprocessors: tuple[int, ...]
    reaches: Callable[[int, int], bool]

    def passes(self, schedule: Schedule) -> dict[int, Passes]:
        """How queues make the passes of each number of steps. Raises UsageError where no kernel makes so many."""
        works: dict[int, list[Work]] = {}
        for _, ops in computations(schedule):
            works.setdefault(ops[0].steps, []).append((ops[0].device, tuple(op.box for op in ops)))
        return {steps: self._passes(steps, tuple(found)) for steps, found in works.items()}

    def linked(self, schedule: Schedule) -> PeerKernel | None:
        """The kernel of every pass of strategy `peer` that exchanges by itself, if one can."""
        if schedule.options.strategy != "peer" or self.plan.devices < 2 or not self._linkable(schedule):
            return None
        made = pass_kernel(self.plan.problem, self.plan.blocks[0], self.norm, gpu=self.gpu)
        return None if made is None else PeerKernel(made)

    def cooperative(self, schedule: Schedule) -> PersistentKernel | str:
        """The kernel of strategy `persistent`; else why there is none (empty: as expected)."""
        if schedule.options.strategy != "persistent" or _shorter(self.plan, schedule):
            return ""
        if _reduces(schedule):
            return "persistent kernels make no reductions: where they are due each pass is a kernel of its own"
        if self.norm is not None:
            return "persistent kernels compute no norms: each pass is a kernel of its own"
        plan, largest = self.plan, max(box.size for _, (box,) in self._owned)
        if not self._linkable(schedule) or pass_kernel(plan.problem, plan.blocks[0], least=1, gpu=self.gpu) is None:
            return (
                "persistent kernels need 2D slabs twice as thick as their halos, one pass between exchanges, and "
                "neighbours that exchange and reach each other: each pass is a kernel of its own"
            )
        streamed = one_step(plan.problem, largest, self.gpu) is not None
        if plan.blocks == (1,) and (streamed or largest > self.gpu.launch_bound_cells):
            return (
                "a persistent kernel has too few loads under way for boxes this large, which launches cost nothing: "
                "each pass is a kernel of its own"
            )
        boxes = tuple(box for _, (box,) in self._owned)
        return suited(plan.problem, plan.blocks[0], boxes, self.gpu, self.multiprocessors) or UNFIT

    def needed(self, schedule: Schedule) -> Needed:
        """The texts of all that will be launched, as far as the layout tells."""
        linked, cooperative = self.linked(schedule), self.cooperative(schedule)
        if linked is not None:
            return _served([self._texts(ByTiles(linked, self._owned))])
        if isinstance(cooperative, PersistentKernel):
            return _served([Needed((cooperative.program.source,))])
        return self.queued(schedule)

    def queued(self, schedule: Schedule) -> Needed:
        """The same where queues make every pass, as they do in a trace."""
        return _served([*(self._texts(made) for made in self.passes(schedule).values()), self._reducing(schedule)])

    def _reducing(self, schedule: Schedule) -> Needed:
        """The texts of the reductions."""
        names = dict.fromkeys(op.reduction for op in schedule.ops if isinstance(op, Reduce))
        return Needed(tuple(reduce_kernel(self.plan.problem, name).source for name in names))

    def _passes(self, steps: int, works: Works) -> Passes:
        if self.norm is None:
            return self._plain(steps, works)
        split = ((device, split_by_owner(self.plan, device, boxes)[1]) for device, boxes in works)
        beyond = tuple((device, outside) for device, outside in split if outside)
        kernel = self._several(steps, self.norm)
        assert isinstance(kernel, PassKernel), "norms are those of 2D grids"
        return Summed(kernel, works, self._plain(steps, beyond) if beyond else None)

    def _plain(self, steps: int, works: Works) -> Plain:
        if steps > 1:
            made = self._several(steps)
            if isinstance(made, PassKernel3D) and made.shelled:
                return WithShells(made, works)
            return ByTiles(made, works)
        largest = max(box.size for _, boxes in works for box in boxes)
        streamed = one_pass(self.plan.problem, self.gpu) if largest >= self.gpu.streamed_cells_3d else None
        if streamed is not None:
            return ByStreams(streamed, works)
        kernel = one_step(self.plan.problem, largest, self.gpu)
        return ByRegions(works) if kernel is None else ByTiles(kernel, works)

    def _several(self, steps: int, norm: str | None = None) -> PassKernel1D | PassKernel | PassKernel3D:
        kernel = several_steps(self.plan.problem, steps, norm, self.gpu)
        if kernel is None:
            raise UsageError(
                f"No kernel makes {steps} steps of this problem in one pass; use block = 1, or leave the block open."
            )
        return kernel

    def _texts(self, made: Passes) -> Needed:
        match made:
            case ByRegions(works):
                return Needed(onestep.program(self.plan.problem, [boxes for _, boxes in works], self.gpu).units)
            case ByTiles(kernel, works):
                return self._tiles(kernel, works)
            case WithShells(kernel, works):
                rests = [
                    [rest for box in boxes for rest in kernel.rest(box, 1, self._recorded[device])]
                    for device, boxes in works
                ]
                found = (shell for rest in rests for shell in shells(kernel.problem, kernel.steps, rest, self.gpu))
                program = onestep.program(kernel.problem, [boxes for shell in found for boxes in shell.steps], self.gpu)
                return Needed((*self._tiles(kernel, works).texts, *program.units))
            case ByStreams(kernel, works):
                parts = [kernel.parts_of(boxes, self.gpu, self._recorded[device]) for device, boxes in works]
                left = [boxes for part in parts for boxes in (part.beside, part.after) if boxes]
                program = onestep.program(kernel.problem, left, self.gpu)
                streams = [made.source for made in kernel.programs]
                return Needed((*streams, *program.units))
            case Summed(kernel, works, beyond):
                inside = [(device, split_by_owner(self.plan, device, boxes)[0]) for device, boxes in works]
                owned, more = self._tiles(kernel, inside), Needed(()) if beyond is None else self._texts(beyond)
                return Needed((*owned.texts, *more.texts), (*owned.zoned, *more.zoned))

    def _tiles(self, kernel: Kernel, works: Iterable[Work]) -> Needed:
        """What tiles are made by. How many find room at once says where they lie, not which there are."""
        found = {
            launch.program: None
            for device, boxes in works
            for box in boxes
            for launch in kernel.launches(box, 1, self._recorded[device])
        }
        if isinstance(kernel, PassKernel1D | PassKernel3D):
            return Needed(tuple(program.source for program in found))
        made = kernel.made if isinstance(kernel, PeerKernel) else kernel
        sums = () if made.norm is None else (kernel.sums.source,)
        others = (program.source for program in found if program != kernel.layer)
        return Needed((*others, *sums), (kernel,) if kernel.layer in found else ())

    @property
    def _owned(self) -> Works:
        """What each device owns."""
        return tuple((device, (self.plan.partition.owned(device),)) for device in range(self.plan.devices))

    @cached_property
    def _recorded(self) -> list[tuple[int, ...]]:
        return [owned_receivers(self.plan, device) for device in range(self.plan.devices)]

    def _linkable(self, schedule: Schedule) -> bool:
        """Whether kernels can fuse the exchange: intervals are one pass over slabs of devices that reach each other,
        and all neighbours exchange.
        """
        plan = self.plan
        return (
            schedule.options.route in (None, "store")
            and len(plan.blocks) == 1
            and not _shorter(plan, schedule)
            and not _reduces(schedule)
            and links.supports(plan.problem, plan.partition, plan.blocks[0])
            and all(self.reaches(halo.source, halo.target) for halo in plan.halos)
            and _exchanging(plan)
        )


def _served(parts: Sequence[Needed]) -> Needed:
    """All of the parts, each text once, and the small kernels that every run has."""
    texts = dict.fromkeys((*chain.from_iterable(part.texts for part in parts), service.SOURCE))
    return Needed(tuple(texts), tuple(chain.from_iterable(part.zoned for part in parts)))


@remembered()
def reduce_kernel(problem: Problem, name: str) -> ReduceKernel:
    """The kernel of a reduction."""
    return ReduceKernel(problem, next(one for one in problem.reductions if one.name == name))


def kernels_of(execution: ExecutionContext) -> Kernels:
    """What the passes on an execution context are made by."""
    norm = None if execution.norms is None else execution.norms.field
    return Kernels(execution.layout, norm, execution.gpu, execution.multiprocessors, execution.peers.reaches)


def split_by_owner(layout: Layout, device: int, boxes: Boxes) -> tuple[Boxes, Boxes]:
    """The parts of boxes that a device owns, and the others."""
    owned = layout.partition.owned(device)
    inside = tuple(box & owned for box in boxes if box.overlaps(owned))
    return inside, tuple(piece for box in boxes for piece in box - owned)


def neighbour(layout: Layout, device: int, side: int) -> tuple[int, int] | None:
    """The device on that side, and the rows by which the grid's coordinates there are shifted."""
    other = device + (1 if side else -1)
    turns, other = divmod(other, layout.devices)
    if turns and not layout.problem.grid.periodic[0]:
        return None
    return other, -turns * layout.problem.grid.shape[0]


def _reduces(schedule: Schedule) -> bool:
    return any(isinstance(op, Reduce) for op in schedule.ops)


def _shorter(layout: Layout, schedule: Schedule) -> bool:
    """Whether a schedule has another pass than the layout's, as the rest of a run does."""
    return {op.steps for op in schedule.ops if isinstance(op, Compute)} != set(layout.blocks)


def _exchanging(layout: Layout) -> bool:
    """Whether every two neighbours have halos for each other, in one direction at least."""
    pairs = {frozenset((halo.source, halo.target)) for halo in layout.halos}
    sides = ((device, neighbour(layout, device, side)) for device in range(layout.devices) for side in (0, 1))
    return all(found is None or {device, found[0]} in pairs for device, found in sides)
