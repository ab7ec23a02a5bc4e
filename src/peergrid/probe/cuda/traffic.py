"""NVML's NVLink counters around copies of known size: do they count what was sent?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peergrid.machine import nvml
from peergrid.machine.driver import call
from peergrid.probe.cuda.devices import Devices
from peergrid.probe.cuda.timing import copies
from peergrid.probe.experiment import At, Bench, Impossible, Probe, Result, result

SIZE, REPEATS = 512 << 20, 16
ALL_LINES = 0xFFFFFFFF
KIB = 1024


def run(bench: Bench) -> Iterator[Result]:
    """Counted over sent bytes, at the sender and at the receiver."""
    devices: Devices = bench.devices
    if not devices.pairs():
        raise Impossible("no two GPUs of this machine can reach each other's memory")
    source, target = devices.pairs()[0]
    with nvml.session() as (management, missing), devices.scope() as scope:
        if management is None:
            raise Impossible(f"NVML is needed, and {missing.why if missing else 'it is not there'}")
        handles = [_handle(devices, management, device) for device in (source, target)]
        a, b, stream = scope.memory(source, SIZE), scope.memory(target, SIZE), scope.stream(source)
        work = copies(devices, b, a, SIZE, REPEATS)
        work(stream)
        devices.wait(source)
        ratios: dict[str, list[float]] = {"sent": [], "received": []}
        for _ in range(bench.choose(3, 7)):
            before = _counted(management, handles)
            work(stream)
            devices.wait(source)
            after = _counted(management, handles)
            for name, first, last in zip(ratios, before, after, strict=True):
                ratios[name].append((last - first) / (SIZE * REPEATS))
        for name, values in ratios.items():
            at: At = {"source": source, "target": target, "counter": name}
            yield result("traffic_ratio", "", values, at, floor=0.005)


def traffic(management: Any, handle: Any) -> tuple[int, int] | None:
    """Payload bytes that all NVLink lines of a GPU sent and received since the driver started; None if refused."""
    fields = (
        (management.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINES),
        (management.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINES),
    )
    values = nvml.attempt(management, None, "nvmlDeviceGetFieldValues", handle, fields)
    if values is None or any(value.nvmlReturn for value in values):
        return None
    return int(values[0].value.ullVal) * KIB, int(values[1].value.ullVal) * KIB


def _counted(management: Any, handles: list[Any]) -> tuple[int, int]:
    """Bytes sent by the first GPU and received by the second."""
    sender, receiver = (traffic(management, handle) for handle in handles)
    if sender is None or receiver is None:
        raise Impossible("NVML does not give the NVLink traffic counters of these GPUs (support or permission)")
    return sender[0], receiver[1]


def _handle(devices: Devices, management: Any, device: int) -> Any:
    raw = call(devices.driver, "cuDeviceGetPCIBusId", 32, device)
    return nvml.handle(management, nvml.short_pci(raw.split(b"\0")[0]))


PROBE = Probe(
    name="traffic",
    group="links",
    rows=("M8",),
    title="NVML's NVLink counters against the bytes that a copy engine sent",
    unit="",
    method=(
        "The payload counters over all lines before and after 16 copies of 512 MiB, at the sender and at the "
        "receiver, over the bytes copied: 1 means that the counters tell the truth."
    ),
    run=run,
    gpus=2,
)
