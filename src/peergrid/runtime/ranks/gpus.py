"""The GPUs of a run by the rank that drives them: each rank has a share of those of its host, none is used twice."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.runtime.devices import ELSEWHERE, Devices

BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Part:
    """The devices of one rank, and what its process sees.

    host: the machine that runs it, as `host` names it; devices: its own; visible: all GPUs that its process sees, by
    names that no other has; kinds: the names of those that it uses; reaches: pairs of visible GPUs of which the first,
    its own, addresses the memory of the second.
    """

    host: str
    devices: Devices
    visible: tuple[str, ...] = ()
    kinds: frozenset[str] = frozenset()
    reaches: frozenset[tuple[int, int]] = frozenset()


def host() -> str:
    """A name of this machine, as it was started, that no other has."""
    return f"{socket.gethostname()} {BOOT.read_text().strip() if BOOT.exists() else ''}"


def part(devices: Devices) -> Part:
    """The part of this process."""
    if devices.kind == "cpu":
        return Part(host(), devices)
    from peergrid.runtime.cuda.device.driver import CudaDriver

    driver = CudaDriver()
    every = range(driver.device_count())
    pairs = {(own, other) for own in devices.ordinals for other in every if driver.reaches(own, other)}
    kinds = frozenset(driver.name(ordinal) for ordinal in devices.ordinals)
    return Part(host(), devices, tuple(map(driver.uuid, every)), kinds, frozenset(pairs))


def share(gpus: int, rank: int, ranks: int) -> Devices:
    """The GPUs of one of several ranks of a host, which see so many: neighbouring numbers, as many for each."""
    if gpus < ranks:
        raise UsageError(
            f"This host has {gpus} GPUs for {ranks} ranks, each of which needs one of its own: start fewer ranks, or "
            "give them virtual devices (--devices cpu:1)."
        )
    return Devices("cuda", tuple(range(rank * gpus // ranks, (rank + 1) * gpus // ranks)))


def together(parts: Sequence[Part], rank: int) -> tuple[Devices, bool]:
    """The devices of all ranks as one list, as one of them sees it, and whether all address each other's memory.

    GPUs that a rank does not see, or does not reach, have numbers from `ELSEWHERE` on.
    Raises UsageError for devices of different kinds, and for a GPU that several ranks would use.
    """
    if len({part.devices.kind for part in parts}) > 1:
        raise UsageError("All ranks are expected to have devices of one kind, got GPUs on some of them alone.")
    if parts[0].devices.kind == "cpu":
        return Devices("cpu", tuple(range(sum(part.devices.count for part in parts)))), False
    users: dict[str, int] = {}
    for user, part in enumerate(parts):
        for gpu in sorted({part.visible[ordinal] for ordinal in part.devices.ordinals}):
            if users.setdefault(gpu, user) != user:
                raise UsageError(
                    f"Every rank is expected to have GPUs of its own, but ranks {users[gpu]} and {user} on "
                    f"'{part.host.split()[0]}' would share GPU {gpu}: leave --devices out, or start fewer ranks."
                )
    kinds = sorted(frozenset.union(*(part.kinds for part in parts)))
    if len(kinds) > 1:
        raise UsageError(f"GPUs of one kind are expected on all ranks, got {' and '.join(kinds)}.")
    used = [ordinal for part in parts for ordinal in part.devices.ordinals]
    alike = len({(part.host, part.visible) for part in parts}) == 1
    pairs = ((part, own, other) for part in parts for own in part.devices.ordinals for other in used)
    if alike and all((own, other) in part.reaches for part, own, other in pairs):
        return Devices("cuda", tuple(used)), True
    seen = [
        ordinal if user == rank else ELSEWHERE * (1 + user) + ordinal
        for user, part in enumerate(parts)
        for ordinal in part.devices.ordinals
    ]
    return Devices("cuda", tuple(seen)), False
