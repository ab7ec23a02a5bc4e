"""Repeated products on GPUs with the vector in one range of addresses; each GPU has access to the part that its rows
read.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

import numpy as np

from peergrid.arguments import check_steps
from peergrid.codegen.cache import default_cache
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.errors import UsageError
from peergrid.runtime.cuda.commands.buffer import CommandBuffer
from peergrid.runtime.cuda.commands.issue import issue
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.own_kernel import IN_STREAMS, Place, place_of
from peergrid.schedule.ops import Event, Queue
from peergrid.sparse.address_range import OneRange
from peergrid.sparse.gpus import GpuProduct
from peergrid.sparse.matrix import CsrMatrix, Numbers
from peergrid.sparse.problem import as_vector, products, split
from peergrid.sparse.sliced import SlicedMatrix

AT_ONCE = 256  # pairs of products issued before the host waits


class RangeProducts:
    """A vector that is multiplied with a matrix repeatedly, with the same bits as `Products`.

    Nothing is copied: a device reads the numbers of others in place. A product begins when all devices have finished
    the one before.

    Args:
        matrix, vector: as in `Products`.
        devices: GPUs of one process that reach each other's memory.
        reach: the distances left and right of the diagonal that rows may read; None: those of the nonzeros. A device
            is granted access to the parts of devices that lie as near: reading another is a DeviceFault.

    Raises UsageError if the devices do not support such a range.
    """

    def __init__(
        self,
        matrix: CsrMatrix | SlicedMatrix,
        vector: Numbers,
        devices: str | Place = "cuda",
        reach: tuple[int, int] | None = None,
    ) -> None:
        place = place_of(devices, None, IN_STREAMS)
        if place.devices.kind != "cuda" or place.ranks is not None:
            raise UsageError(f"GPUs of one process are expected here, got {place.devices}.")
        problem = products(matrix, as_vector(matrix, vector))
        partition = split(problem, matrix, place.devices.count)
        self.step, self._matrix = 0, matrix
        self._driver = place.driver or CudaDriver()
        self._owned = [partition.owned(device) for device in range(place.devices.count)]
        self._kernel, self._arguments = GpuProduct(matrix, problem), Arguments(problem)
        self._devices = Devices(self._driver, place.devices.ordinals)
        try:
            with self._driver.kept_current():
                self._allocate(problem.itemsize, matrix.reach if reach is None else reach)
        except BaseException:
            self.close()
            raise
        self.set(vector)

    def set(self, vector: Numbers) -> None:
        """Continue from another vector."""
        with self._driver.kept_current():
            self._slots[self.step % 2].upload(as_vector(self._matrix, vector))

    def advance(self, steps: int) -> None:
        """Make products and wait for them. Raises DeviceFault if a device reads memory without access."""
        check_steps(steps)
        pairs, rest = divmod(steps, 2)
        with self._driver.kept_current():
            for begun in range(0, pairs, AT_ONCE):
                self._issue(self._two[self.step % 2], min(AT_ONCE, pairs - begun))
            self._issue(self._one[self.step % 2], rest)
        self.step += steps

    def vector(self) -> Numbers:
        """The vector now."""
        found: Numbers = np.empty(self._matrix.rows, self._matrix.values.dtype)
        with self._driver.kept_current():
            self._slots[self.step % 2].download(found)
        return found

    def close(self) -> None:
        """Free all resources."""
        self._devices.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def _allocate(self, size: int, reach: tuple[int, int]) -> None:
        """Both ranges, the tables of rows and the calls of products; size: bytes of a number."""
        sizes = [size * (box.hi[0] - box.lo[0]) for box in self._owned]
        self._slots = [OneRange.over(self._devices, sizes) for _ in range(2)]
        for one in self._slots:
            one.grant([(size * max(0, box.lo[0] - reach[0]), size * (box.hi[0] + reach[1])) for box in self._owned])
        self._tables = [self._kernel.tables(self._devices, device, box) for device, box in enumerate(self._owned)]
        self._one, self._two = ([self._products(source, n) for source in (0, 1)] for n in (1, 2))

    def _issue(self, commands: CommandBuffer, times: int) -> None:
        """Make products, and wait for them."""
        issue(self._devices, commands, "A product over one range of addresses", times)
        self._devices.synchronize()

    def _products(self, source: int, count: int) -> CommandBuffer:
        """The calls of one product or two, the first from a slot to the other."""
        commands = CommandWriter(self._devices)
        for number in range(count):
            self._product(commands, (source + number) % 2)
        return commands.finish()

    def _product(self, commands: CommandWriter, source: int) -> None:
        """The calls of a product from one slot to the other: waits for all devices, then launches."""
        devices, kernel, program = self._devices, self._kernel, self._kernel.program
        queues = [Queue(device, "products") for device in range(devices.count)]
        for queue in queues:
            for other in range(devices.count):
                if other != queue.device:
                    commands.wait(-1, queue, Event(other, "product"))
        for device, box in enumerate(self._owned):
            code = devices.driver.compile(program.source, devices.architecture(device), default_cache() / "cubin", None)
            values = np.zeros(1, self._arguments.dtype)
            values["fields"]["slot"][0, 0] = [one.address for one in self._slots]
            values["source"], values["target"] = source, 1 - source
            values["lo"][0, 0], values["hi"][0, 0] = box.lo[0], box.hi[0]
            commands.launch(
                -1,
                queues[device],
                devices.function(device, code, program.entry),
                kernel.blocks(box),
                program.threads,
                values,
                shared=program.shared_bytes,
                more=(self._tables[device],),
            )
            commands.record(-1, queues[device], Event(device, "product"))
