"""A sparse matrix times a vector over all GPUs: the vector in one range over them, or a copy of it on each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from peergrid.errors import DeviceFault
from peergrid.probe.cuda.devices import Gpus, Scope, Stream, u32, u64
from peergrid.probe.cuda.timing import Gate, Work
from peergrid.probe.cuda.vmm import mapped, over_all
from peergrid.probe.experiment import Bench, Measurement, Probe, result

WIDTH, THREADS = 16, 256
BANDS = {"near the diagonal": 4096, "anywhere": 0}


def run(bench: Bench) -> Iterator[Measurement]:
    """Nonzeros per second for both kinds of matrix and each way to hold the vector; the results must agree."""
    devices: Gpus = bench.devices
    everyone, step = range(len(devices)), over_all(devices)
    each = -(-(bench.choose(4, 16) << 20) // step) * step
    with mapped(devices, everyone, each, everyone) as base, devices.scope() as scope:
        for device in everyone:
            values = np.random.default_rng(device).random(each // 4, np.float32)
            devices.put(device, base + device * each, values)
        parts = [Part.make(scope, device, each, len(devices)) for device in everyone]
        gate = Gate.make(scope, everyone)
        for columns, band in BANDS.items():
            for part in parts:
                part.fill(band)
            yield from _ways(bench, gate, parts, base, columns)


@dataclass(frozen=True, slots=True)
class Part:
    """The rows of one GPU: matrix, result, a copy of the whole vector, and a stream."""

    devices: Gpus
    stream: Stream
    columns: int
    values: int
    y: int
    copy: int
    rows: int
    total: int

    @classmethod
    def make(cls, scope: Scope, device: int, each: int, parts: int) -> Part:
        """Memory for `each / 4` rows of `parts` times as many columns."""
        rows = each // 4
        columns, values = (scope.memory(device, each * WIDTH) for _ in range(2))
        y, copy = scope.memory(device, each), scope.memory(device, each * parts)
        return cls(scope.devices, scope.stream(device), columns, values, y, copy, rows, rows * parts)

    @property
    def grid(self) -> int:
        """Blocks that cover the rows."""
        return -(-self.rows // THREADS)

    def fill(self, band: int) -> None:
        """Draw the matrix, and wait."""
        device = self.stream.device
        kernel = self.devices.kernel(device, "sparse", "fill_rows")
        shape = u32(self.rows), u32(WIDTH), u32(device * self.rows), u32(self.total), u32(band)
        kernel(self.stream, self.grid, THREADS, u64(self.columns), u64(self.values), *shape)
        self.devices.wait(device)

    def multiply(self, x: int) -> Work:
        """Work that multiplies with the vector at `x`."""
        kernel = self.devices.kernel(self.stream.device, "sparse", "multiply")
        places = u64(self.columns), u64(self.values), u64(x), u64(self.y)

        def work(stream: Stream) -> None:
            kernel(stream, self.grid, THREADS, *places, u32(self.rows), u32(WIDTH))

        return work

    def gather(self, base: int) -> Work:
        """Work that copies the whole range to this GPU, then multiplies with the copy."""
        multiply = self.multiply(self.copy)

        def work(stream: Stream) -> None:
            self.devices.use(stream.device)
            for at in range(0, 4 * self.total, 4 * self.rows):
                self.devices.call("cuMemcpyAsync", self.copy + at, base + at, 4 * self.rows, stream.handle)
            multiply(stream)

        return work

    def result(self) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """The rows of the product that this GPU has."""
        return self.devices.read(self.stream.device, self.y, self.rows, np.float32)


def _ways(bench: Bench, gate: Gate, parts: Sequence[Part], base: int, columns: str) -> Iterator[Measurement]:
    nonzeros = sum(part.rows for part in parts) * WIDTH
    ways = {
        "one range": [part.multiply(base) for part in parts],
        "gathered": [part.gather(base) for part in parts],
        "replicated": [part.multiply(part.copy) for part in parts],
    }
    products = []
    for way, works in ways.items():
        pairs = [(part.stream, work) for part, work in zip(parts, works, strict=True)]
        rates = [nonzeros / max(seconds) for seconds in gate.samples(pairs, bench.choose(3, 9))]
        products.append([part.result() for part in parts])
        yield result("sparse_rate", "nonzeros/s", rates, {"columns": columns, "vector": way}, floor=0.03)
    for product in products[1:]:
        if not all(np.array_equal(a, b) for a, b in zip(products[0], product, strict=True)):
            raise DeviceFault("The product over one range should equal the one over a copy, but differs: check links.")


PROBE = Probe(
    name="sparse",
    group="memory",
    title="A sparse matrix times a vector over all GPUs: the vector in one range, or copied to each",
    unit="nonzeros/s",
    method=(
        "Rows of sixteen nonzeros, four million of them per GPU (quick: one million), all GPUs at once behind a gate "
        "kernel, timed by events, the slowest counts. 'One range': columns are read where they lie; 'gathered': the "
        "whole vector is copied to every GPU first, as each step of an iteration needs; 'replicated': it is there "
        "already. The three products must be the same to the bit."
    ),
    run=run,
    gpus=2,
)
