"""A medium as data: the parameters of waves at the nodes of a regular grid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import degrees
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from peergrid.arguments import brief, is_number, numbers, whole
from peergrid.errors import UsageError
from peergrid.models.wave.points import NEAR
from peergrid.models.waveforms import Doubles

MediumKind = Literal["acoustic", "vti", "tti"]
PARAMETERS = ("velocity", "density", "epsilon", "delta", "tilt", "azimuth")
ANGLES = ("tilt", "azimuth")
LIMITS: dict[str, tuple[float, float, str]] = {
    "velocity": (1e-3, 1e6, "m/s, from 0.001 to 1000000"),
    "density": (1e-6, 1e9, "positive, from 0.000001 to 1000000000"),
    "epsilon": (-0.49, 10.0, "above -0.5 and at most 10"),
    "delta": (-0.49, 10.0, "above -0.5 and at most 10"),
    "tilt": (-100.0, 100.0, "an angle from -100 to 100 radians"),
    "azimuth": (-100.0, 100.0, "an angle from -100 to 100 radians"),
}


@dataclass(frozen=True, eq=False)
class Medium:
    """A medium in 2D, axes (x, z), or 3D, (x, y, z); z points downwards and is the last axis.

    shape: nodes along each axis; spacing: metres between them, one number or one for each axis. The others are numbers
    or arrays of that shape: velocity along the axis of symmetry, m/s; density, in any unit (None: the same everywhere);
    epsilon, delta: Thomsen's parameters, of which epsilon is nowhere the smaller; tilt: of the axis of symmetry from z,
    azimuth: of its tilt from x towards y, both in radians.
    Raises UsageError for parameters that are not valid.
    """

    shape: tuple[int, ...]
    spacing: float | Sequence[float]
    velocity: ArrayLike
    density: ArrayLike | None = None
    epsilon: ArrayLike | None = None
    delta: ArrayLike | None = None
    tilt: ArrayLike | None = None
    azimuth: ArrayLike | None = None

    def __post_init__(self) -> None:
        shape = whole(self.shape)
        if shape is None or len(shape) not in (2, 3) or min(shape) < 1:
            raise UsageError(
                f"A medium's shape is expected to be two or three positive integers, got {brief(self.shape)}."
            )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "spacing", _spacings(self.spacing, len(shape)))
        for name in PARAMETERS:
            given = getattr(self, name)
            if given is not None or name == "velocity":
                object.__setattr__(self, name, _checked(name, given, self.shape))
        self._check_together()

    def __repr__(self) -> str:
        spacings = "×".join(f"{step:g}" for step in self.spacings)
        return f"Medium({'×'.join(map(str, self.shape))} nodes {spacings} m apart, {self.kind})"

    @property
    def kind(self) -> MediumKind:
        """The equations for the parameters."""
        if self.tilt is not None or self.azimuth is not None:
            return "tti"
        return "acoustic" if self.epsilon is None and self.delta is None else "vti"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def spacings(self) -> tuple[float, ...]:
        """Metres between nodes along each axis."""
        return cast(tuple[float, ...], self.spacing)

    @property
    def extent(self) -> tuple[float, ...]:
        """The position of the last node, metres; that of the first is 0."""
        return tuple((n - 1) * h for n, h in zip(self.shape, self.spacings, strict=True))

    def values(self, name: str) -> Doubles:
        """A parameter in double precision: an array of the medium's shape, or of shape () for a number.

        Defaults: 0 for anisotropy and angles, 1 for the density.
        """
        given = getattr(self, name)
        return np.asarray({"density": 1.0}.get(name, 0.0) if given is None else given, dtype=np.float64)

    def elliptical(self, points: ArrayLike, radius: float) -> Medium:
        """The medium with epsilon = delta up to `radius` metres around points, shape (points, axes), from where on
        epsilon returns to its own values, smoothly, over as many metres again.

        There a source sends no slow wave, which pseudo-acoustic equations have beside that of pressure (Alkhalifah,
        Geophysics 65 (2000) 1239). Half a wavelength is enough.
        Raises UsageError for points or a radius that mean nothing.
        """
        given = numbers(points)
        if given is None or given.ndim not in (1, 2) or given.shape[-1] != self.ndim or not np.isfinite(given).all():
            raise UsageError(f"'points' takes positions in metres, shape (points, {self.ndim}), got {brief(points)}.")
        if not is_number(radius) or not 0 < radius < np.inf:
            raise UsageError(f"'radius' takes positive metres, got {brief(radius)}.")
        if self.kind == "acoustic":
            return self
        share = np.ones(self.shape)
        axes = [np.arange(n) * h for n, h in zip(self.shape, self.spacings, strict=True)]
        for point in np.atleast_2d(given):
            squares = [(axis - at) ** 2 for axis, at in zip(axes, point, strict=True)]
            x = np.clip(np.sqrt(sum(np.ix_(*squares))) / radius - 1, 0, 1)
            share = np.minimum(share, x * x * (3 - 2 * x))
        delta = self.values("delta")
        return replace(self, epsilon=delta + share * (self.values("epsilon") - delta))

    def outside(self, points: Doubles) -> NDArray[np.bool_]:
        """True for each point, shape (points, axes) in metres, that lies outside, by more than sums are off."""
        slack = NEAR * np.array(self.spacings)
        found = (points < -slack) | (points > np.array(self.extent) + slack)
        return np.asarray(found.any(axis=1))

    def _check_together(self) -> None:
        if self.kind != "acoustic" and self.density is not None:
            raise UsageError("A density is expected of an acoustic medium alone, got epsilon, delta or angles with it.")
        if self.azimuth is not None and self.ndim == 2:
            raise UsageError(
                "An azimuth is expected of a medium in 3D alone, got one in 2D; give the tilt in its plane."
            )
        if (self.values("epsilon") < self.values("delta")).any():
            raise UsageError(
                "epsilon is expected to be nowhere below delta, where pseudo-acoustic waves would grow without bound; "
                "raise epsilon or lower delta there."
            )


def _spacings(given: float | Sequence[float], ndim: int) -> tuple[float, ...]:
    found = numbers(given)
    if found is None or found.shape not in ((), (ndim,)) or not ((found > 1e-9) & (found < 1e9)).all():
        raise UsageError(
            f"A spacing is expected to be metres between 1e-9 and 1e9, one number or {ndim}, got {brief(given)}."
        )
    return tuple(np.broadcast_to(found, ndim).tolist())


def _checked(name: str, given: ArrayLike, shape: tuple[int, ...]) -> NDArray[Any]:
    if np.ma.is_masked(given):
        raise UsageError(
            f"{name} is expected at every node, got an array with masked values; fill them, as .filled(v)."
        )
    try:
        values = np.asarray(given)
    except ValueError:  # rows of several lengths
        values = np.asarray(None)
    numeric = values.dtype.kind in "iuf"
    if not numeric or values.shape not in ((), shape):
        raise UsageError(
            f"{name} is expected to be a number or an array of shape {shape}, got "
            f"{f'{values.dtype} of shape {values.shape}' if numeric else brief(given)}."
        )
    check_limits(name, values)
    return values


def check_limits(name: str, values: ArrayLike, key: str = "", file: str = "") -> None:
    """Raise UsageError for values of a parameter, angles in radians, that are beyond its limits; key: of a model file,
    for the sentence; file: that the values are from.
    """
    low, high, words = LIMITS[name]
    found = np.asarray(values)
    found = found.astype(np.promote_types(found.dtype, np.float32), copy=False)  # limits are no numbers of 16 bits
    outside = ~((found >= low) & (found <= high))
    if outside.any():
        value = float(found[outside].flat[0])
        also = f" ({degrees(value):g} degrees)" if name in ANGLES else ""
        place = f" in '{file}'" if file else ""
        raise UsageError(f"{key or name} is expected to be {words}, got {value:g}{also}{place}.")
