"""Made-up machines: no GPU, two GPUs on direct NVLink, eight on a switch."""

from __future__ import annotations

from peergrid.machine.model import (
    Cache,
    Cpu,
    Gpu,
    Link,
    Machine,
    Missing,
    NumaNode,
    PcieLink,
    Peer,
    Setting,
    Software,
)

CPU = Cpu("Some CPU", "x86_64", 2, 64, 128, tuple(range(128)), (Cache(3, "Unified", 32 << 20, 64, 8, 16),))
NODES = (NumaNode(0, tuple(range(64)), 1 << 38, (10, 21)), NumaNode(1, tuple(range(64, 128)), 1 << 38, (21, 10)))
SOFTWARE = Software("Linux 6", "3.12.3", "580.1", "13.0", "13.0.3", "1.0", "13.0")


def gpu(index: int, numa: int | None, *, bound: bool = False) -> Gpu:
    """An H200-like GPU below its own bridge."""
    pci = f"0000:{index + 0x10:02x}:00.0"
    path = (f"0000:0{index}:01.0", pci)
    return Gpu(
        index=index,
        name="NVIDIA H200",
        uuid=f"GPU-{index}",
        pci=pci,
        path=path,
        capability="9.0",
        multiprocessors=132,
        memory=141 << 30,
        memory_rate=4.8e12,
        l2=60 << 20,
        clock=1.98e9,
        copy_engines=3,
        integrated=False,
        numa=numa,
        near_cpus=NODES[numa or 0].cpus,
        bound=bound,
        pcie=PcieLink(5, 16, 63e9),
        advice="device memory",
        flush="flush by host call",
    )


def without_gpu() -> Machine:
    """The CPU side alone."""
    missing = (Missing("GPUs", "no driver library"),)
    return Machine(1 << 39, CPU, NODES, (), (), (), SOFTWARE, (), missing)


def with_gpus(count: int, *, switched: bool, broken: tuple[tuple[int, int], ...] = ()) -> Machine:
    """`count` GPUs, all reachable; pairs in `broken` report access, but the copy does not arrive."""
    gpus = tuple(gpu(index, index * 2 // count) for index in range(count))
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    direct = tuple(Link(i, j, "NVLink", "2", 2, 50e9) for i, j in pairs)
    hung = tuple(Link(i, None, "NVLink switch", "4", 18, 450e9) for i in range(count))
    peers = tuple(Peer(i, j, True, True, 0, "NUMA node", (i, j) not in broken) for i, j in pairs)
    settings = (Setting("NCCL_P2P_DISABLE", "1", "no peer access", "everything goes through the host"),)
    return Machine(1 << 39, CPU, NODES, gpus, hung if switched else direct, peers, SOFTWARE, settings, ())
