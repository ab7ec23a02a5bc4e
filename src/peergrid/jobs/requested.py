"""The requested options of a run, and their resolution for the devices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from peergrid.grid import Index
from peergrid.models import BuiltModel, Model
from peergrid.resolve import resolve_options
from peergrid.runtime.devices import Devices, devices_of
from peergrid.runtime.ranks.ranks import Communicator, devices_of_all
from peergrid.schedule import Options, ResolvedOptions
from peergrid.schedule.exchange import Order
from peergrid.schedule.ops import Carrier, Route
from peergrid.schedule.strategies import StrategyName
from peergrid.simulate import Simulation


@dataclass(frozen=True)
class RequestedOptions:
    """Options of a command line, a model file or a program; None: chosen for devices and problem.

    comm: the communicator of the processes of a launcher; each of them has these devices.
    """

    devices: Devices
    strategy: StrategyName | None = None
    depth: int | None = None
    order: Order | None = None
    route: Route | Carrier | None = None
    split: Index | None = None
    comm: Communicator | None = None

    @property
    def leads(self) -> bool:
        """True for the process that writes and prints: rank 0, or a single process."""
        return self.comm is None or self.comm.rank == 0

    def resolve(self, built: BuiltModel, say: Callable[[str], None] | None = None) -> ResolvedOptions:
        """The resolved options of a run of the model; say: called with a sentence before a trial."""
        depth = None if self.depth is None else min(self.depth, built.steps)
        devices, ranks = (self.devices, None) if self.comm is None else devices_of_all(self.comm, self.devices)
        resolve = partial(
            resolve_options,
            devices,
            built.problem,
            built.steps,
            strategy=self.strategy,
            depth=depth,
            order=self.order,
            route=self.route,
            split=self.split,
            say=say,
        )
        resolved = resolve() if ranks is None else ranks.decided(resolve)
        if depth == self.depth:
            return resolved
        fewer = (
            f"A run of {built.steps} steps cannot have more between exchanges: the depth is {depth}, not {self.depth}."
        )
        return replace(resolved, notes=(fewer, *resolved.notes))

    def simulation(
        self, built: BuiltModel, chosen: ResolvedOptions, steps: int, sources: Path | None = None
    ) -> Simulation:
        """A simulation of the model for `steps` steps; sources: as in `Simulation`."""
        return Simulation(
            built.problem,
            steps,
            devices=self.devices,
            options=chosen,
            split=self.split,
            sources=sources,
            comm=self.comm,
        )


def requested_of(
    model: Model,
    devices: str | Devices | None = None,
    strategy: StrategyName | None = None,
    depth: int | None = None,
) -> RequestedOptions:
    """The options given, and for others those of the model."""
    given = model.run
    named = given.devices if devices is None else devices
    Options("overlap" if strategy is None else strategy, 1 if depth is None else depth)  # refuses what is none
    return RequestedOptions(
        devices_of(named),
        strategy or (None if given.strategy == "auto" else given.strategy),
        depth or (None if given.depth == "auto" else given.depth),
        None if given.exchange == "auto" else given.exchange,
        None if given.route == "auto" else given.route,
    )
