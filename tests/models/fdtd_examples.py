"""Small models and exact solutions that the tests of the radar share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.special import hankel2

from peergrid.grid import Array
from peergrid.models.fdtd.constants import EPSILON_0, MU_0, SPEED_OF_LIGHT
from peergrid.models.fdtd.materials import Material
from peergrid.models.fdtd.model import Absorber, GridSpec, LineSource, RadarModel, ReceiverSpec
from peergrid.models.waveforms import Ricker

PULSE = Ricker(1e9)
SHORTEST = SPEED_OF_LIGHT / PULSE.highest_frequency()
WALLS = Absorber(cells=0)


def free_space(
    cells: tuple[float, float], receivers: Iterable[ReceiverSpec], window: float, medium: Material | None = None
) -> RadarModel:
    """A line source amid a box so large that no echo of its walls comes back within `window` seconds (vacuum).

    cells: per shortest wavelength in vacuum, along x and y; receivers: relative to the source, metres.
    """
    half = 5 * SHORTEST
    spacing = (SHORTEST / cells[0], SHORTEST / cells[1])
    return RadarModel(
        GridSpec(
            size=(2 * half, 2 * half),
            spacing=spacing,
            time_window=window,
            dtype="float64",
            background=medium.name if medium else "vacuum",
        ),
        materials=(medium,) if medium else (),
        sources=(LineSource((half, half), PULSE),),
        receivers=tuple(
            ReceiverSpec((half + r.position[0], half + r.position[1]), r.name, r.fields) for r in receivers
        ),
        absorber=WALLS,
    )


def line_source(times: Array, distance: float, medium: Material, field: str = "Ez") -> Array:
    """The field of the line current PULSE in an unbounded medium (Harrington, Time-Harmonic Fields, section 5-6).

    Ez(ω) = -ω μ I(ω) H₀⁽²⁾(k r) / 4 and H_φ(ω) = k I(ω) H₁⁽²⁾(k r) / 4j, k² = ω² μ ε (1 - j σ / ω ε), e^{+jωt}.
    """
    step, length = 1 / (64 * PULSE.frequency), 1 << 15
    kept = slice(1, length // 16)  # four times the frequency of the peak
    current = np.fft.rfft(PULSE.sample(np.arange(length) * step))[kept]
    omega = 2 * np.pi * np.fft.rfftfreq(length, step)[kept]
    mu, epsilon = MU_0 * medium.permeability, EPSILON_0 * medium.permittivity
    k = np.sqrt(omega**2 * mu * epsilon * (1 - 1j * medium.conductivity / (omega * epsilon)))
    if field == "Ez":
        spectrum = -omega * mu / 4 * hankel2(0, k * distance) * current
    else:
        spectrum = k / 4j * hankel2(1, k * distance) * current
    return (np.exp(1j * np.outer(times, omega)) @ spectrum).real * 2 / length


def relative_error(found: Array, exact: Array) -> float:
    """The L2 norm of the difference against that of the exact trace."""
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))
