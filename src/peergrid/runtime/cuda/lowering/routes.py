"""The route of each halo: as asked where the devices allow it, else the next best, and why."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.schedule.ops import Route

SHORT_RUN = 1024  # bytes: the copy engine is slow on many short runs, stores are not
FEW_RUNS = 16  # which the copy engine moves before a kernel finds room beside one that fills the device
FEW = 1 << 20  # bytes of a halo that is stored to save calls; measured with 70 KB


@dataclass(frozen=True)
class Choice:
    """The route taken; `reason` says why where it is not the one asked for."""

    route: Route
    reason: str = ""


def choose(
    wanted: Route, free: bool, reachable: bool, run: int, runs: int, brief: bool = False, within: bool = False
) -> Choice:
    """The route of one halo of `runs` contiguous pieces of `run` bytes.

    free: whether the user left the choice open; reachable: whether the source can store into the target's memory;
    brief: whether what counts is how many calls a host makes: one kernel stores all halos of a device; within: whether
    the halo stays on its device, which copies all of those by one kernel between two passes.
    """
    if not reachable:
        if wanted == "host":
            return Choice("host")
        return Choice("host", f"'{wanted}' needs peer access, which these devices do not have")
    if free and within and wanted == "copy":
        return Choice("store")
    if free and wanted == "copy" and runs > FEW_RUNS and run < SHORT_RUN:
        return Choice("store", f"the halo lies in {runs} pieces of {run} bytes, which stores move faster than copies")
    return Choice("store" if free and brief and run * runs <= FEW else wanted)
