"""A domain as a model: what `peergrid.jobs.run_model` and everything else that takes models carries out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Self

import numpy as np

from peergrid.grid import Dtype, Index
from peergrid.io.extras import film_library, surface_library
from peergrid.models.fdtd3d.build import BuiltDomain, build
from peergrid.models.fdtd3d.domain import Absorber, Domain, FarField, Medium, Pictures, PlaneWave
from peergrid.models.fdtd3d.far_field import size
from peergrid.models.model import Memory, RunSpec, Snapshots
from peergrid.models.requirements import check_animation

COEFFICIENTS = 12  # a factor and what is kept, of six components
SAMPLES = 32  # bytes of a source for each step while it is worked out
WAVE = 144  # bytes of a place of a plane wave for each step: six components, as worked out and for the devices
LIBRARIES = 88 << 20  # what compiled kernels and what is loaded in the course of a run take
WAITING = 6  # snapshots between the run and the disk at most, with the one that is taken and the one that is written
PIXEL = 120  # bytes of each pixel of a picture while it is drawn, of at most so many along each axis:
LARGEST = 1600
SURFACES = 600 << 20  # bytes of the triangles of a picture of surfaces
DRAWING = 100 << 20  # what draws, and three maps as they come out
GHOSTS = 1.05  # fields with what devices have twice


@dataclass(frozen=True, eq=False)
class DomainModel:
    """A domain with the options of a run, of its snapshots and of its pictures; a `Model` of `models.model`."""

    domain: Domain
    run: RunSpec = RunSpec()
    snapshots: Snapshots = field(default_factory=Snapshots)
    pictures: Pictures = field(default_factory=Pictures)

    @property
    def title(self) -> str:
        return self.domain.title

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(n for axis, n in enumerate(self.domain.shape) if axis != self.domain.invariant)

    @property
    def dtype(self) -> Dtype:
        return self.domain.dtype

    def with_steps(self, steps: int) -> Self:
        return replace(self, domain=replace(self.domain, steps=steps))

    def memory(self, *, computing: bool, writing: bool) -> Memory:
        domain = self.domain
        recorded = sum(len(receiver.outputs) for receiver in domain.receivers)
        return memory(
            domain.nodes, 4 if domain.dtype == "float32" else 8, domain.absorber, domain.steps,
            components=len(domain.live), recorded=recorded, sources=len(domain.sources),
            ids=domain.ids.itemsize, computing=computing, writing=writing, poles=remembered(domain.media),
            drawn=drawn(domain.nodes, domain.dtype, self.snapshots, self.pictures) if writing else 0,
            places=sum(one.count for one in domain.sources if isinstance(one, PlaneWave)),
            far_fields=domain.far_fields,
        )  # fmt: skip

    def check_results(self) -> None:
        domain = self.domain
        check_frames(self.pictures, self.snapshots, domain.shape, domain.spacing, domain.invariant)
        check_pictures(self.pictures)

    def build(self) -> BuiltDomain:
        return replace(build(self.domain, self), pictures=self.pictures)


def check_pictures(pictures: Pictures) -> None:
    """Raises UsageError where an animation or surfaces could not be drawn, for want of a library."""
    if pictures.animation == "mp4":
        film_library()
    if pictures.surfaces:
        surface_library()


def check_frames(
    pictures: Pictures, snapshots: Snapshots, shape: Index, spacing: tuple[float, ...], flat: int | None
) -> None:
    """Raises UsageError for an animation without snapshots, or too tall; shape: cells; flat: the axis of a plane."""
    _, across, up = pictures.animated(flat)
    size = shape[across] * spacing[across], shape[up] * spacing[up]
    check_animation(pictures.animation, snapshots.every, pictures.width, size)


def drawn(nodes: tuple[int, ...], dtype: Dtype, snapshots: Snapshots, pictures: Pictures) -> int:
    """Bytes of the snapshots that wait for the disk, and of the pictures."""
    kept = prod(-(-n // snapshots.stride) for n in nodes) * len(snapshots.fields) * bool(snapshots.every)
    shown = sum(prod(min(n, LARGEST) for k, n in enumerate(nodes) if k != axis) for axis in range(3))
    drawing = (DRAWING + PIXEL * shown) * (pictures != Pictures()) + SURFACES * bool(pictures.surfaces)
    return WAITING * kept * np.dtype(dtype).itemsize + drawing


def remembered(media: Iterable[Medium]) -> int:
    """The most numbers that the poles of a medium need at a node."""
    return max((sum(1 + bool(complex(pole.rate).imag) for pole in medium.poles) for medium in media), default=0)


def memory(
    nodes: tuple[int, ...], itemsize: int, absorber: Absorber, steps: int, *,
    components: int, recorded: int, sources: int, ids: int, computing: bool, writing: bool, poles: int = 0,
    drawn: int = 0, places: int = 0, far_fields: Iterable[FarField] = (),
) -> Memory:  # fmt: skip
    """The memory of a run, an upper bound, from what is known of a model before it is rasterised.

    recorded: components that receivers record; ids: bytes of the index of a medium; poles: the most numbers that an
    electric component remembers, one for a real pole and two for one that rings; drawn: bytes of snapshots and
    pictures; places: of plane waves; far_fields: those of a box without cells are passed over; the rest as of
    `Model.memory`.
    """
    count = prod(nodes)
    shares = sum(slab.cells / nodes["xyz".index(side[0])] for side, slab in absorber.slabs)
    stretched = 4 * len(absorber.stretches) * shares if components > 3 else 2 * len(absorber.stretches) * shares
    memories = poles * (3 if components > 3 else 2)
    state, fixed = 2 * (components + stretched), COEFFICIENTS * components / 6
    host = (
        6 * ids
        + (GHOSTS * (state + fixed + 3 * memories) * itemsize if computing else 0)
        + itemsize * (2 if writing else 1)
    )
    records = steps * (6 * recorded * itemsize + SAMPLES * sources + WAVE * places)
    boxes = [one for one in far_fields if all(a < b for a, b in zip(one.lo, one.hi, strict=True))]
    sums = itemsize * sum(map(size, boxes))
    cells = int(count * host) + 8 * sums + drawn + LIBRARIES
    return Memory(cells, records, steps, int(count * state * itemsize) + 2 * sums)
