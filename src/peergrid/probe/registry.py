"""All experiments, in the order in which they run, and their choice by name."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from peergrid.errors import UsageError
from peergrid.probe.cpu import barrier, copy_bandwidth, flags, start
from peergrid.probe.cuda import (
    addressing,
    allocation,
    block_barrier,
    chase,
    device_barrier,
    grid_barrier,
    halo,
    hiding,
    host_link,
    host_side,
    independent,
    launch,
    little,
    method_check,
    one_range,
    ordering,
    peer_copy,
    pitfalls,
    reduction,
    relay,
    remote_atomics,
    sparse,
    traffic,
    warp_barrier,
    warp_sum,
)
from peergrid.probe.experiment import Probe

PROBES: tuple[Probe, ...] = (
    copy_bandwidth.PROBE,
    start.PROBE,
    flags.PROBE,
    barrier.PROBE,
    host_link.PROBE,
    peer_copy.PROBE,
    halo.PROBE,
    relay.PROBE,
    traffic.PROBE,
    chase.PROBE,
    hiding.PROBE,
    allocation.PROBE,
    one_range.PROBE,
    sparse.PROBE,
    remote_atomics.PROBE,
    ordering.PROBE,
    addressing.PROBE,
    method_check.PROBE,
    launch.PROBE,
    independent.PROBE,
    warp_barrier.PROBE,
    block_barrier.PROBE,
    grid_barrier.PROBE,
    device_barrier.PROBE,
    host_side.PROBE,
    pitfalls.PROBE,
    little.PROBE,
    warp_sum.PROBE,
    reduction.PROBE,
)


def choose(names: Sequence[str], probes: tuple[Probe, ...] = PROBES) -> tuple[Probe, ...]:
    """The experiments with these names or of these groups; all of them for no names.

    Raises:
        UsageError: a name is neither.
    """
    known = [probe.name for probe in probes] + list(dict.fromkeys(probe.group for probe in probes))
    for name in names:
        if name not in known:
            raise UsageError(_unknown(name, known))
    return tuple(probe for probe in probes if not names or {probe.name, probe.group} & set(names))


def _unknown(name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'?" if near else "see peergrid probe --list."
    return f"'{name}' should be an experiment or a group of them, but none has that name: {hint}"
