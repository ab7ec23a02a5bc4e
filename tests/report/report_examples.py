"""Made-up profiles: of a host alone, and of two GPUs with one number of every kind."""

from __future__ import annotations

from peergrid.machine import Cpu, Gpu, Link, Machine, Missing, NumaNode, Setting, Software
from peergrid.probe.experiment import Measurement, Scalar, result
from peergrid.probe.profile import Outcome, Profile, new


def number(quantity: str, unit: str, value: float, **at: Scalar) -> Measurement:
    """A result with three samples."""
    return result(quantity, unit, [value, value * 1.01, value * 1.02], at)


def outcome(group: str, *results: Measurement, status: str = "done", reason: str = "") -> Outcome:
    """An experiment of a group with these results."""
    return Outcome(f"{group}-x", group, f"Some {group} & more", "s", "By hand.", status, reason, 1.0, results)


def machine(gpus: int) -> Machine:
    """A host with H200-like GPUs on a switch."""
    cpu = Cpu("Some CPU", "x86_64", 1, 4, 4, (0, 1), ())
    found = tuple(
        Gpu(i, "NVIDIA H200", f"G{i}", f"0000:0{i}:00.0", (f"0000:0{i}:00.0",), "9.0", 132, 141 << 30, 4.8e12,
            60 << 20, 1.98e9, 3, False, None, (), False, None, "device", "none")
        for i in range(gpus)
    )  # fmt: skip
    links = tuple(Link(i, None, "NVLink switch", "4", 18, 450e9) for i in range(gpus))
    settings = (Setting("NCCL_P2P_DISABLE", "1", "no peers", "through the host"),)
    missing = () if gpus else (Missing("GPUs", "no <driver>"),)
    software = Software("Linux", "3.12", "580", "13.0", "", "", "")
    nodes = (NumaNode(0, (0, 1), 1 << 34, (10,)),)
    return Machine(1 << 34, cpu, nodes, found, links, (), software, settings, missing)


def host_only() -> Profile:
    """What a machine without GPUs gives."""
    host = outcome(
        "host",
        number("host_copy_bandwidth", "B/s", 2e10, threads=1),
        number("host_copy_bandwidth", "B/s", 3e10, threads=2),
        number("host_flag_latency", "s", 8e-8, place="next"),
    )
    links = outcome("links", status="impossible", reason="needs 2 GPUs, and this machine has none")
    return new(machine(0), (host, links), quick=True)


def two_gpus() -> Profile:
    """One number of every kind that the sentences and the papers look for."""
    pairs = [(0, 1), (1, 0)]
    links = outcome(
        "links",
        *(
            number("peer_copy_bandwidth", "B/s", rate, route="copy engine", ways=1, source=i, target=j)
            for (i, j), rate in zip(pairs, (3.96e11, 1.0e11), strict=True)
        ),
        number("peer_message_time", "s", 2.9e-6, route="copy engine", bytes=1024),
        number("peer_message_time", "s", 9.9e-6, route="copy engine", bytes=1 << 20),
    )
    memory = outcome(
        "memory",
        number("load_latency", "cycles", 644, place="own", modifier="cv", footprint=1 << 20, stride=128),
        number("load_latency", "cycles", 2771, place="remote", modifier="cv", footprint=1 << 20, stride=128),
        number("loads_to_hide", "", 16),
    )
    order = outcome(
        "atomics and order",
        result("stale_reads", "", [5.0], {"writer": "peer", "fence": "without"}),
        result("stale_reads", "", [0.0], {"writer": "peer", "fence": "with"}),
        number("remote_atomic_rate", "atomics/s", 1.4e9, place="own", words="one word"),
        number("remote_atomic_rate", "atomics/s", 3.7e8, place="remote", words="one word"),
    )
    barriers = outcome(
        "synchronisation",
        number("launch_overhead", "s", 9e-7, how="plain"),
        *(
            number("grid_barrier", "s", 1e-6 * n, blocks_per_multiprocessor=n, threads=t)
            for n in (1, 2)
            for t in (32, 256)
        ),
        number("device_barrier", "s", 4e-6, devices=2, blocks_per_multiprocessor=1, threads=256),
        number("host_side_barrier", "s", 1.9e-5, devices=2, by="one thread"),
        number("host_side_barrier", "s", 9e-6, devices=2, by="a thread per GPU"),
        number("invented_by_a_later_version", "s", 4e-6, what="new"),
    )
    model = outcome(
        "model",
        number("switch_point", "B", 9000, scenario="32 → 1024 threads", way="predicted"),
        number("switch_point", "B", 18000, scenario="32 → 1024 threads", way="measured"),
    )
    return new(machine(2), (links, memory, order, barriers, model), quick=False)
