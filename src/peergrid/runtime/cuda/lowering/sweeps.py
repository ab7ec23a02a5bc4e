"""What a pass over some boxes launches on a device: one step by the kernels of `onestep`, several by a `PassKernel`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda import onestep
from peergrid.codegen.cuda.blocked.program import Launch
from peergrid.codegen.cuda.blocked.program import Program as PassProgram
from peergrid.codegen.cuda.blocked1d.pass_kernel import PassKernel1D
from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.blocked3d.shell import Shell, shells
from peergrid.codegen.cuda.choose.shape2d import short_tiles
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.linked.peer import PeerKernel
from peergrid.codegen.norm import NORM_ROWS
from peergrid.grid import Box
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.kernels import split_by_owner
from peergrid.runtime.cuda.lowering.programs import Kernel, Needed
from peergrid.runtime.cuda.memory.fields import Places

Boxes = tuple[Box, ...]


@dataclass(frozen=True, eq=False)
class Start:
    """One launch; `values` is the kernel's struct, to which slots and time step are still to be added, `more` what
    follows it, behind which comes, if there are any, one of `norms`: that of the slot which the pass writes; rows: rows
    of blocks; beside: whether it may run beside the next launch of the pass; behind: whether, beside that, it waits for
    the launch before; before, after: where it finds and leaves the state, if not in the slots of the pass; later: steps
    of the pass before it.
    """

    function: int
    blocks: int
    threads: int
    shared: int
    values: NDArray[Any]
    more: tuple[NDArray[Any], ...] = ()
    norms: tuple[NDArray[Any], ...] = ()
    rows: int = 1
    beside: bool = False
    behind: bool = False
    before: Places | None = None
    after: Places | None = None
    later: int = 0

    def given(self, target: int) -> tuple[NDArray[Any], ...]:
        """What follows `values` in a pass that writes this slot."""
        return (*self.more, *self.norms[target : target + 1])


class Sweep(Protocol):
    """Passes of one length."""

    def starts(self, device: int, boxes: Boxes) -> Iterator[Start]:
        """The launches that advance the boxes on a device, in order."""


class OneStep:
    """Passes of one step; `works` are all the sets of boxes that will be asked for."""

    def __init__(self, execution: ExecutionContext, works: Iterable[Boxes]) -> None:
        self._execution = execution
        self._program = onestep.program(execution.layout.problem, works, execution.gpu)
        execution.programs.expect([Needed(self._program.units)])

    def starts(self, device: int, boxes: Boxes) -> Iterator[Start]:
        for launch in self._program.launches(boxes, self._execution.memory.recorded[device]):
            unit = self._program.units[self._program.unit(launch.kernel)]
            function = self._execution.programs.function(device, unit, launch.kernel)
            values = self._values(device, launch)
            yield Start(function, launch.blocks, launch.threads, 0, values, beside=launch.beside)

    def _values(self, device: int, launch: onestep.Launch) -> NDArray[Any]:
        execution, box = self._execution, launch.box
        values = execution.template(device).copy()
        values["lo"][0, : box.ndim], values["hi"][0, : box.ndim] = box.lo, box.hi
        if launch.regions:
            values["regions"] = execution.devices.constant(device, launch.table())
            values["count"] = len(launch.regions)
        if launch.receivers:
            values["receivers"] = execution.devices.constant(device, execution.memory.receivers(launch.receivers))
            values["count"] = len(launch.receivers)
        return values


class SeveralSteps:
    """Passes of several steps: edge tiles, which are few and slow, and plain ones beside them."""

    def __init__(self, execution: ExecutionContext, kernel: Kernel) -> None:
        self._execution, self._kernel = execution, kernel
        self._needed: dict[Box, tuple[PassProgram, ...]] = {}
        self._launches: dict[tuple[int, Boxes], tuple[Launch, ...]] = {}
        self._alike: dict[Kernel, Kernel] = {}

    def starts(self, device: int, boxes: Boxes) -> Iterator[Start]:
        whole, launches = reduce(Box.hull, boxes), self.launches(device, boxes)
        queued = self._queued(launches[0])
        for place, launch in enumerate(launches[1:]):
            yield replace(self.start(device, launch, whole), beside=True, behind=queued and place > 0)
        yield self.start(device, launches[0], whole)

    def _queued(self, plain: Launch) -> bool:
        """Whether zones wait for the few edge tiles: beside long plain tiles of one step they have the time, and must
        not take the room of those, which begin at the same moment.
        """
        made = self._kernel
        if not isinstance(made, PassKernel) or made.steps > 1 or plain.program is not made.plain:
            return False
        return int((plain.regions["hi"] - plain.regions["lo"])[:, 0].max()) >= self._execution.gpu.long_rows

    def shells(self, device: int, boxes: Boxes) -> tuple[Shell, ...]:
        """What plain tiles leave of the boxes."""
        kernel, recorded = self._kernel, self._execution.memory.recorded[device]
        assert isinstance(kernel, PassKernel3D), "only 3D passes have shells"
        slots = (self.slots(device, box) for box in boxes)
        rest = [kernel.shorter(box, 1, n).rest(box, n, recorded) for box, n in zip(boxes, slots, strict=True)]
        return shells(kernel.problem, kernel.steps, chain(*rest), self._execution.gpu)

    def launches(self, device: int, boxes: Boxes) -> tuple[Launch, ...]:
        """The tiles of the boxes, those of each program together; the same for every pass over them."""
        if (device, boxes) not in self._launches:
            self._launches[device, boxes] = tuple(self._laid(device, boxes))
        return self._launches[device, boxes]

    def _laid(self, device: int, boxes: Boxes) -> Iterator[Launch]:
        recorded = self._execution.memory.recorded[device]
        found = [
            launch
            for box in boxes
            for launch in self._fitted(device, box).launches(box, self.slots(device, box), recorded)
        ]
        plain = self._kernel.plain
        programs = {plain.entry: plain} | {
            launch.program.entry: launch.program for launch in found if launch.program.entry != plain.entry
        }
        for program in programs.values():
            same = [replace(launch, program=program) for launch in found if launch.program.entry == program.entry]
            if same:
                yield _together(same)

    def _fitted(self, device: int, box: Box) -> Kernel:
        """The kernel with tiles as short as the device has room for; one for all boxes that want the same."""
        edged = not (isinstance(self._kernel, PassKernel3D) and self._kernel.shelled)
        slots = self._at_once(device, box, self._kernel.edge) if edged else 1, self.slots(device, box)
        found: Kernel
        match self._kernel:
            case PassKernel1D() as kernel:
                found = kernel
            case PassKernel3D() as kernel:
                found = kernel.shorter(box, *slots)
            case PeerKernel() as kernel:
                found = PeerKernel(short_tiles(self._execution.programs.beside(kernel).made, box, *slots))
            case PassKernel() as kernel:
                found = short_tiles(self._execution.programs.beside(kernel), box, *slots)
        return self._alike.setdefault(found, found)

    def start(self, device: int, launch: Launch, whole: Box) -> Start:
        """A launch over tiles of a box."""
        program, values = launch.program, self._values(device, launch, whole)
        function, norms = self._function(device, program), self._norms(device, whole)
        return Start(function, launch.blocks, program.threads, program.shared_bytes, values, norms=norms)

    def sums(self, device: int) -> Start:
        """The launch that adds up what the others left of the norms, when all that the device owns is done."""
        made, whole = self._summing, self._execution.layout.partition.owned(device)
        assert made is not None, "only a kernel with norms leaves sums"
        program, bands = made.sums, -(-whole.shape[0] // NORM_ROWS)
        values, function = self._arguments(device, whole), self._function(device, program)
        norms = self._norms(device, whole)
        return Start(function, bands, program.threads, program.shared_bytes, values, norms=norms, rows=made.steps)

    def _norms(self, device: int, box: Box) -> tuple[NDArray[Any], ...]:
        """Where the norms go, slot by slot, if the kernel takes them."""
        norms = self._execution.norms
        return () if norms is None or self._summing is None else norms.structs(device, box)

    @property
    def _summing(self) -> PassKernel | None:
        """The kernel, if it leaves sums."""
        made = self._kernel.made if isinstance(self._kernel, PeerKernel) else self._kernel
        return made if isinstance(made, PassKernel) and made.norm is not None else None

    def resident(self, device: int, program: PassProgram) -> int:
        """Thread blocks of a program that the device works on at once."""
        return max(1, self.room(device, program))

    def room(self, device: int, program: PassProgram) -> int:
        """Thread blocks of a program that the device works on at once; 0 where it has no room for one."""
        return self._granted(device, self._function(device, program), program)

    def slots(self, device: int, box: Box) -> int:
        """Plain tiles that the device works on at once."""
        return self._at_once(device, box, self._kernel.plain)

    def _at_once(self, device: int, box: Box, program: PassProgram) -> int:
        """Tiles that the device works on at once; 1 where the box has none: then their kernel is not needed."""
        if box not in self._needed:
            self._needed[box] = tuple(launch.program for launch in self._kernel.launches(box, 1))
        if all(needed is not program for needed in self._needed[box]):
            return 1
        return self.resident(device, program) * program.tiles_per_block

    def _function(self, device: int, program: PassProgram) -> int:
        function = self._execution.programs.function(device, program.source, program.entry)
        self._granted(device, function, program)
        return function

    def _granted(self, device: int, function: int, program: PassProgram) -> int:
        """Thread blocks of a kernel that the device runs at once, with the shared memory they need."""
        devices = self._execution.devices
        return devices.resident(device, function, program.threads, program.shared_bytes, whole=program.whole)

    def _values(self, device: int, launch: Launch, box: Box) -> NDArray[Any]:
        devices, values = self._execution.devices, self._arguments(device, box)
        values["regions"] = devices.constant(device, launch.regions)
        values["count"] = len(launch.regions)
        if len(launch.receivers):
            values["receivers"] = devices.constant(device, launch.receivers)
        return values

    def _arguments(self, device: int, box: Box) -> NDArray[Any]:
        """`Arguments` without tiles."""
        template, values = self._execution.template(device), np.zeros(1, self._dtype)
        for name in self._dtype.names or ():
            if name != "scratch":
                values[name] = template[name]
        values["lo"][0, : box.ndim], values["hi"][0, : box.ndim] = box.lo, box.hi
        return values

    @cached_property
    def _dtype(self) -> np.dtype[Any]:
        return Arguments(self._kernel.problem).dtype


class WithNorms:
    """Passes that sum up the norms of what a device owns; what they compute beyond it counts on another device."""

    def __init__(self, execution: ExecutionContext, owned: SeveralSteps, beyond: Sweep | None) -> None:
        self._execution, self._owned, self._beyond = execution, owned, beyond

    def starts(self, device: int, boxes: Boxes) -> Iterator[Start]:
        inside, outside = split_by_owner(self._execution.layout, device, boxes)
        if outside and self._beyond is not None:
            yield from aside(self._beyond.starts(device, outside))
        yield from self._owned.starts(device, inside)

    def sums(self, device: int) -> Start:
        """See `SeveralSteps`."""
        return self._owned.sums(device)


def aside(starts: Iterable[Start]) -> Iterator[Start]:
    """The launches one after another, as the stages of a step have to be, all beside the next launch of the pass."""
    for place, start in enumerate(starts):
        yield replace(start, beside=True, behind=place > 0)


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
