"""The linear operators of a propagator: from the samples of sources to the records of receivers, and the transpose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peergrid.arguments import check_kind, numbers
from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.models.wave import Gather, PointSource, Propagator, Shot
from peergrid.models.wave.points import NEAR
from peergrid.models.wave.shot import positions
from peergrid.models.waveforms import Doubles
from peergrid.simulate import Simulation

Look = Callable[[Simulation], None]


def forward(
    propagator: Propagator, sources: Doubles, samples: Array, receivers: Doubles, *, devices: str = "auto"
) -> Array:
    """The traces, shape (receivers, steps), of sources that send `samples`, shape (sources, steps).

    sources, receivers: positions in metres, shape (points, axes).
    """
    check_kind("propagator", propagator, Propagator, "a Propagator")
    sources = positions("sources", sources, propagator)
    series = _rows(samples, len(sources), None, "Samples", "source")
    sent = [PointSource(position, row) for position, row in zip(sources, series, strict=True)]
    shot = Shot(propagator, sent, receivers, series.shape[1])
    with Simulation(shot.problem, shot.steps, devices=devices) as simulation:
        simulation.run(shot.steps)
        return shot.gather(simulation.traces()).traces


def adjoint(
    propagator: Propagator,
    receivers: Doubles,
    traces: Array | Gather,
    sources: Doubles,
    *,
    devices: str = "auto",
    look: Look | None = None,
) -> Array:
    """The transpose of `forward`: traces sent back in time from the receivers; shape (sources, steps).

    look: called with the simulation before each step; after n steps its waves are those that the transpose has N - 1 -
    n steps into the forward run of N. As the operator of waves is symmetric, it is a run with time reversed.
    """
    check_kind("propagator", propagator, Propagator, "a Propagator")
    receivers, sources = (positions(*one, propagator) for one in (("receivers", receivers), ("sources", sources)))
    check_heard(propagator, receivers)
    series = recorded(traces, propagator, len(receivers))[:, ::-1]
    problem, records, feed = propagator.fed(receivers, sources)
    steps = series.shape[1]
    with Simulation(problem, steps, devices=devices) as simulation:
        for n in range(steps):
            if look is not None:
                look(simulation)
            for name, values in feed.values(series[:, n]):
                simulation.set(name, values)
            simulation.run(1)
        found = simulation.traces()
    return propagator.sent(np.array([found[name][::-1] for name in records.names]))


def check_heard(propagator: Propagator, receivers: Doubles) -> None:
    """Raise UsageError for receivers of which none hears a wave, so that their traces are not sent back."""
    if not len(receivers):
        raise UsageError("Traces are sent back from at least one receiver, got none.")
    if propagator.top and (receivers[:, -1] <= NEAR * propagator.medium.spacings[-1]).all():
        raise UsageError(
            f"Traces are sent back from below the free surface, where pressure vanishes, got {len(receivers)} "
            "receivers on it and none below; move them down."
        )


def recorded(traces: Array | Gather, propagator: Propagator, receivers: int, steps: int | None = None) -> Doubles:
    """Traces as numbers, shape (receivers, steps); steps: None for any.

    Raises UsageError for another shape, values that are not finite, and a gather of another time step.
    """
    if isinstance(traces, Gather):
        if not np.isclose(traces.dt, propagator.dt, rtol=1e-9, atol=0):
            raise UsageError(
                f"Traces are expected every {propagator.dt:g} s, the time step of the waves, got a gather with one "
                f"every {traces.dt:g} s; give the Propagator its dt as 'time_step'."
            )
        traces = traces.traces
    return _rows(traces, receivers, steps, "Traces", "receiver")


def _rows(given: Array, rows: int, steps: int | None, what: str, each: str) -> Doubles:
    """A row of finite numbers for each source or receiver. Raises UsageError for anything else."""
    found = numbers(given)
    if found is None or found.ndim == 0:
        got = type(given).__name__
    elif found.ndim != 2 or len(found) != rows or steps not in (None, found.shape[1]):
        got = f"shape {found.shape}"
    elif not np.isfinite(found).all():
        got = "NaN or infinity"
    else:
        return found
    raise UsageError(
        f"{what} are expected as finite numbers, shape ({rows}, {steps or 'steps'}), one row for each {each}, got "
        f"{got}."
    )
