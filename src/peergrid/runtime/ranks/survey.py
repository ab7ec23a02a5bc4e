"""The processes that a launcher started, as `peergrid machine` describes them: where they run, and what connects
them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Any

from peergrid.errors import PeergridError, extra
from peergrid.runtime.devices import cores
from peergrid.runtime.ranks.gpus import Part, host, part, together
from peergrid.runtime.ranks.launcher import own_devices
from peergrid.runtime.ranks.ranks import Communicator, Ranks
from peergrid.runtime.ranks.settings import settings

ADAPTERS = Path("/sys/class/infiniband")
"""The folder in which Linux shows the adapters by which NCCL connects hosts without sockets."""
SOCKETS = ("NCCL_NET", "NCCL_IB_DISABLE")


@dataclass(frozen=True)
class RankFacts:
    """One rank. processors: those that it may use; gpus: the names that no other GPU has; nccl: its version, or why
    there is none; settings: as in `settings`; adapters: of InfiniBand and RoCE.
    """

    host: str
    process: int
    processors: tuple[int, ...]
    devices: str
    gpus: tuple[str, ...]
    nccl: str
    settings: Mapping[str, str]
    adapters: tuple[str, ...] = ()


@dataclass(frozen=True)
class Survey:
    """All ranks; edges: what halos between each two neighbours do; warnings: a sentence each."""

    mpi: str
    mpi4py: str
    threads: str
    ranks: tuple[RankFacts, ...]
    edges: tuple[str, ...]
    warnings: tuple[str, ...]

    def encoded(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)


def survey(comm: Communicator) -> Survey:
    """The facts of all ranks; every one of them calls it."""
    from mpi4py import MPI

    own = part(own_devices("auto", comm))
    facts = Ranks(comm).allgather(_facts(own))
    parts: list[Part] = Ranks(comm).allgather(own)
    try:
        by_address, refused = together(parts, comm.rank)[1], ""
    except PeergridError as error:
        by_address, refused = False, str(error)
    levels = {MPI.THREAD_SINGLE: "single", MPI.THREAD_FUNNELED: "funneled", MPI.THREAD_SERIALIZED: "serialized"}
    name = MPI.Get_library_version().split("\n")[0].strip("\0 ")
    threads = levels.get(MPI.Query_thread(), "multiple")
    edges = tuple(_edges(parts, by_address))
    return Survey(
        name, version("mpi4py"), threads, tuple(facts), edges, (*[refused] * bool(refused), *warnings_of(facts))
    )


def text(found: Survey) -> str:
    """The survey as lines."""
    lines = ["", f"Ranks ({len(found.ranks)})"]
    for number, rank in enumerate(found.ranks):
        gpus = f" ({', '.join(rank.gpus)})" if rank.gpus else ""
        cpus = ", ".join(map(str, rank.processors))
        lines.append(
            f"  rank {number} on {rank.host}, process {rank.process}, CPUs {cpus}, devices {rank.devices}{gpus}"
        )
    lines += ["", "What joins them", f"  {found.mpi} through mpi4py {found.mpi4py}, threads: {found.threads}"]
    lines += ["  GPU memory is given to MPI by --route mpi-direct alone, after a test message"]
    lines += [f"  NCCL {found.ranks[0].nccl}", *(f"  {edge}" for edge in found.edges)]
    settings = sorted({f"{key}={value}" for rank in found.ranks for key, value in rank.settings.items()})
    lines += ["", "Settings of MPI, NCCL and CUDA in force", *(f"  {line}" for line in settings)] if settings else []
    lines += ["", "Warnings", *(f"  {line}" for line in found.warnings)] if found.warnings else []
    return "\n".join(lines) + "\n"


def _facts(own: Part) -> RankFacts:
    affinity = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(cores())
    gpus = tuple(own.visible[ordinal] for ordinal in own.devices.ordinals) if own.devices.kind == "cuda" else ()
    name, found = host().split()[0], _nccl()
    adapters = tuple(sorted(path.name for path in ADAPTERS.iterdir())) if ADAPTERS.is_dir() else ()
    processors = tuple(sorted(affinity))
    return RankFacts(name, os.getpid(), processors, str(own.devices), gpus, found, settings(), adapters)


def _nccl() -> str:
    """The version of NCCL's package; else what is missing."""
    try:
        return f"by nccl4py {version('nccl4py')}: --route nccl"
    except PackageNotFoundError:
        return f"is not there: {extra('nccl')}"


def _edges(parts: Sequence[Part], by_address: bool) -> Iterator[str]:
    """Sentences about halos between each rank and the next."""
    gpus = parts[0].devices.kind == "cuda"
    how = "CUDA IPC: kernels and copies store into the other's memory" if by_address else "messages by MPI"
    staged = ", staged through pinned memory" if gpus and not by_address else ""
    for one, (first, second) in enumerate(pairwise(parts)):
        where = "on one host" if first.host == second.host else "on two hosts"
        yield f"ranks {one} and {one + 1}, {where}: {how}{staged}"


def warnings_of(facts: Sequence[RankFacts]) -> Iterator[str]:
    """Sentences about what makes runs slow."""
    for name in dict.fromkeys(rank.host for rank in facts):
        here = [(number, rank) for number, rank in enumerate(facts) if rank.host == name]
        used: dict[tuple[int, ...], list[int]] = {}
        for number, rank in here:
            used.setdefault(rank.processors, []).append(number)
        for processors, ranks in used.items():
            if len(ranks) > len(processors):
                names, those = ", ".join(map(str, ranks)), f"processor{'s' * (len(processors) > 1)}"
                yield (
                    f"Ranks {names} on {name} share {len(processors)} {those}: bind them to others "
                    "(mpiexec --bind-to none, srun --cpus-per-task), or start fewer."
                )
    yield from _sockets(facts)


def _sockets(facts: Sequence[RankFacts]) -> Iterator[str]:
    """A sentence where NCCL joins hosts by sockets, by request or for want of anything else."""
    selected = {f"{key}={rank.settings[key].split()[0]}" for rank in facts for key in SOCKETS if rank.settings.get(key)}
    sockets = sorted(one for one in selected if one.lower() in ("nccl_net=socket", "nccl_ib_disable=1"))
    hosts = {rank.host: rank for rank in facts if rank.gpus}
    plugged = any(key.startswith("NCCL_NET_PLUGIN") for rank in facts for key in rank.settings)
    without = [name for name, rank in hosts.items() if not rank.adapters]
    if sockets:
        yield f"NCCL is set to use sockets ({', '.join(sockets)}), which are slow between hosts with a faster network."
    elif len(hosts) > 1 and without and not plugged:
        yield (
            f"NCCL falls back to sockets: {ADAPTERS} shows no InfiniBand or RoCE adapter on {', '.join(without)}; see "
            "'NCCL_DEBUG=INFO', load the adapters' driver or a plugin (NCCL_NET_PLUGIN), or use the route 'mpi'."
        )
