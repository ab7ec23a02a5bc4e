"""The linear operators of a propagator: from the samples of sources to the records of receivers, and the transpose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.models.wave import PointSource, Propagator, Shot
from peergrid.models.waveforms import Doubles
from peergrid.simulate import Simulation

Look = Callable[[Simulation], None]


def forward(
    propagator: Propagator, sources: Doubles, samples: Array, receivers: Doubles, *, devices: str = "auto"
) -> Array:
    """The traces, shape (receivers, steps), of sources that send `samples`, shape (sources, steps).

    sources, receivers: positions in metres, shape (points, axes).
    """
    sent = [PointSource(position, series) for position, series in zip(sources, samples, strict=True)]
    shot = Shot(propagator, sent, receivers, samples.shape[1])
    with Simulation(shot.problem, shot.steps, devices=devices) as simulation:
        simulation.run(shot.steps)
        return shot.gather(simulation.traces()).traces


def adjoint(
    propagator: Propagator,
    receivers: Doubles,
    traces: Array,
    sources: Doubles,
    *,
    devices: str = "auto",
    look: Look | None = None,
) -> Array:
    """The transpose of `forward`: traces sent back in time from the receivers; shape (sources, steps).

    look: called with the simulation before each step; after n steps its waves are those that the transpose has N - 1 -
    n steps into the forward run of N. As the operator of waves is symmetric, it is a run with time reversed.
    """
    if traces.ndim != 2 or len(traces) != len(receivers) or not np.isfinite(traces).all():
        raise UsageError(
            f"Traces are expected as finite numbers, shape ({len(receivers)}, steps), one row for each receiver, got "
            f"shape {traces.shape}."
        )
    problem, recorded, feed = propagator.fed(receivers, sources)
    series, steps = np.asarray(traces, dtype=np.float64)[:, ::-1], traces.shape[1]
    with Simulation(problem, steps, devices=devices) as simulation:
        for n in range(steps):
            if look is not None:
                look(simulation)
            for name, values in feed.values(series[:, n]):
                simulation.set(name, values)
            simulation.run(1)
        found = simulation.traces()
    return propagator.sent(np.array([found[name][::-1] for name in recorded.names]))
