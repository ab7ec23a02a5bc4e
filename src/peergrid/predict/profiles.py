"""The figures of a machine from a profile of `peergrid probe`; figures that the profile lacks are those of the most
similar bundled machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median

from peergrid.costs.machine import Line, Machine
from peergrid.costs.machines import machine_named, nearest, with_host
from peergrid.errors import UsageError
from peergrid.probe.experiment import Scalar
from peergrid.probe.profile import Profile

PROFILED = 1.549e-6  # seconds of a launch in the profile of the machine on which calls were calibrated
SMALL, LARGE = 1 << 10, 1 << 28


def machine_at(place: str) -> Machine:
    """The machine of a profile in a file, or of a name.

    Raises UsageError for an unknown one, or a profile without GPUs.
    """
    if not place or not Path(place).exists():
        return machine_named(place)
    from peergrid.probe.profile import read

    return machine_of(read(Path(place)), Path(place).name)


def machine_of(profile: Profile, name: str) -> Machine:
    """The machine of a profile. Raises UsageError if it has no GPUs."""
    gpus = profile.machine.gpus
    if not gpus:
        raise UsageError(f"'{name}' says nothing of GPUs: give a profile of a machine that has some.")
    first = gpus[0]
    alike = nearest(first.name, len(gpus))
    bandwidth = _median(profile, "device_copy_bandwidth", {"route": "copy engine"})
    made = replace(
        alike,
        name=name,
        gpu=first.name,
        gpus=len(gpus),
        multiprocessors=first.multiprocessors,
        memory=first.memory,
        bandwidth=bandwidth or alike.bandwidth,
        cache=first.l2 or alike.cache,
        copy=_line(profile, "copy engine", alike.copy),
        store=_line(profile, "store", alike.store),
        host=_host(profile, alike.host),
        measured=True,
        source=f"profile of {profile.created[:10]}",
    )
    launch = _median(profile, "launch_overhead", {"how": "plain"})
    return made if launch is None else with_host(made, launch / PROFILED)


def _median(profile: Profile, quantity: str, at: Mapping[str, Scalar]) -> float | None:
    """The median of the measurements at some coordinates, over all GPUs."""
    found = [r.median for r in profile.results(quantity) if all(r.at.get(k) == v for k, v in at.items())]
    return median(found) if found else None


def _line(profile: Profile, route: str, usual: Line) -> Line:
    latency = _median(profile, "peer_message_time", {"route": route, "bytes": SMALL})
    bandwidth = _median(profile, "peer_copy_bandwidth", {"route": route, "ways": 1})
    return Line(latency or usual.latency, bandwidth or usual.bandwidth)


def _host(profile: Profile, usual: Line) -> Line:
    bandwidth = _median(profile, "peer_copy_bandwidth", {"route": "host", "ways": 1})
    return Line(usual.latency, bandwidth or usual.bandwidth)
