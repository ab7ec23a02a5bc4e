"""A shot: sources with their wavelets, and the receivers that record the waves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from peergrid.arguments import brief, check_kind, is_whole, numbers
from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.models.wave.arrays import Recording
from peergrid.models.wave.propagator import Propagator
from peergrid.models.wave.silence import deaf, late, place
from peergrid.models.wave.weights import slowdown
from peergrid.models.waveforms import Doubles
from peergrid.stencil import Problem

ACCURATE = 0.005
"""The share by which waves on a grid may run too slowly without a warning."""
MOST_CELLS = 200  # of a wave, beyond which differences are accurate at any order
KILOMETRES = 20.0  # no velocity in m/s is as small, every one in km/s is


@runtime_checkable
class Wavelet(Protocol):
    """The signal of a source: amplitudes at times in seconds, and the highest significant frequency, Hz."""

    def sample(self, times: Doubles) -> Doubles: ...

    def highest_frequency(self) -> float: ...


@dataclass(frozen=True, eq=False)
class PointSource:
    """A source of pressure at a position in metres, anywhere in the medium.

    wavelet: such as `Ricker(25.0)`, or samples, one for each time step, 0 after the last.
    """

    position: Sequence[float]
    wavelet: Wavelet | ArrayLike

    def __post_init__(self) -> None:
        if isinstance(self.wavelet, Wavelet) and not isinstance(self.wavelet, type):
            return
        samples = numbers(self.wavelet)
        if samples is None or samples.ndim != 1 or not np.isfinite(samples).all():
            raise UsageError(
                "A source's wavelet is one such as Ricker(25.0), or samples, finite numbers, one for each step, got "
                f"{brief(self.wavelet)}."
            )


@dataclass(frozen=True, eq=False)
class Gather:
    """The records of receivers: traces, shape (receivers, steps); entry n at time n · dt, in units of the wave."""

    traces: Array
    dt: float
    sources: Doubles
    receivers: Doubles

    def __repr__(self) -> str:
        receivers, steps = self.traces.shape
        return f"Gather({receivers} × {steps} {self.traces.dtype}, {self.dt:.4g} s apart)"

    @property
    def times(self) -> Doubles:
        """Seconds, one for each entry of a trace."""
        return np.arange(self.traces.shape[1], dtype=np.float64) * self.dt


@dataclass(frozen=True, eq=False)
class Shot:
    """Waves of some sources in a medium; receivers: positions in metres, shape (receivers, axes), anywhere in it.

    Raises UsageError if a position lies outside the medium, or the grid is too coarse for the sources.
    """

    propagator: Propagator
    sources: Sequence[PointSource]
    receivers: ArrayLike
    steps: int

    def __post_init__(self) -> None:
        check_kind("propagator", self.propagator, Propagator, "a Propagator")
        if not is_whole(self.steps) or self.steps < 1:
            raise UsageError(
                f"A shot is expected to take a whole number of steps, at least 1, got {brief(self.steps)}."
            )
        if not isinstance(self.sources, Sequence) or not all(isinstance(one, PointSource) for one in self.sources):
            raise UsageError(f"The sources of a shot are a list of PointSources, got {brief(self.sources)}.")
        if not len(self.sources):
            raise UsageError("A shot is expected to have at least one source, got none.")
        self.propagator.source_cells(self.source_positions)

    def __repr__(self) -> str:
        counts = f"{len(self.sources)} × {len(self.receiver_positions)} sources and receivers"
        return f"Shot({self.propagator}, {counts}, {self.steps} steps)"

    @cached_property
    def problem(self) -> Problem:
        """One time step."""
        return self._built[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The problem's name of each receiver, in the order in which they were given."""
        return self._built[1].names

    @property
    def source_positions(self) -> Doubles:
        """Metres, shape (sources, axes)."""
        return positions("sources", [source.position for source in self.sources], self.propagator)

    @cached_property
    def receiver_positions(self) -> Doubles:
        """Metres, shape (receivers, axes)."""
        return positions("receivers", self.receivers, self.propagator)

    @cached_property
    def samples(self) -> Doubles:
        """The sample of each source in each step, shape (sources, steps)."""
        times = np.arange(self.steps, dtype=np.float64) * self.propagator.dt
        found = np.zeros((len(self.sources), self.steps))
        for row, source in zip(found, self.sources, strict=True):
            if isinstance(source.wavelet, Wavelet):
                row[:] = _sampled(source.wavelet, times)
            else:
                given = np.asarray(source.wavelet, dtype=np.float64)
                row[: len(given)] = given[: self.steps]
        return found

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about a grid that is coarse for the highest frequency, about sources that send a slow wave or are
        late, and about receivers on a free surface.

        Raises UsageError below two cells per wavelength.
        """
        wavelets = (source.wavelet for source in self.sources)
        highest = max((w.highest_frequency() for w in wavelets if isinstance(w, Wavelet)), default=0.0)
        return (
            *(coarse(self.propagator, highest) if highest else ()),
            *self._slow_waves(),
            *late(self.source_positions, [s.wavelet for s in self.sources], self.steps * self.propagator.dt),
            *deaf(self.propagator, self.receiver_positions),
        )

    def _slow_waves(self) -> Iterator[str]:
        """A warning about the first source in a medium whose epsilon is larger than its delta there."""
        medium = self.propagator.medium
        larger = np.broadcast_to(medium.values("epsilon") > medium.values("delta"), medium.shape)
        for position in self.source_positions if larger.any() else ():
            node = np.rint(np.divide(position, medium.spacings)).astype(int)
            if larger[tuple(np.clip(node, 0, np.array(medium.shape) - 1))]:
                yield (
                    f"The source at {place(position)} lies where epsilon is larger than delta and sends a slow wave, "
                    f"too, which no grid resolves; make them equal within half a wavelength of it, by "
                    f"medium.elliptical in a model file or by Medium.elliptical."
                )
                return

    def gather(self, traces: Mapping[str, Array]) -> Gather:
        """The gather of a run's traces by receiver, such as `Simulation.traces()`."""
        names = self.names
        dtype = self.propagator.frame.grid.dtype
        rows = [traces[name] for name in names]
        found = np.array(rows, dtype=dtype) if rows else np.zeros((0, self.steps), dtype)
        return Gather(found, self.propagator.dt, self.source_positions, self.receiver_positions)

    def medium_part(self, values: Array) -> Array:
        """The nodes of the medium, of a field on the whole grid."""
        return values[self.propagator.frame.inside.slices((0,) * values.ndim)]

    @cached_property
    def _built(self) -> tuple[Problem, Recording]:
        _ = self.warnings
        return self.propagator.problem(self.source_positions, self.samples, self.receiver_positions)


def _sampled(wavelet: Wavelet, times: Doubles) -> Doubles:
    """The samples of a wavelet, which may be of the user's own making. Raises UsageError for what are none."""
    given = wavelet.sample(times)
    found = numbers(given)
    if found is None or found.shape != times.shape or not np.isfinite(found).all():
        raise UsageError(
            f"A wavelet's 'sample' is expected to return a finite number for each of {len(times)} times, got "
            f"{brief(given) if found is None or found.shape == times.shape else f'shape {found.shape}'}."
        )
    return found


def positions(name: str, given: ArrayLike, propagator: Propagator) -> Doubles:
    """The positions that an argument gives, shape (points, axes). Raises UsageError for anything else."""
    found, ndim = numbers(given), propagator.medium.ndim
    if found is not None and not found.size:
        return np.zeros((0, ndim))
    if found is None or found.ndim > 2 or found.shape[-1:] != (ndim,) or not np.isfinite(found).all():
        raise UsageError(f"'{name}' takes positions in metres, shape (points, {ndim}), got {brief(given)}.")
    return np.atleast_2d(found)


def coarse(propagator: Propagator, frequency: float) -> tuple[str, ...]:
    """Warnings about waves of a frequency (Hz) for which the grid or the time step is coarse."""
    medium, scheme = propagator.medium, propagator.scheme
    velocity, spacing = float(medium.values("velocity").min()), max(medium.spacings)
    cells = velocity / frequency / spacing
    if cells < 2 and velocity < KILOMETRES:
        raise UsageError(f"Velocities are expected in m/s, got {velocity:g}; is it {1000 * velocity:g}?")
    if cells < 2:
        raise UsageError(
            f"A spacing is expected to give at least 2 cells to the shortest wave, got {cells:.2g} ({velocity:g} m/s "
            f"at {frequency:.3g} Hz); use at most {velocity / frequency / 2:.3g} m, or a lower frequency."
        )
    found = []
    slow = slowdown(scheme.order, cells) if cells < MOST_CELLS else 0.0
    if slow > ACCURATE:
        needed = next(n for n in np.arange(cells, MOST_CELLS + 1, 0.1) if slowdown(scheme.order, float(n)) <= ACCURATE)
        found.append(
            f"The shortest wave ({velocity:g} m/s at {frequency:.3g} Hz) has {cells:.1f} cells and runs {slow:.1%} "
            f"too slowly at order {scheme.order}; a spacing of {velocity / frequency / needed:.3g} m or a higher order "
            f"helps."
        )
    angle = 2 * np.pi * frequency * propagator.dt
    off, way = (angle**2 / 24, "fast") if scheme.time_order == 2 else (angle**4 / 720, "slowly")
    if off > ACCURATE:
        found.append(
            f"Waves of {frequency:.3g} Hz run {off:.1%} too {way}, as a time step of {propagator.dt:.3g} s is long for "
            f"them; a smaller courant helps."
        )
    return tuple(found)
