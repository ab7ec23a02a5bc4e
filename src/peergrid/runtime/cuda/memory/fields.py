"""The memory of a run on its devices: slots of fields, scratch, signals, records of receivers, clocks and flags."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod

import numpy as np

from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.choose.balance import balanced
from peergrid.codegen.cuda.choose.steps import several_steps
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.onestep.groups import scratch_fields
from peergrid.codegen.cuda.onestep.kernels import arguments_of
from peergrid.codegen.cuda.stream3d.remainder import blocks_between, remainders
from peergrid.codegen.cuda.stream3d.rotation import rotation_of
from peergrid.errors import DoesNotFit, PeergridError
from peergrid.grid import Array, Box, FirstValues, Index
from peergrid.runtime.cuda.device.devices import Devices, borrowed
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.memory.blocks import BlockLayout, block_layouts, with_common_pitches
from peergrid.runtime.cuda.memory.room import check_room, in_pages
from peergrid.runtime.cuda.memory.sharing import Sharing
from peergrid.runtime.executor import DeviceArray, Views
from peergrid.runtime.memory import owned_receivers, take_cells
from peergrid.schedule import Layout
from peergrid.stencil import Problem
from peergrid.stencil.lagged import without_update

MOST_GPUS = 1024
NAN_WORD = 0x7FF80000  # a NaN in float32, and twice in a row a NaN in float64


@dataclass(frozen=True, eq=False)
class Places:
    """The places of all fields: addresses as in `Arguments`, shape (fields,), and pitches, shape (fields, 2)."""

    addresses: np.ndarray[tuple[int], np.dtype[np.uint64]]
    pitches: np.ndarray[tuple[int, int], np.dtype[np.int64]]


@dataclass(frozen=True)
class Plan:
    """The bytes that each device needs, known before anything is allocated.

    gpu: what their kernels are chosen for.
    """

    layout: Layout
    total_steps: int
    gpu: GpuModel = H200

    @cached_property
    def rotating(self) -> Mapping[str, str]:
        """The fields without memory of their own, each with the field in whose other slot it lies."""
        found = rotation_of(self.layout.problem, self.layout.blocks)
        return found.fields if found else {}

    @cached_property
    def blocks(self) -> tuple[dict[str, BlockLayout], ...]:
        """The block of every field on each device."""
        return tuple(self._blocks(device) for device in range(self.layout.devices))

    def _blocks(self, device: int) -> dict[str, BlockLayout]:
        blocks = block_layouts(self.layout, device)
        for name, followed in self.rotating.items():
            blocks[name] = replace(blocks[name], box=blocks[followed].box)
        return with_common_pitches(self.layout.problem, blocks)

    @cached_property
    def scratch(self) -> tuple[str, ...]:
        return scratch_fields(self.layout.problem)

    @cached_property
    def between(self) -> int:
        """The blocks of each state field for what passes leave in between (see `stream3d.remainder`)."""
        return max((blocks_between(kernel.steps) for kernel in self._parted), default=0)

    @property
    def scratch_sets(self) -> int:
        """The sets of scratch blocks: one for each step of a remainder. Parts of a pass that are made at the same time
        share a step's, since both leave the same values there; another step's would be overwritten.
        """
        return self.between + 1

    @property
    def _parted(self) -> list[TiledKernel]:
        """The kernels whose passes leave anything, which those of 3D problems alone do."""
        lengths = range(2, max(self.layout.blocks) + 1) if self.layout.problem.grid.ndim == 3 else ()
        kernels = (several_steps(self.layout.problem, steps, gpu=self.gpu) for steps in lengths)
        return [kernel for kernel in kernels if kernel is not None and kernel.leaves_remainder]

    def dense(self, device: int, box: Box) -> dict[str, BlockLayout]:
        """Blocks of the state that hold the cells of a box alone."""
        problem, blocks = self.layout.problem, self.blocks[device]
        fields = ((name, problem.fields[name]) for name in problem.state)
        kept = {name: BlockLayout(field, blocks[name].box & box, problem.itemsize) for name, field in fields}
        return with_common_pitches(problem, kept)

    def _dense_bytes(self, device: int) -> int:
        """Bytes of all such blocks, for passes over what the device owns."""
        found = 0
        for kernel in self._parted:
            rest = kernel.remainder(self.layout.partition.owned(device), 1)
            boxes = [part.dense for part in remainders(kernel.problem, kernel.steps, rest, self.gpu) if part.dense]
            each = sum(block.bytes for box in boxes for block in self.dense(device, box).values())
            found = max(found, blocks_between(kernel.steps) * each)
        return found

    def slots(self, name: str) -> int:
        """The blocks of memory that a field has of its own."""
        return 0 if name in self.rotating else 2 if name in self.layout.problem.state else 1

    def _arrays(self, device: int) -> list[int]:
        """Bytes of each slot of the fields of a device, and of its scratch blocks."""
        blocks = self.blocks[device]
        slots = [block.bytes for name, block in blocks.items() for _ in range(self.slots(name))]
        return slots + self.scratch_sets * [blocks[name].bytes for name in self.scratch]

    @property
    def trace_bytes(self) -> int:
        """Bytes of the records of all receivers."""
        return len(self.layout.problem.receivers) * self.total_steps * self.layout.problem.itemsize

    def bytes(self, device: int) -> int:
        """Bytes of device memory that a device needs."""
        problem, blocks = self.layout.problem, self.blocks[device]
        between = self.between * sum(blocks[name].bytes for name in problem.state) + self._dense_bytes(device)
        series = sum({id(values): values.nbytes for values in _series(problem)}.values())
        return sum(self._arrays(device)) + between + series + self.trace_bytes

    def taken(self, device: int, more: int = 0) -> int:
        """Bytes that a device has less, as its driver reports, while the run is in it; more: needed beside these."""
        arrays = self._arrays(device)
        return in_pages([*arrays, self.bytes(device) - sum(arrays), more])

    def check(self, devices: Devices, more: Sequence[int] = ()) -> None:
        """Raise DoesNotFit, with what would fit, where a GPU has not enough memory free.

        more: bytes that each device needs beside these.
        """
        needed = [self.taken(device, sum(more[device : device + 1])) for device in range(devices.count)]
        gpus = partial(fewest, self, more=sum(more))
        check_room(devices, needed, prod(self.layout.problem.grid.shape), gpus)


def fewest(plan: Plan, free: int, more: int = 0) -> int | None:
    """The fewest GPUs with so many bytes free that have the memory for a run; None where `MOST_GPUS` have too little.

    more: bytes that the run needs beside these, on all devices together.
    """
    layout = plan.layout
    problem, depth, block = layout.problem, layout.depth, layout.blocks[0]

    def enough(count: int) -> bool:
        cut = balanced(problem, count, depth, None, block)
        made = replace(plan, layout=replace(layout, partition=cut))
        return max(made.taken(device, more // count) for device in range(count)) <= free

    most = max(1, min(MOST_GPUS, problem.grid.shape[0] // depth))
    doubled = [1 << n for n in range(most.bit_length())]
    high = next((count for count in (*doubled, most) if enough(count)), None)
    return None if high is None else bisect_left(range(high), True, lo=high // 2 + 1, key=enough)


def has_room(plan: Plan, ordinals: tuple[int, ...], driver: CudaDriver | None = None) -> bool:
    """True where GPUs have the memory that a plan needs; also where they cannot be asked, which a run says itself."""
    try:
        with borrowed(ordinals, driver) as devices:
            plan.check(devices)
    except DoesNotFit:
        return False
    except PeergridError:
        return True
    return True


class FieldMemory:
    """The allocated blocks. Every value is NaN until something is stored."""

    def __init__(self, plan: Plan, devices: Devices, sharing: Sharing) -> None:
        self.plan = plan
        self.devices = devices
        self.layout = plan.layout
        problem = self.layout.problem
        self.arguments = arguments_of(problem)
        self._fields = {
            (d, (name, slot)): self._filled(d, self._taken(d, name, sharing), block.bytes)
            for d in devices.mine
            for name, block in plan.blocks[d].items()
            for slot in range(plan.slots(name))
        }
        state = {place: self._fields[place] for place in self._fields if place[1][0] in problem.state}
        self._fields |= sharing.addresses(state)
        for name, followed in plan.rotating.items():
            for (device, (_, slot)), address in [item for item in self._fields.items() if item[0][1][0] == followed]:
                self._fields[device, (name, 1 - slot)] = address
        self._scratch = {
            d: [
                tuple(self._allocated(d, plan.blocks[d][name].bytes) for name in plan.scratch)
                for _ in range(plan.scratch_sets)
            ]
            for d in devices.mine
        }
        self._places: dict[tuple[int, int, Box | None], Places] = {}
        self.recorded = [owned_receivers(self.layout, d) for d in range(devices.count)]
        self._traces = {d: self._allocated(d, plan.trace_bytes) for d in devices.mine}

    def _taken(self, device: int, name: str, sharing: Sharing) -> int:
        """The memory of a slot; of the heap of all processes for what they put into each other's, as much in each."""
        blocks = self.plan.blocks
        if self.devices.heap is None or name not in self.layout.problem.state:
            return sharing.allocate(device, blocks[device][name].bytes)
        return self.devices.symmetric(device, max(block[name].bytes for block in blocks))

    def pointer(self, device: int, name: str, slot: int) -> int:
        """The address of a block's first value; a coefficient is the same in both slots."""
        return self._fields[device, (name, slot if name in self.layout.problem.state else 0)]

    def address(self, device: int, name: str, slot: int, cell: Index) -> int:
        """The address of a cell of a state field."""
        block = self.plan.blocks[device][name]
        return self.pointer(device, name, slot) + block.index(cell) * block.itemsize

    def between(self, device: int, number: int, dense: Box | None = None) -> Places:
        """The places of fields between the steps of a pass; dense: in blocks that hold the cells of this box alone."""
        if (device, number, dense) not in self._places:
            whole = self.plan.blocks[device]
            blocks = whole if dense is None else whole | self.plan.dense(device, dense)
            state = {name: self._allocated(device, blocks[name].bytes) for name in self.layout.problem.state}
            addresses, pitches = np.zeros(len(blocks), np.uint64), np.zeros((len(blocks), 2), np.int64)
            for n, name in enumerate(self.arguments.fields):
                addresses[n] = self._shifted(state.get(name, self.pointer(device, name, 0)), blocks[name])
                if blocks[name].field.full:
                    pitches[n] = blocks[name].pitches[:-1]
            self._places[device, number, dense] = Places(addresses, pitches)
        return self._places[device, number, dense]

    def template(self, device: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        """The arguments of a device's kernels, shape (1,), without what differs from launch to launch."""
        problem = self.layout.problem
        filled = np.zeros(1, self.arguments.dtype)
        filled["fields"][0] = self.placed(device)
        if self.plan.scratch:
            filled["scratch"][0] = self.scratch(device, 0)
        known: dict[int, int] = {}  # signals may share their samples
        for n, values in enumerate(_series(problem)):
            if id(values) not in known:
                known[id(values)] = self.devices.constant(device, values)
            filled["signals"]["samples"][0, n] = known[id(values)]
            filled["signals"]["count"][0, n] = len(values)
        filled["params"][0, : len(problem.params)] = list(problem.params.values())
        filled["corners"] = self.arguments.corners
        filled["traces"] = self._traces[device]
        filled["total_steps"] = self.plan.total_steps
        return filled

    def scratch(self, device: int, number: int) -> list[int]:
        """The addresses of the scratch blocks of a step of a pass."""
        blocks = zip(self.plan.scratch, self._scratch[device][number], strict=True)
        return [self._shifted(pointer, self.plan.blocks[device][name]) for name, pointer in blocks]

    def placed(self, device: int) -> np.ndarray[tuple[int], np.dtype[np.void]]:
        """The fields of a device as its kernels address them, shape (fields,); of a neighbour in another process only
        those that change.
        """
        found: np.ndarray[tuple[int], np.dtype[np.void]] = np.zeros(1, self.arguments.dtype)["fields"][0]
        for n, name in enumerate(self.arguments.fields):
            block, here = self.plan.blocks[device][name], device in self.devices.mine
            if here or name in self.layout.problem.state:
                for slot in (0, 1):
                    found["slot"][n, slot] = self._shifted(self.pointer(device, name, slot), block)
            if block.field.full:
                pitches = block.pitches[:-1][:2]
                for kind in ("pitch", "into"):
                    found[kind][n, : len(pitches)] = pitches
        return found

    def load(self, name: str, values: FirstValues, slot: int) -> None:
        """Set a field everywhere, ghost cells included, from its global array."""
        for device in self.devices.mine:
            block = self.plan.blocks[device][name]
            if block.values:
                flat = block.flat(_cells(self.layout.problem, block, values))
                for pointer in (self.pointer(device, name, slot), *self._others(device, name, slot)):
                    self.devices.on(device).upload(pointer, flat)

    def _others(self, device: int, name: str, slot: int) -> Iterator[int]:
        """The other blocks of a 3D state field with cells that no update writes: kernels that stream leave these out
        of each pass, so that they have their value in all blocks from the start. Where a field rotates, it and the one
        that it follows have the same there.
        """
        if name in (*self.plan.rotating, *self.plan.rotating.values()):
            return
        problem = self.layout.problem
        if problem.grid.ndim < 3 or name not in problem.state or not without_update(problem, name):
            return
        yield self.pointer(device, name, 1 - slot)
        for blocks in self._scratch[device]:
            yield from (block for block, field in zip(blocks, self.plan.scratch, strict=True) if field == name)

    def gather(self, name: str, slot: int, box: Box | None = None) -> Array:
        """The global array of a state field, or its values on a box, put together from what each device owns."""
        wanted = box or self.layout.problem.fields[name].box
        whole = np.full(wanted.shape, np.nan, dtype=self.layout.problem.grid.dtype)
        for device in self.devices.mine:
            owned = self.owned(device, name) & wanted
            if not owned.empty:
                whole[owned.slices(wanted.lo)] = self._rows(device, name, slot, owned)
        return whole

    def views(self, name: str, slot: int, owner: object) -> Views:
        """The cells of a state field that each device here owns, in its memory; owner: of all memory."""
        found: list[tuple[Box, DeviceArray]] = []
        for device in self.devices.mine:
            owned = self.owned(device, name)
            if not owned.empty:
                interface = {
                    "shape": owned.shape,
                    "typestr": np.dtype(self.layout.problem.grid.dtype).str,
                    "data": (self.address(device, name, slot, owned.lo), False),
                    "strides": self.plan.blocks[device][name].strides,
                    "version": 3,
                    "stream": None,  # nothing is under way between two runs
                }
                found.append((owned, DeviceArray(interface, owner)))
        return tuple(found)

    def _rows(self, device: int, name: str, slot: int, cells: Box) -> Array:
        """Cells of a block: downloaded with the rest of their rows along axis 0."""
        block = self.plan.blocks[device][name]
        rows = block.box.with_axis(0, cells.lo[0], cells.hi[0])
        values = np.empty(rows.shape[0] * block.pitches[0], self.layout.problem.grid.dtype)
        self.devices.on(device).download(values, self.address(device, name, slot, rows.lo))
        return np.lib.stride_tricks.as_strided(values, rows.shape, block.strides)[cells.slices(rows.lo)]

    def traces(self) -> Array:
        """The receivers' records, shape (receivers, all steps)."""
        shape = (len(self.layout.problem.receivers), self.plan.total_steps)
        whole = np.full(shape, np.nan, dtype=self.layout.problem.grid.dtype)
        for device in self.devices.mine:
            numbers = self.recorded[device]
            if numbers and whole.size:
                part = np.empty_like(whole)
                self.devices.on(device).download(part, self._traces[device])
                whole[list(numbers)] = part[list(numbers)]
        return whole

    def owned(self, device: int, name: str) -> Box:
        """The cells of a field that a device owns."""
        return self.layout.partition.owned(device) & self.layout.problem.fields[name].box

    def _shifted(self, pointer: int, block: BlockLayout) -> int:
        """The address that cell 0 would have."""
        return (pointer + block.shift * block.itemsize) % (1 << 64) if block.values else 0

    def _allocated(self, device: int, count: int) -> int:
        return self._filled(device, self.devices.allocate(device, count), count)

    def _filled(self, device: int, pointer: int, count: int) -> int:
        self.devices.on(device).fill(pointer, NAN_WORD, count // 4)
        return pointer


def _series(problem: Problem) -> tuple[Array, ...]:
    """The samples of all signals, then the entries of all tables, as the arguments of kernels have them."""
    samples = (signal.samples for signal in problem.signals.values())
    return (*samples, *(table.values for table in problem.tables.values()))


def _cells(problem: Problem, block: BlockLayout, values: FirstValues) -> Array:
    """The values of a block's cells; without a copy where they are a plain part of the global array."""
    described = block.field
    if callable(values) or any(problem.grid.periodic[axis] for axis in described.axes):
        return take_cells(problem, described, values, block.box)
    spans = block.box.slices(described.box.lo)
    return values[tuple(spans[axis] for axis in described.axes)]
