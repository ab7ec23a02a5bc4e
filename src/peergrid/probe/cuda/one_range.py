"""One contiguous range over the memory of all GPUs: how fast each GPU reads each part of it."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.probe.cuda.devices import Gpus, Stream, u64
from peergrid.probe.cuda.timing import Gate, Work
from peergrid.probe.cuda.vmm import mapped, over_all
from peergrid.probe.experiment import Bench, Measurement, Probe, result


def run(bench: Bench) -> Iterator[Measurement]:
    """Reader by owner, then the whole range by each reader."""
    devices: Gpus = bench.devices
    everyone, step = range(len(devices)), over_all(devices)
    each = (bench.choose(64, 256) << 20) // step * step
    with mapped(devices, everyone, each, everyone) as base, devices.scope() as scope:
        gate = Gate.make(scope, everyone)
        for reader in everyone:
            stream, sink = scope.stream(reader), scope.memory(reader, 16)
            parts = {str(owner): (base + owner * each, each) for owner in everyone}
            parts["all"] = (base, each * len(devices))
            for owner, (start, size) in parts.items():
                work = reading(devices, reader, start, size, sink)
                rates = [size / s for (s,) in gate.samples([(stream, work)], bench.choose(3, 7))]
                yield result("range_bandwidth", "B/s", rates, {"reader": reader, "owner": owner}, floor=0.05)


def reading(devices: Gpus, reader: int, start: int, size: int, sink: int) -> Work:
    """Work of a kernel that reads a piece of memory once."""
    kernel = devices.kernel(reader, "copy", "read_all")
    grid = devices.attribute("MULTIPROCESSOR_COUNT", reader) * 4

    def work(stream: Stream) -> None:
        kernel(stream, grid, 512, u64(start), u64(size // 16), u64(sink))

    return work


PROBE = Probe(
    name="one-range",
    group="memory",
    title="Bandwidth of one contiguous range over all GPUs, as seen from each",
    unit="B/s",
    method=(
        "Physical memory of every GPU is mapped into one virtual range with access for all; a kernel on each GPU "
        "reads each part, and the whole, with 16-byte loads behind a gate kernel, timed by events."
    ),
    run=run,
    gpus=1,
)
