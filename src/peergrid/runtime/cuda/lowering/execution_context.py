"""The resources of one executor: devices, memory, driver functions, flags, step counters and the fault log."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda import service
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.grid import Box
from peergrid.runtime.cuda.commands.buffer import LINE
from peergrid.runtime.cuda.device.devices import Devices, host_words
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.device.processes import Processes
from peergrid.runtime.cuda.lowering.duration import step_seconds, timeout
from peergrid.runtime.cuda.lowering.own_kernel import OwnKernel
from peergrid.runtime.cuda.lowering.programs import Programs
from peergrid.runtime.cuda.memory.fields import FieldMemory, Plan
from peergrid.runtime.cuda.memory.norms import NormMemory, norm_bytes
from peergrid.runtime.cuda.memory.peers import Peers
from peergrid.runtime.cuda.memory.reductions import ReductionMemory, reduction_bytes
from peergrid.runtime.cuda.memory.room import gpu_model, multiprocessors
from peergrid.runtime.cuda.memory.sharing import Sharing
from peergrid.runtime.cuda.memory.words import DeviceWords, FlagWords, HostWords
from peergrid.schedule import Layout
from peergrid.schedule.ops import Copy, Flag, Op, Queue, Semaphore, SignalOp, SignalWait

SECOND = 1_000_000_000
MOST_BARRIERS = 16
Made = TypeVar("Made")
Table = NDArray[Any]


class ExecutionContext:
    """The resources of one executor.

    norms: None unless the norm of a field is asked for; gpu: the model that kernels are chosen for; multiprocessors: of
    each device; semaphores: the words that order queues of different GPUs; step_seconds, timeout: see `duration`.

    least: the shortest timeout in seconds; cache: a folder for compiled kernels; sources: one for their texts;
    processes: those among which the devices are divided, if there are several; own: what makes the passes, if they are
    no stencil's.
    """

    def __init__(
        self,
        driver: CudaDriver,
        layout: Layout,
        total_steps: int,
        ordinals: tuple[int, ...],
        least: float,
        cache: Path | None,
        norm: str | None = None,
        sources: Path | None = None,
        processes: Processes | None = None,
        own: OwnKernel | None = None,
    ) -> None:
        self.layout, self.own = layout, own
        self.devices = Devices(driver, ordinals, processes)
        try:
            self.programs = Programs(self.devices, cache, sources)
        except BaseException:
            self.devices.close()
            raise
        try:
            mine = self.devices.mine
            self.step_seconds = step_seconds(layout, ordinals, driver, mine)
            self.timeout = timeout(least, self.step_seconds, layout)
            self.gpu = gpu_model(tuple(ordinals[device] for device in mine), driver)
            self.multiprocessors = multiprocessors(ordinals, driver, mine)
            plan = Plan(layout, total_steps, self.gpu)
            records = reduction_bytes(layout, total_steps)
            sums = [0] * layout.devices if norm is None else norm_bytes(layout, norm, total_steps)
            tables = [0 if own is None else own.bytes(layout.partition.owned(d)) for d in range(layout.devices)]
            plan.check(self.devices, list(map(sum, zip(records, sums, tables, strict=True))))
            self.peers = Peers(self.devices)
            self._sharing = Sharing(self.devices, layout)
            self.memory = FieldMemory(plan, self.devices, self._sharing)
            self.norms = None if norm is None else NormMemory(layout, self.devices, norm, total_steps)
            self.reductions = ReductionMemory(layout, self.devices, total_steps)
            words = service.REPORT * (1 + self.devices.count)
            self.fault_log_address = self.devices.zeroed_host(words * 8)
            self.fault_log = host_words(self.fault_log_address, words)
        except BaseException:
            self.close()
            raise
        self.words = np.zeros(LINE * (1 + MOST_BARRIERS), np.int64)
        self._barriers: dict[tuple[int, ...], int] = {}
        self._flags: dict[int, FlagWords] = {}
        self._shared_flags: dict[int, FlagWords] = {}
        self.semaphores = HostWords(self.devices)
        self.message_words = HostWords(self.devices, shared=False)
        self._made: dict[Hashable, object] = {}

    @property
    def timeout_ns(self) -> int:
        """Nanoseconds that a waiting kernel spins before it gives up."""
        return int(self.timeout * SECOND)

    @property
    def abort_address(self) -> int:
        """The word that stops every host thread."""
        return int(self.words.ctypes.data)

    def utility_kernel(self, device: int, name: str) -> int:
        """One of the small kernels on a device."""
        return self.programs.function(device, service.SOURCE, name)

    def arguments(
        self,
        device: int,
        box: Box,
        given: Arguments | None = None,
        *,
        regions: Table | None = None,
        receivers: Table | None = None,
    ) -> NDArray[Any]:
        """The arguments of a device's kernels for the cells of a box, shape (1,); given: as a problem of parts of the
        run's takes them; regions, receivers: tables that a kernel works through, of which `count` is the length.
        """
        values = self._arguments(device, box, given)
        for name, table in (("receivers", receivers), ("regions", regions)):
            if table is not None and len(table):
                values[name], values["count"] = self.devices.constant(device, table), len(table)
        return values

    def _arguments(self, device: int, box: Box, given: Arguments | None) -> NDArray[Any]:
        """The same without tables."""
        whole = self.once(("arguments", device), lambda: self.memory.template(device)).copy()
        whole["lo"][0, : box.ndim], whole["hi"][0, : box.ndim] = box.lo, box.hi
        if given is None:
            return whole
        values = np.zeros(1, given.dtype)
        for name in given.dtype.names or ():
            if name != "scratch" or given.scratch:
                values[name] = given.corners if name == "corners" else whole[name]
        return values

    def flag(self, flag: Flag) -> int:
        """The address of a flag: on its device where all that exchange with it reach it, else in host memory."""
        if flag in self._shared_flags.get(flag.device, ()):
            return self._shared_flags[flag.device].address(flag)
        if flag.device not in self._flags:
            others = {h.source for h in self.layout.halos if h.target == flag.device} - {flag.device}
            near = all(self.peers.reaches(other, flag.device) for other in others)
            self._flags[flag.device] = DeviceWords(self.devices, flag.device) if near else HostWords(self.devices)
        return self._flags[flag.device].address(flag)

    def share_flags(self, ops: Iterable[Op]) -> None:
        """Give the flags of a schedule's operations words that all processes find; all call it, with the same ones."""
        for op in ops:
            if isinstance(op, SignalOp | SignalWait):
                device, sharing = op.flag.device, self._sharing
                words = self._shared_flags.setdefault(device, DeviceWords(self.devices, device, sharing))
                (self.semaphores if isinstance(op.flag, Semaphore) else words).address(op.flag)

    def semaphores_reach(self, source: int, target: int) -> bool:
        """True where words in memory say how far the queues of another GPU are; events do where they cannot."""
        ends = {self.devices.ordinals[device] for device in (source, target)}
        able = all(self.devices.driver.awaits_words(ordinal) for ordinal in ends)
        return len(ends) == 2 and able and self.peers.reaches(source, target)

    def step_counter(self, queue: Queue) -> int:
        """The address of the word that counts a queue's time steps when graphs are replayed."""
        return self.once(("step counter", queue), lambda: self.devices.allocate(queue.device, 8))

    def barrier(self, hosts: tuple[int, ...]) -> int:
        """The address of the word that counts arrivals at a barrier of hosts."""
        number = self._barriers.setdefault(hosts, len(self._barriers))
        return self.abort_address + 8 * LINE * (1 + number)

    def staging(self, op: Copy, count: int) -> int:
        """Pinned memory for one halo on its way through the host; the same for every iteration."""
        key = ("staging", op.field, op.source_device, op.source_box, op.target_device, op.target_box, op.slot)
        return self.once(key, lambda: self.devices.allocate_host(count))

    def message_buffer(self, flag: Flag, number: int, count: int) -> int:
        """Memory for one message on its way, the same for every schedule that has as large ones: pinned, or the GPU's
        where messages are carried from there.
        """
        processes, devices = self.devices.processes, self.devices
        if processes is not None and processes.direct:
            return self.once(("message", flag, number, count), lambda: devices.allocate(flag.device, count))
        return self.once(("message", flag, number, count), lambda: devices.allocate_host(count))

    def once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """The object made under a key, made now if there is none."""
        if key not in self._made:
            self._made[key] = make()
        return cast(Made, self._made[key])

    def close(self) -> None:
        try:
            self.programs.close()
        finally:  # a second Ctrl-C ends the waiting, not the giving back
            self.devices.close()
