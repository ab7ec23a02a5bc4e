"""The description as text: a tree of nodes, switches and GPUs, then links, peers, settings, missing items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from peergrid.machine import units
from peergrid.machine.host import as_list
from peergrid.machine.model import Cache, Gpu, Link, Machine, NumaNode, PcieLink, Peer, Setting


def text(machine: Machine) -> str:
    """The machine as text, one fact per line."""
    parts = [
        _host(machine),
        *_tree(machine),
        *_section("Links", [_link(link) for link in _distinct(machine.links)]),
        *_section("Peers (row reads and writes the memory of column)", _peers(machine)),
        *_section("Software", _software(machine)),
        *_section("Settings in force", [line for setting in machine.settings for line in _setting(setting)]),
        *_section("Missing", [f"{item.what}: {item.why}" for item in machine.missing]),
    ]
    return "\n".join(parts) + "\n"


def binding(gpu: Gpu, usable: Sequence[int]) -> str:
    """A sentence on whether the threads of this process, and of a run, are bound to the CPUs near a GPU."""
    if not gpu.near_cpus:
        return "the CPUs near it are unknown, so a run binds no threads"
    if gpu.bound:
        return "this process is bound to the CPUs near it, and so is a run"
    if set(gpu.near_cpus) & set(usable):
        return "this process is not bound to the CPUs near it; a run binds the thread that serves it"
    return "this process may not use the CPUs near it, and neither may a run"


def _host(machine: Machine) -> str:
    cpu = machine.cpu
    counts = f"{cpu.packages} package{'s' * (cpu.packages != 1)}, {cpu.cores} cores, {cpu.threads} threads"
    lines = [
        f"{cpu.model} ({cpu.architecture}): {counts}",
        f"  may use CPUs {as_list(cpu.usable)}",
        f"  memory {units.size(machine.memory)}",
        *(f"  {_cache(cache)}" for cache in cpu.caches),
    ]
    return "\n".join(lines)


def _cache(cache: Cache) -> str:
    kind = {"Data": "d", "Instruction": "i"}.get(cache.kind, "")
    shared = "" if cache.shared_by == 1 else f", each shared by {cache.shared_by} threads"
    return f"L{cache.level}{kind} {cache.instances} × {units.size(cache.size)}{shared}"


def _tree(machine: Machine) -> list[str]:
    lines = [""]
    for node in machine.nodes:
        below = [gpu for gpu in machine.gpus if (gpu.numa or 0) == node.index or len(machine.nodes) == 1]
        lines += [_node(node), *_gpus(below, machine.cpu.usable)]
    return lines


def _node(node: NumaNode) -> str:
    return f"NUMA node {node.index}: CPUs {as_list(node.cpus) or 'none'}, {units.size(node.memory)}"


def _gpus(gpus: Iterable[Gpu], usable: Sequence[int]) -> list[str]:
    """GPUs under the bridges of their PCI path; a bridge already written is not repeated."""
    lines: list[str] = []
    above: tuple[str, ...] = ()
    for gpu in sorted(gpus, key=lambda item: item.path):
        shared = next((at for at, (a, b) in enumerate(zip(above, gpu.path, strict=False)) if a != b), 0)
        bridges = enumerate(gpu.path[:-1])
        lines += ["  " * (at + 1) + f"bridge {address}" for at, address in bridges if at >= shared]
        indent = "  " * len(gpu.path)
        lines += [indent + line for line in _gpu(gpu, usable)]
        above = gpu.path
    return lines


def _gpu(gpu: Gpu, usable: Sequence[int]) -> list[str]:
    rate = units.quantity(gpu.memory_rate, "B/s") if gpu.memory_rate else "rate unknown"
    near = as_list(gpu.near_cpus) or "unknown"
    return [
        f"GPU {gpu.index}: {gpu.name}, capability {gpu.capability}, {gpu.multiprocessors} multiprocessors, "
        f"{units.size(gpu.memory)} at {rate} (theoretical), L2 {units.size(gpu.l2)}",
        f"  at {gpu.pci}, {_pcie(gpu.pcie)}, {gpu.copy_engines} copy engines",
        f"  near CPUs {near}; {binding(gpu, usable)}",
        f"  shared buffers: {gpu.advice}",
        f"  {gpu.flush}",
    ]


def _pcie(link: PcieLink | None) -> str:
    if link is None:
        return "PCIe link unknown"
    return f"PCIe {link.generation} × {link.lanes}, {units.quantity(link.rate, 'B/s')} each way"


def _distinct(links: Iterable[Link]) -> list[Link]:
    """Each link once, as a line between two GPUs is listed at both ends."""
    return [link for link in links if link.target is None or link.source < link.target]


def _link(link: Link) -> str:
    end = "the switch" if link.target is None else f"GPU {link.target}"
    rate = units.quantity(link.rate, "B/s")
    return f"GPU {link.source} – {end}: {link.count} × {link.kind} {link.generation}, {rate} each way"


def _peers(machine: Machine) -> list[str]:
    if not machine.peers:
        return []
    found = {(peer.source, peer.target): peer for peer in machine.peers}
    numbers = [gpu.index for gpu in machine.gpus]
    head = "      " + "".join(f"{j:>8}" for j in numbers)
    rows = [f"{i:>6}" + "".join(f"{_reach(found.get((i, j))):>8}" for j in numbers) for i in numbers]
    return [head, *rows, "yes: a copy was read back; atomic: remote atomics too; FAULT: reported, not working"]


def _reach(peer: Peer | None) -> str:
    if peer is None:
        return "–"
    if not peer.access:
        return "no"
    if peer.arrives is False:
        return "FAULT"
    return "atomic" if peer.atomics else "yes"


def _software(machine: Machine) -> list[str]:
    software = machine.software
    names = (
        ("system", software.system),
        ("Python", software.python),
        ("NVIDIA driver", software.driver),
        ("CUDA of the driver", software.cuda),
        ("cuda-bindings", software.bindings),
        ("cuda-core", software.core),
        ("NVRTC", software.nvrtc),
    )
    return [f"{name} {value or 'none'}" for name, value in names]


def _setting(setting: Setting) -> list[str]:
    lines = [f"{setting.name}={setting.value}: {setting.meaning}"]
    return [*lines, f"  costs: {setting.cost}"] if setting.cost else lines


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []
