"""The waves of a medium as a problem: fields and stages of one step, sources and receivers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from peergrid.arguments import brief, is_number
from peergrid.errors import UsageError
from peergrid.grid import Box, Field
from peergrid.models.wave import stencils
from peergrid.models.wave.absorber import Coefficient, Driven, Weights, absorbing, absorbing_tilted
from peergrid.models.wave.arrays import Feed, Recording, feed, injection, recording
from peergrid.models.wave.medium import Medium
from peergrid.models.wave.scheme import Frame, Scheme
from peergrid.models.wave.weights import first, second, staggered
from peergrid.models.waveforms import Doubles
from peergrid.stencil import Problem, Stage, Update

SECOND = "time_order is expected to be 2 in a medium with epsilon, delta or angles, got 4; leave it out."


@dataclass(frozen=True, eq=False)
class Propagator:
    """Waves in a medium with a scheme; dt: seconds, by default that of the scheme's Courant factor.

    Raises UsageError if the time step is not stable.
    """

    medium: Medium
    scheme: Scheme = field(default_factory=Scheme)
    time_step: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.medium, Medium) or not isinstance(self.scheme, Scheme):
            raise UsageError(
                f"A propagator is made of a Medium and a Scheme, got {brief(self.medium)} and {brief(self.scheme)}."
            )
        if self.medium.kind != "acoustic" and self.scheme.time_order == 4:
            raise UsageError(SECOND)
        largest = self.frame.largest_step()
        given = self.time_step
        if given is not None and not (is_number(given) and 0 < given <= largest):
            raise UsageError(
                f"A time step is expected to be positive and at most {largest:.4g} s, beyond which waves of velocity "
                f"{float(self.medium.values('velocity').max()):g} m/s grow without bound, got {brief(given)}."
            )

    def __repr__(self) -> str:
        return f"Propagator({self.medium}, order {self.scheme.order}, steps of {self.dt:.4g} s)"

    @cached_property
    def frame(self) -> Frame:
        """The grid around the medium."""
        return Frame(self.medium, self.scheme)

    @cached_property
    def dt(self) -> float:
        """The time step, seconds."""
        return float(self.time_step or self.scheme.courant * self.frame.largest_step())

    @cached_property
    def waves(self) -> tuple[Field, ...]:
        """The fields of the waves: `u`, or `p` and `r` in anisotropic media."""
        names = ("u",) if self.medium.kind == "acoustic" else ("p", "r")
        return tuple(self.frame.grid.field(name) for name in names)

    def steps(self, seconds: float) -> int:
        """The steps that reach a time, at least one. Raises UsageError for a time that is not positive and finite."""
        if not is_number(seconds) or not 0 < seconds < np.inf:
            raise UsageError(f"A time is expected to be positive seconds, got {brief(seconds)}.")
        return max(1, int(np.ceil(seconds / self.dt * (1 - 1e-12))))

    def problem(self, sources: Doubles, samples: Doubles, receivers: Doubles) -> tuple[Problem, Recording]:
        """One time step with point sources and receivers.

        sources, receivers: positions in metres, shape (points, axes); samples: of each source at times n dt, shape
        (sources, steps). The source s(t) at x₀ is the term s(t) δ(x - x₀) on the right of the wave equation.
        """
        recorded = recording(self.waves, self.frame.cells(receivers, "Receivers")) if len(receivers) else None
        driven: list[Stage] = []
        if len(sources):
            driven = injection(self.waves, self.gains, self.source_cells(sources), self.sent(samples), self.top)
        parts = recorded or Recording((), (), ())
        stages = (*parts.stages, *self.advance, *driven, *self.surface)
        return Problem.of(stages, parts.receivers), parts

    def fed(self, sources: Doubles, receivers: Doubles) -> tuple[Problem, Recording, Feed]:
        """One time step with any number of sources, whose samples are set before each step, and receivers."""
        given = feed(self.waves, self.gains, self.frame.cells(sources, "Sources"), self.top)
        cells = self.frame.cells(receivers, "Receivers") if len(receivers) else np.zeros((0, self.medium.ndim))
        parts = recording(self.waves, cells)
        stages = (*parts.stages, *self.advance, given.stage, *self.surface)
        return Problem.of(stages, parts.receivers), parts, given

    def source_cells(self, positions: Doubles) -> Doubles:
        """Sources on the grid, in cells. Raises UsageError for one outside, or on the free surface."""
        cells = self.frame.cells(positions, "Sources")
        if self.top and (np.abs(cells[:, -1] - self.top) < 1e-6).any():
            raise UsageError("A source is expected below the free surface, where pressure vanishes; move it down.")
        return cells

    @property
    def top(self) -> int:
        """The node of the free surface along the last axis of the grid; 0 where there is none."""
        return self.frame.before[-1] if self.scheme.free_surface else 0

    def gains(self, box: Box) -> tuple[Doubles, ...]:
        """The change of each wave in a step by a source of strength 1 on a node, for each cell of a box."""

        def within(values: Doubles) -> Doubles:
            return values[box.slices((0,) * values.ndim)] if values.ndim else values

        cell = float(np.prod(self.medium.spacings)) / self.frame.unit**2
        scale = within(self.velocity_squared) * self.frame.damped(self.dt, box) / cell
        if self.medium.kind == "acoustic":
            return (scale,)
        a, b = map(within, self.couplings)
        return scale * (a + b) / 2, scale * (b + 1) / 2

    @cached_property
    def velocity_squared(self) -> Doubles:
        """ρ (v dt)² in units of the smallest spacing; 0 on a free surface and above."""
        medium, frame = self.medium, self.frame
        values = medium.values("density") * (medium.values("velocity") * self.dt / frame.unit) ** 2
        found = frame.continued(values)
        if self.top:
            found = np.broadcast_to(found, frame.grid.shape).copy()
            found[..., : self.top + 1] = 0.0
        return found

    @cached_property
    def couplings(self) -> tuple[Doubles, Doubles]:
        """1 + 2ε and √(1 + 2δ), on the grid or as numbers."""
        epsilon, delta = (self.frame.continued(self.medium.values(name)) for name in ("epsilon", "delta"))
        return 1 + 2 * epsilon, np.sqrt(1 + 2 * delta)

    @cached_property
    def damping(self) -> tuple[Field, ...]:
        """A profile for each axis; none without layers."""
        curves = self.frame.damping(self.dt)
        return tuple(self.frame.grid.profile(f"damping.{'xyz'[axis]}", axis, c) for axis, c in enumerate(curves))

    def sent(self, samples: Doubles) -> Doubles:
        """The samples that are injected, shape (sources, steps): with fourth order in time smoothed, as the wave
        equation's fourth derivative in time acts on sources, too; 0 before the first and after the last.
        """
        if self.scheme.time_order == 2:
            return samples
        wide = np.pad(samples, ((0, 0), (1, 1)))
        return samples + (wide[:, 2:] - 2 * samples + wide[:, :-2]) / 6

    @cached_property
    def advance(self) -> tuple[Stage, ...]:
        """The stages that advance the waves, without sources."""
        if self.medium.kind == "tti":
            return self._tilted()
        if self.medium.kind == "vti":
            return self._vertical()
        (u,) = self.waves
        if self.scheme.time_order == 2:
            return self._acoustic(u, u)
        ahead = self.frame.grid.field("ahead")
        return *self._acoustic(u, ahead), *self._mirrored((ahead,)), *self._acoustic(ahead, u)

    @cached_property
    def surface(self) -> tuple[Stage, ...]:
        """The stage that continues waves above a free surface."""
        return self._mirrored(self.waves)

    def _mirrored(self, waves: tuple[Field, ...]) -> tuple[Stage, ...]:
        box, axis = self.frame.grid.box, self.medium.ndim - 1
        rows = (
            stencils.mirror(k)(waves).within(box.with_axis(axis, self.top - k, self.top - k + 1))
            for k in range(1, self.frame.mirrored + 1)
        )
        return (Stage(tuple(rows)),) if self.top else ()

    def _acoustic(self, of: Field, found: Field) -> tuple[Stage, ...]:
        """A step by the derivatives of a wave or, for fourth order, of the field `found`."""
        (u,), c = self.waves, self._speed
        last = found is u
        factors = ((c,),) if last else ((c, stencils.TWELFTH),)
        name = f"cpml.{found.name}"
        if self.medium.density is None:
            weights = self._scaled(second, 2)
            update = (
                stencils.acoustic(u, of, c, weights, self.damping) if last else stencils.ahead(u, found, c, weights)
            )
            return self._layered((update,), (Driven(of, (found,), factors),) * self.medium.ndim, name)
        weights = self._scaled(staggered, 1)
        fluxes = stencils.fluxes(of, self._flow, self._density, weights)
        if last:
            update = stencils.divergence(u, self._flow, c, weights, self.damping)
        else:
            update = stencils.ahead_by_flux(u, found, self._flow, c, weights)
        driven = tuple(Driven(of, (found,), factors, flux) for flux in self._flow)
        return self._layered((fluxes, update), driven, name)

    def _layered(self, updates: tuple[Update, ...], driven: Sequence[Driven], name: str) -> tuple[Stage, ...]:
        """The stages of updates, with those of perfectly matched layers about the last."""
        usual = tuple(Stage((update,)) for update in updates)
        if not self.frame.matched:
            return usual
        weights = self._scaled(staggered, 1), self._scaled(second, 2)
        before, after = absorbing(self.frame, self.dt, driven, *weights, name)
        return (*usual[:-1], *before, usual[-1], *after)

    @cached_property
    def _speed(self) -> Coefficient:
        return self._field("velocity", self.velocity_squared)

    @cached_property
    def _flow(self) -> tuple[Field, ...]:
        """The fluxes 1/ρ ∇u."""
        grid = self.frame.grid
        return tuple(grid.field(f"flux.{'xyz'[axis]}") for axis in range(grid.ndim))

    @cached_property
    def _density(self) -> Field:
        """ρ, above a free surface that of the mirror image."""
        return self.frame.grid.field("density", self._imaged(self.frame.continued(self.medium.values("density"))))

    def _imaged(self, values: Doubles) -> Doubles:
        """A parameter on the grid, above a free surface that of the mirror image; numbers stay numbers."""
        top = self.top
        if top and values.ndim:
            count = min(top, values.shape[-1] - 1 - top)
            values = np.array(values)
            values[..., top - count : top] = values[..., top + 1 : top + 1 + count][..., ::-1]
        return values

    def _vertical(self) -> tuple[Stage, ...]:
        (p, r), c, (a, b) = self.waves, self._speed, self._coupled
        update = stencils.vertical(p, r, c, a, b, self._scaled(second, 2), self.damping)
        across, along = Driven(p, (p, r), ((c, a), (c, b))), Driven(r, (p, r), ((c, b), (c,)))
        return self._layered((update,), (*(across,) * (self.medium.ndim - 1), along), "cpml")

    def _tilted(self) -> tuple[Stage, ...]:
        waves, c, (a, b), grid = self.waves, self._speed, self._coupled, self.frame.grid
        along = (grid.field("gp"), grid.field("gr"))
        direction, weights, damping = self._direction, self._scaled(first, 1), self.damping
        slopes = Stage((stencils.along_axis(*waves, *along, direction, weights),))
        update = stencils.tilted(*waves, *along, direction, c, a, b, weights, self._scaled(second, 2), damping)
        if not self.frame.matched:
            return slopes, Stage((update,))
        factors = (c, a, *damping), (c, b, *damping)
        before, after = absorbing_tilted(self.frame, waves, along, factors, direction, damping, weights)
        return slopes, before, Stage((update,)), *after

    @cached_property
    def _coupled(self) -> tuple[Coefficient, Coefficient]:
        a, b = self.couplings
        return self._field("stretch", a), self._field("coupling", b)

    @cached_property
    def _direction(self) -> tuple[Coefficient, ...]:
        """The components of the axis of symmetry; above a free surface its mirror image leans the other way.

        The derivative along the axis is then even about the surface, as waves are odd.
        """
        named = (self.frame.continued(self.medium.values(name)) for name in ("tilt", "azimuth"))
        tilt, azimuth = map(self._imaged, named)
        across, down = np.sin(tilt), np.cos(tilt)
        turned = (np.cos(azimuth), np.sin(azimuth)) if self.medium.ndim == 3 else (np.ones(()),)
        level: tuple[Doubles, ...] = tuple(across * part for part in turned)
        if self.top and across.any():
            sign = np.where(np.arange(self.frame.grid.shape[-1]) < self.top, -1.0, 1.0)
            shape = self.frame.grid.shape
            level, down = tuple(np.broadcast_to(part * sign, shape) for part in level), np.broadcast_to(down, shape)
        parts = (*level, down)
        shape = np.broadcast_shapes(*(part.shape for part in parts))
        return tuple(self._field(f"axis.{'xyz'[k]}", np.broadcast_to(part, shape)) for k, part in enumerate(parts))

    def _field(self, name: str, values: Doubles) -> Coefficient:
        """A field of the grid, or a number."""
        return self.frame.grid.field(name, values) if values.ndim else float(values)

    def _scaled(self, weights: Callable[[int], tuple[float, ...]], power: int) -> Weights:
        """Weights in units of the smallest spacing: one set where all axes have the same."""
        found = weights(self.scheme.order)
        scales = [(self.frame.unit / h) ** power for h in self.medium.spacings]
        if len(set(scales)) == 1:
            return found
        return tuple(tuple(scale * w for w in found) for scale in scales)
