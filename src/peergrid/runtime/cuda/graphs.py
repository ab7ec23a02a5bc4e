"""A schedule as one CUDA graph over all its devices: captured once, then replayed with a single call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peergrid.errors import PeergridError
from peergrid.runtime.cuda.faults import error
from peergrid.runtime.cuda.issue import End, Issuers, Share, Work
from peergrid.runtime.cuda.lower import Lowered
from peergrid.runtime.cuda.replay import DONE
from peergrid.runtime.cuda.station import Station
from peergrid.runtime.cuda.tape import Tape, TapeWriter
from peergrid.schedule.ops import Event, describe

BUNDLE = 16  # turns of a schedule in one graph


@dataclass(frozen=True, eq=False)
class Captured:
    """A graph that can be launched, and the tape that does."""

    graph: int
    executable: int
    tape: Tape


class Graphs:
    """The graphs of one executor."""

    def __init__(self, station: Station, issuers: Issuers) -> None:
        self._station, self._issuers = station, issuers
        self._captured: dict[tuple[int, int], Captured] = {}

    def works(self, lowered: Lowered, times: int, step: int) -> Iterator[tuple[Work, int]]:
        """What to carry out, and how often: many turns by graphs of `BUNDLE` turns each, the rest by graphs of one."""
        set_clocks(self._station, lowered, step)
        bundles, rest = divmod(times, BUNDLE)
        for turns, count in ((BUNDLE, bundles), (1, rest)):
            if count:
                key = (id(lowered), turns)
                if key not in self._captured:
                    self._captured[key] = self._capture(lowered, turns)
                yield self._issuers.work(lowered, count, {0: self._captured[key].tape}), count

    def close(self, broken: bool) -> None:
        """Give the graphs back, unless the devices are."""
        for captured in self._captured.values():
            if not broken:
                self._station.devices.driver.destroy_graph(captured.graph, captured.executable)
        self._captured.clear()

    def _capture(self, lowered: Lowered, turns: int) -> Captured:
        station, origin = self._station, lowered.queues[0]
        driver, stream = station.devices.driver, station.devices.stream(origin)
        fork, join = rows_between(station, lowered)
        station.devices.enter(origin.device)
        driver.begin_capture(stream)
        end = End()
        for tape, count in ((fork, 1), (lowered.tapes[0], turns), (join, 1)):
            if end.state == DONE:
                self._issuers.carry_out(Share(tape, every=count + 1), end, count)
                failed = tape
        station.devices.enter(origin.device)
        if end.state != DONE:
            raise _failure(lowered, failed, end)
        graph = driver.end_capture(stream)
        executable, made = driver.instantiate(graph), TapeWriter()
        made.call(-1, station.devices.context(origin.device), station.entry("cuGraphLaunch"), executable, stream)
        return Captured(graph, executable, made.finish())


def rows_between(station: Station, lowered: Lowered) -> tuple[Tape, Tape]:
    """What ties all queues to the first at the capture's start, and back to it at its end."""
    origin, *others = lowered.queues
    fork, join = TapeWriter(), TapeWriter()
    entry, devices = station.entry, station.devices
    start = Event(origin.device, "graph start")
    context = devices.context(origin.device)
    if others:
        fork.call(-1, context, entry("cuEventRecord"), devices.event(start), devices.stream(origin))
    for queue in others:
        fork.call(-1, 0, entry("cuStreamWaitEvent"), devices.stream(queue), devices.event(start), 0)
        done = Event(queue.device, f"graph end of {queue}")
        there = devices.context(queue.device)
        join.call(-1, there, entry("cuEventRecord"), devices.event(done), devices.stream(queue))
        join.call(-1, context, entry("cuStreamWaitEvent"), devices.stream(origin), devices.event(done), 0)
    return fork.finish(), join.finish()


def set_clocks(station: Station, lowered: Lowered, step: int) -> None:
    """Start the clocks of all queues at a time step."""
    for queue in lowered.queues:
        station.devices.enter(queue.device)
        station.devices.driver.upload(station.clock(queue), np.array([step], np.int64))


def _failure(lowered: Lowered, tape: Tape, end: End) -> PeergridError:
    number = tape.ops[end.row]
    what = f"'{describe(lowered.schedule.ops[number])}'" if number >= 0 else "the graph's ends"
    return error(end.code, f"Capturing {what}")
