"""NVML's NVLink counters around any region of code, and beside them the bytes that were sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from peergrid.machine import nvml
from peergrid.machine.counters import REFUSED, nvlink_bytes
from peergrid.probe.cuda.devices import Gpus
from peergrid.probe.cuda.timing import copies
from peergrid.probe.experiment import At, Bench, Impossible, Lack, Measurement, Probe, result

SIZE, REPEATS = 512 << 20, 16
COUNTERS = ("sent", "received")

Key = tuple[tuple[str, int | float | str], ...]


@dataclass(frozen=True, slots=True)
class Flow:
    """`size` bytes from the memory of one GPU to that of another."""

    source: int
    target: int
    size: int


@dataclass(frozen=True, slots=True)
class LinkCounters:
    """The counters of all GPUs; `why` says why there are none, and is empty if there are."""

    management: Any
    handles: tuple[Any, ...]
    why: str

    @classmethod
    @contextmanager
    def open(cls, devices: Gpus) -> Iterator[LinkCounters]:
        """A meter for the GPUs of this process; NVML is let go at the end."""
        with nvml.session() as (management, missing):
            if management is None:
                yield cls(None, (), f"NVML is needed, and {missing.why if missing else 'it is not there'}")
                return
            handles = tuple(nvml.of_device(management, devices.driver, device) for device in range(len(devices)))
            given = all(nvlink_bytes(management, handle) for handle in handles)
            yield cls(management, handles, "" if given else REFUSED)

    def counted(self, device: int) -> tuple[int, int]:
        """Bytes that a GPU sent and received over NVLink since the driver started.

        Raises:
            Impossible: NVML gives no counters (any more).
        """
        found = None if self.why else nvlink_bytes(self.management, self.handles[device])
        if found is None:
            raise Impossible(self.why or REFUSED)
        return found


@dataclass(frozen=True, slots=True)
class Tally:
    """Counted over sent bytes of an experiment, by the coordinates of its numbers."""

    experiment: str
    meter: LinkCounters
    ratios: dict[Key, list[float]] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def open(cls, devices: Gpus, experiment: str) -> Iterator[Tally]:
        """A tally with a meter of its own."""
        with LinkCounters.open(devices) as meter:
            yield cls(experiment, meter)

    @contextmanager
    def around(self, at: At, flows: Sequence[Flow]) -> Iterator[None]:
        """Count while the block runs, which sends `flows` and waits until they have arrived."""
        if self.meter.why:
            yield
            return
        parties = ({flow.source for flow in flows}, {flow.target for flow in flows})
        before = self._sums(parties)
        yield
        sent = sum(flow.size for flow in flows)
        for counter, first, last in zip(COUNTERS, before, self._sums(parties), strict=True):
            key = tuple((at | {"counter": counter}).items())
            self.ratios.setdefault(key, []).append((last - first) / sent)

    def results(self) -> Iterator[Measurement | Lack]:
        """One number per coordinates and counter, or why there are none."""
        if self.meter.why:
            yield Lack(f"NVLink counters: {self.meter.why}")
        for key, values in self.ratios.items():
            yield result("traffic_ratio", "", values, {"experiment": self.experiment, **dict(key)}, floor=0.005)

    def _sums(self, parties: tuple[set[int], set[int]]) -> tuple[int, int]:
        """Bytes counted as sent by all senders, and as received by all receivers."""
        counted = {device: self.meter.counted(device) for device in set().union(*parties)}
        senders, receivers = parties
        return sum(counted[device][0] for device in senders), sum(counted[device][1] for device in receivers)


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """Counted over sent bytes of one long copy, at the sender and at the receiver."""
    devices: Gpus = bench.devices
    if not devices.pairs():
        raise Impossible("no two GPUs of this machine can reach each other's memory")
    source, target = devices.pairs()[0]
    with Tally.open(devices, "traffic") as tally, devices.scope() as scope:
        if tally.meter.why:
            raise Impossible(tally.meter.why)
        a, b, stream = scope.memory(source, SIZE), scope.memory(target, SIZE), scope.stream(source)
        work = copies(devices, b, a, SIZE, REPEATS)
        work(stream)
        devices.wait(source)
        for _ in range(bench.choose(3, 7)):
            at: At = {"route": "copy engine", "source": source, "target": target}
            with tally.around(at, [Flow(source, target, SIZE * REPEATS)]):
                work(stream)
                devices.wait(source)
        yield from tally.results()


PROBE = Probe(
    name="traffic",
    group="links",
    title="NVML's NVLink counters against the bytes that a copy engine sent",
    unit="",
    method=(
        "The payload counters over all lines before and after 16 copies of 512 MiB, at the sender and at the "
        "receiver, over the bytes copied: 1 means that the counters are right. The other experiments on links "
        "read the same counters around their own copies."
    ),
    run=run,
    gpus=2,
)
