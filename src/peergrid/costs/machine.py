"""A machine as costs see it: a few figures of its GPUs, its links and its host."""

from __future__ import annotations

from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Line:
    """A route for bytes: the seconds of an empty message, the bytes per second of a large one."""

    latency: float
    bandwidth: float

    def seconds(self, count: float) -> float:
        return self.latency + count / self.bandwidth


@dataclass(frozen=True)
class Calls:
    """The time of a host for a call of the driver, in seconds.

    launch: of a kernel; event: to record one or to wait for one; words: of stream memory operations; copy: of a copy;
    graph: to launch a graph; sync: from the end of a queue to the host that waits for it; barrier: of hosts; beside:
    the factor by which calls take longer while another thread makes some.
    """

    launch: float = 2.0e-6
    event: float = 0.8e-6
    words: float = 1.2e-6
    copy: float = 2.2e-6
    graph: float = 8.0e-6
    sync: float = 6.0e-6
    barrier: float = 0.5e-6
    beside: float = 1.15


@dataclass(frozen=True)
class Delays:
    """The delays of a queue in addition to its work, in seconds.

    start: of a kernel, to its first instruction and from its last one to its end; node: the same in a graph; graph: of
    a graph, to its first node; arrival: from a call of the host to the queue; event: until another queue of the device
    sees an event; engine: from a kernel to a copy engine and back to a kernel; words: until another GPU sees a word;
    grid: a barrier of all blocks of a GPU; neighbour: the same with the neighbours' flags.
    """

    start: float = 2.2e-6
    node: float = 1.6e-6
    graph: float = 2.0e-6
    arrival: float = 2.0e-6
    event: float = 1.0e-6
    engine: float = 6.1e-6
    words: float = 2.5e-6
    grid: float = 0.9e-6
    neighbour: float = 1.3e-6


@dataclass(frozen=True)
class Machine:
    """GPUs of one kind on one or several hosts.

    gpus: on a host; multiprocessors, clock, lanes: of a GPU, cycles per second, float32 results of a multiprocessor in
    a cycle; double: times as long in float64; memory: bytes of a GPU; reserved: those of it that the driver keeps;
    bandwidth: of its memory, bytes read plus written; cache, cache_bandwidth: the same of its last cache; piece: bytes;
    a copy engine takes as long for shorter contiguous runs; copy, store, host: the routes between two GPUs; network:
    between hosts; measured: by `peergrid probe`, else from data sheets; source: where the figures are from.
    """

    name: str
    gpu: str
    gpus: int
    multiprocessors: int
    clock: float
    memory: int
    bandwidth: float
    copy: Line
    store: Line
    host: Line
    measured: bool
    source: str
    lanes: int = 128
    double: float = 2.0
    reserved: int = 600 << 20
    piece: int = 1 << 10
    cache: int = 50 << 20
    cache_bandwidth: float = 6.0e12
    network: Line | None = None
    nodes: int = 1
    shared_bytes: int = 227 << 10
    calls: Calls = field(default_factory=Calls)
    delays: Delays = field(default_factory=Delays)

    @property
    def arithmetic(self) -> float:
        """Float32 results of a GPU in a second."""
        return self.multiprocessors * self.lanes * self.clock

    def with_gpus(self, gpus: int, nodes: int = 1, network: Line | None = None) -> Machine:
        """The machine with so many GPUs on each of so many hosts."""
        return replace(self, gpus=gpus, nodes=nodes, network=network or self.network)
