"""Images and gradients: the waves of a shot correlated with its traces sent back in time.

With M = 1/(ρ (v dt)²), the misfit J = ½ Σ (recorded - observed)² changes by ∂J/∂M = -Σₙ aⁿ·λⁿ: aⁿ is the second
difference of the wave in step n, λⁿ the wave of the residual sent back (Tarantola, Geophysics 49 (1984) 1259). Waves
p and r of anisotropic media are a pair, and a·λ stands for aᵀ C⁻¹ λ with C = (a b; b 1), a = 1 + 2ε, b = √(1 + 2δ):
M C⁻¹ times their second difference is a symmetric operator of both.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peergrid.arguments import brief, is_whole
from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.inverse.backwards import backwards
from peergrid.inverse.operators import adjoint, check_heard, recorded
from peergrid.models.wave import Gather, Propagator, Shot
from peergrid.models.waveforms import Doubles
from peergrid.simulate import Simulation

KEPT = 30  # states in memory: with these 2,000 steps are made about three times each
SAME = 1e-6  # 2 (ε - δ) up to which p and r are treated as one wave: their difference is below rounding


def migrate(shot: Shot, traces: Array | Gather, *, devices: str = "auto", kept: int = KEPT) -> Doubles:
    """The image of a shot by reverse-time migration, on the medium's nodes: Σₙ aⁿ λⁿ.

    traces: as recorded at the shot's receivers, shape (receivers, steps), without the direct wave; kept: states of the
    forward run in memory at a time. Add the images of many shots. Raises UsageError for steps of fourth order, and for
    traces of another shape or time step.
    """
    _check(shot, kept)
    given = recorded(traces, shot.propagator, len(shot.receiver_positions), shot.steps)
    return _correlated(shot, given, devices, kept)[
        shot.propagator.frame.inside.slices((0,) * shot.propagator.medium.ndim)
    ]


def gradient(shot: Shot, observed: Array | Gather, *, devices: str = "auto", kept: int = KEPT) -> tuple[float, Doubles]:
    """The misfit ½ Σ (recorded - observed)² of a shot, and its gradient by velocity at the medium's nodes.

    observed: shape (receivers, steps); kept: as of `migrate`. The gradient neglects that the damping in layers,
    perfectly matched layers and the time step depend on the velocity. Raises as `migrate`.
    """
    _check(shot, kept)
    wanted = recorded(observed, shot.propagator, len(shot.receiver_positions), shot.steps)
    with Simulation(shot.problem, shot.steps, devices=devices) as simulation:
        simulation.run(shot.steps)
        residual = shot.gather(simulation.traces()).traces.astype(np.float64) - wanted
    propagator, frame = shot.propagator, shot.propagator.frame
    by_m = -_correlated(shot, residual, devices, kept)
    velocity, density = (frame.continued(propagator.medium.values(name)) for name in ("velocity", "density"))
    by_velocity = by_m * -2 * (frame.unit / propagator.dt) ** 2 / (density * velocity**3)
    if propagator.top:
        by_velocity[..., : propagator.top + 1] = 0.0
    misfit = 0.5 * float((residual**2).sum())
    if frame.matched:
        return misfit, by_velocity[frame.inside.slices((0,) * frame.grid.ndim)]
    return misfit, _folded(by_velocity, frame.before, frame.after)


def _correlated(shot: Shot, traces: Array, devices: str, kept: int) -> Doubles:
    """Σₙ aⁿ·λⁿ at every cell of the grid."""
    propagator = shot.propagator
    changes = _changes(shot, devices, kept)
    total = np.zeros(propagator.frame.grid.shape)

    def look(simulation: Simulation) -> None:
        if simulation.step:  # the wave sent back is zero before its first step
            np.add(total, _product(propagator, next(changes), _waves(propagator, simulation)), out=total)

    adjoint(
        propagator, shot.receiver_positions, traces, np.zeros((0, propagator.medium.ndim)), devices=devices, look=look
    )
    cell = float(np.prod(propagator.medium.spacings))
    return total * cell / propagator.frame.unit**2


def _product(propagator: Propagator, change: Doubles, back: Doubles) -> Doubles:
    """aᵀ C⁻¹ λ at every cell, in a form without large differences; where ε = δ p is b r, and r alone counts."""
    found: Doubles = change[-1] * back[-1]
    if propagator.medium.kind != "acoustic":
        stretch, coupling = propagator.couplings
        apart = stretch - coupling**2
        apart = np.where(apart > SAME, apart, np.inf)
        found += (change[0] - coupling * change[1]) * (back[0] - coupling * back[1]) / apart
    return found


def _changes(shot: Shot, devices: str, kept: int) -> Iterator[Doubles]:
    """aⁿ of the steps of a shot, from the last but one to the first: (uⁿ⁺¹ - uⁿ) / d - d (uⁿ - uⁿ⁻¹), d the damping."""
    propagator = shot.propagator
    problem, _ = propagator.problem(shot.source_positions, shot.samples, np.zeros((0, propagator.medium.ndim)))
    frame = propagator.frame
    damping = frame.damped(propagator.dt, frame.grid.box)
    with Simulation(problem, shot.steps, devices=devices) as simulation:
        later: list[Doubles] = []  # the values after the next two steps
        for _ in backwards(simulation, shot.steps - 1, kept):
            here = _waves(propagator, simulation)
            if len(later) == 2:
                yield (later[1] - later[0]) / damping - damping * (later[0] - here)
            later = [here, *later[:1]]
        if len(later) == 2:
            yield (later[1] - later[0]) / damping  # before the first step the wave is at rest


def _waves(propagator: Propagator, simulation: Simulation) -> Doubles:
    """The values of all waves, shape (waves, *grid)."""
    return np.array([simulation.gather(wave.name) for wave in propagator.waves], dtype=np.float64)


def _folded(values: Doubles, before: tuple[int, ...], after: tuple[int, ...]) -> Doubles:
    """The transpose of the continuation beyond the edges: values there are added to the edge."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        line = np.moveaxis(values, axis, 0)
        inside = line[low : len(line) - high].copy()
        inside[0] += line[:low].sum(axis=0)
        inside[-1] += line[len(line) - high :].sum(axis=0)
        values = np.moveaxis(inside, 0, axis)
    return values


def _check(shot: Shot, kept: int) -> None:
    if not isinstance(shot, Shot):
        raise UsageError(f"A Shot of peergrid.models.wave is expected, got {brief(shot)}.")
    if not is_whole(kept) or kept < 1:
        raise UsageError(f"'kept' is a whole number of states, at least 1, got {brief(kept)}.")
    check_heard(shot.propagator, shot.receiver_positions)
    if shot.propagator.scheme.time_order != 2:
        raise UsageError("An image takes a scheme with time_order 2, got 4; leave time_order out.")
