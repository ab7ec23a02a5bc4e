"""Small shots, and exact solutions, that the tests of seismic waves share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import hankel2

from peergrid import Simulation
from peergrid.grid import Array
from peergrid.models.wave import Gather, Medium, PointSource, Propagator, Ricker, Scheme, Shot
from peergrid.models.waveforms import Doubles
from peergrid.runtime.executors import KernelKind

PULSE = Ricker(10.0)
EXACT = Scheme(layer=0, dtype="float64")


def recorded(shot: Shot, kernel: KernelKind = "reference") -> Gather:
    """The gather of a shot, by plain NumPy."""
    with Simulation(shot.problem, shot.steps, devices="cpu:1", kernel=kernel) as simulation:
        simulation.run(shot.steps)
        return shot.gather(simulation.traces())


def compiled(shot: Shot) -> Gather:
    """The gather of a shot that is too large for plain NumPy."""
    return recorded(shot, "compiled")


def shot_of(medium: Medium, source: Sequence[float], receivers: object, seconds: float, scheme: Scheme = EXACT) -> Shot:
    """A shot of PULSE."""
    propagator = Propagator(medium, scheme)
    return Shot(propagator, [PointSource(source, PULSE)], np.asarray(receivers), propagator.steps(seconds))


def greens(times: Array, distance: float, velocity: float, ndim: int, dt: float, *, stepped: bool = True) -> Doubles:
    """The wave of PULSE at a distance from its source, in a medium without edges, at times dt apart.

    (1/v²) ü - ∇²u = s(t) δ(x): U = S exp(-j k r) / 2jk in 1D, S H₀⁽²⁾(k r) / 4j in 2D, S exp(-j k r) / (4 π r) in 3D,
    k v = ω; in leapfrog steps of dt (`stepped`), k v = 2 sin(ω dt / 2) / dt.
    """
    length = 1 << 16  # in 2D a pulse rings on as 1/t³; what is left at the end would come again at the beginning
    spectrum = np.fft.rfft(PULSE.sample(np.arange(length) * dt))
    omega = 2 * np.pi * np.fft.rfftfreq(length, dt)
    k = (2 * np.sin(omega * dt / 2) / dt if stepped else omega) / velocity
    with np.errstate(all="ignore"):
        line = np.exp(-1j * k * distance)
        green = (line / (2j * k), hankel2(0, k * distance) / 4j, line / (4 * np.pi * distance))[ndim - 1]
    green[0] = 0.0
    return np.fft.irfft(spectrum * green, length)[: len(times)]
