"""A machine as frozen data: packages, memory, GPUs, the links between them, and what is missing.

Every rate is in bytes per second and one direction, every clock in hertz, every size in bytes.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cache:
    """One level of the CPU's cache: `instances` of `size` bytes, each shared by `shared_by` threads."""

    level: int
    kind: str
    size: int
    line: int
    instances: int
    shared_by: int


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processors of the host; `usable` are the logical CPUs this process may run on."""

    model: str
    architecture: str
    packages: int
    cores: int
    threads: int
    usable: tuple[int, ...]
    caches: tuple[Cache, ...]


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node; `distances[j]` is the kernel's relative distance to node j (10 is local)."""

    index: int
    cpus: tuple[int, ...]
    memory: int
    distances: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PcieLink:
    """The connection of a GPU to the host: generation, lanes, and the line rate of one direction."""

    generation: int
    lanes: int
    rate: float


@dataclass(frozen=True, slots=True)
class Gpu:
    """One GPU. `path` are the PCI addresses from the root port down to it; `memory_rate` is theoretical.

    `near_cpus` are the logical CPUs on its side of the host, `bound` says that this process runs on these
    alone. `advice` names the kind of memory that buffers shared with the host should use on it.
    """

    index: int
    name: str
    uuid: str
    pci: str
    path: tuple[str, ...]
    capability: str
    multiprocessors: int
    memory: int
    memory_rate: float
    l2: int
    clock: float
    copy_engines: int
    integrated: bool
    numa: int | None
    near_cpus: tuple[int, ...]
    bound: bool
    pcie: PcieLink | None
    advice: str
    flush: str


@dataclass(frozen=True, slots=True)
class Link:
    """`count` parallel lines of one kind between a GPU and another GPU (`target`) or a switch (None)."""

    source: int
    target: int | None
    kind: str
    generation: str
    count: int
    rate: float


@dataclass(frozen=True, slots=True)
class Peer:
    """The access of GPU `source` to the memory of GPU `target`.

    `arrives`: a copy was read back correctly, as reported peer access may not work
    (None: not tried). `nearest` is the closest common ancestor in the PCIe tree.
    """

    source: int
    target: int
    access: bool
    atomics: bool
    rank: int
    nearest: str
    arrives: bool | None


@dataclass(frozen=True, slots=True)
class Software:
    """Versions in force; an empty string means that the part is not there."""

    system: str
    python: str
    driver: str
    cuda: str
    bindings: str
    core: str
    nvrtc: str


@dataclass(frozen=True, slots=True)
class Setting:
    """An environment setting in force, what it means, and what it costs (empty: nothing known)."""

    name: str
    value: str
    meaning: str
    cost: str


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that this description lacks, and the reason."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine: the host, its GPUs, their links, the software, and the items that could not be read."""

    memory: int
    cpu: Cpu
    nodes: tuple[NumaNode, ...]
    gpus: tuple[Gpu, ...]
    links: tuple[Link, ...]
    peers: tuple[Peer, ...]
    software: Software
    settings: tuple[Setting, ...]
    missing: tuple[Missing, ...]

    @property
    def label(self) -> str:
        """A short name such as '8 × NVIDIA H200, 2 × Xeon 8480C': equal machines have equal labels."""
        names = [gpu.name for gpu in self.gpus]
        groups = [f"{names.count(name)} × {name}" for name in dict.fromkeys(names)]
        host = f"{self.cpu.packages} × {self.cpu.model} ({self.cpu.cores} cores)"
        return ", ".join([*groups, host])
