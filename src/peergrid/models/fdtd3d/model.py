"""A domain as a model: what `peergrid.jobs.run_model` and everything else that takes models carries out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import prod
from typing import Self

from peergrid.grid import Dtype
from peergrid.models.fdtd3d.build import BuiltDomain, build
from peergrid.models.fdtd3d.domain import Absorber, Domain, Medium
from peergrid.models.fdtd3d.far_field import size
from peergrid.models.model import Memory, RunSpec, Snapshots

COEFFICIENTS = 12  # a factor and what is kept, of six components
SAMPLES = 32  # bytes of a source for each step while it is worked out
LIBRARIES = 88 << 20  # what compiled kernels and what is loaded in the course of a run take
GHOSTS = 1.05  # fields with what devices have twice


@dataclass(frozen=True, eq=False)
class DomainModel:
    """A domain with the options of a run and of its snapshots; a `Model` of `models.model`."""

    domain: Domain
    run: RunSpec = RunSpec()
    snapshots: Snapshots = field(default_factory=Snapshots)

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
        found = memory(
            domain.nodes, 4 if domain.dtype == "float32" else 8, domain.absorber, domain.steps,
            components=len(domain.live), recorded=recorded, sources=len(domain.sources),
            ids=domain.ids.itemsize, computing=computing, writing=writing, poles=remembered(domain.media),
        )  # fmt: skip
        sums = sum(map(size, domain.far_fields)) * (4 if domain.dtype == "float32" else 8)
        return replace(found, cells=found.cells + 8 * sums, devices=found.devices + 2 * sums)

    def check_results(self) -> None:
        """Nothing is needed to write results but HDF5."""

    def build(self) -> BuiltDomain:
        return build(self.domain, self)


def remembered(media: Iterable[Medium]) -> int:
    """The most numbers that the poles of a medium need at a node."""
    return max((sum(1 + bool(complex(pole.rate).imag) for pole in medium.poles) for medium in media), default=0)


def memory(
    nodes: tuple[int, ...], itemsize: int, absorber: Absorber, steps: int, *,
    components: int, recorded: int, sources: int, ids: int, computing: bool, writing: bool, poles: int = 0,
) -> Memory:  # fmt: skip
    """The memory of a run, an upper bound, from what is known of a model before it is rasterised.

    recorded: components that receivers record; ids: bytes of the index of a medium; poles: the most numbers that an
    electric component remembers, one for a real pole and two for one that rings; the rest as of `Model.memory`.
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
    records = steps * (6 * recorded * itemsize + SAMPLES * sources)
    return Memory(int(count * host) + LIBRARIES, records, steps, int(count * state * itemsize))
