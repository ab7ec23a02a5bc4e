"""One turn of the loop over planes in a 3D pass: which values a lane has at hand, and where it gets the others.

Its own cells' planes are in registers that take turns; neighbours along the row come by shuffle, rows of other warps
from shared memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from peergrid.codegen.cuda.blocked.levels import Node, Version
from peergrid.codegen.cuda.blocked3d.stream.planes import Planes3D, Ring
from peergrid.codegen.cuda.common.expressions import plus


@dataclass
class Turn3D:
    """The turn of that number; `known` are the rows and shuffled neighbours that its text has already."""

    planes: Planes3D
    number: int
    known: set[str] = field(default_factory=set)

    @property
    def plane(self) -> str:
        """The newest plane."""
        return plus("r", self.number)

    def made(self, node: Node) -> str:
        """The plane that a node computes."""
        return plus("r", self.number - node.lag)

    def name(self, version: Version, age: int, j: int) -> str:
        """The array that holds the values of a version's plane of that age in the lane's row j."""
        if self._kept(version, j):
            return f"v{version.number}_{(self.number - age) % self.planes.period}[{j}]"
        return _tag("u", version, age, j)

    def value(self, version: Version, age: int, j: int, i: int) -> str:
        """The value in the lane's column i, perhaps of another lane."""
        lanes, element = divmod(i, self.planes.shape.columns)
        return _shuffled(version, age, j, lanes, element) if lanes else f"{self.name(version, age, j)}[{element}]"

    def arrived(self) -> Iterator[str]:
        """The newest plane of every input into registers, where it is kept there."""
        for ring in self.planes.loaded:
            if self.planes.held(ring.version):
                for j in range(self.planes.shape.rows):
                    yield from self._read(self.name(ring.version, 0, j), ring, 0, j)

    def gather(self, node: Node) -> Iterator[str]:
        """What a node reads beside the lane's own cells."""
        rows = range(self.planes.shape.rows)
        for read, version, age in self.planes.reads(node):
            yield from self.rows(version, age, (j + read.offset[1] for j in rows))
            for j in rows:
                yield from self._neighbours(version, age, j + read.offset[1], read.offset[2])

    def rows(self, version: Version, age: int, rows: Iterable[int]) -> Iterator[str]:
        """Rows from shared memory that the lane does not keep."""
        for j in rows:
            name = self.name(version, age, j)
            if not self._kept(version, j) and name not in self.known:
                self.known.add(name)
                yield f"    R {name}[{self.planes.shape.columns}];"
                yield from self._read(name, self.planes.rings[version], age, j)

    def publish(self, version: Version) -> Iterator[str]:
        """The rows that other warps read, into shared memory."""
        planes = self.planes
        if version not in planes.crossing:
            return
        _, above, below = planes.crossing[version]
        ring, pack = planes.rings[version], planes.pack
        for j in range(planes.shape.rows):
            if below <= j < planes.shape.rows - above:
                continue
            for part in range(planes.shape.columns // pack):
                place = f"mine + {self._place(ring, 0)} + {planes.offset(ring, j, part, planes.pack_bytes)}"
                values = ", ".join(f"{self.name(version, 0, j)}[{part * pack + k}]" for k in range(pack))
                yield f"    *reinterpret_cast<Pack<{pack}>*>({place}) = {{{{{values}}}}};"

    def _kept(self, version: Version, j: int) -> bool:
        return self.planes.held(version) and 0 <= j < self.planes.shape.rows

    def _read(self, name: str, ring: Ring, age: int, j: int) -> Iterator[str]:
        planes, pack = self.planes, f"const Pack<{self.planes.pack}>"
        for part in range(planes.shape.columns // planes.pack):
            place = f"mine + {self._place(ring, age)} + {planes.offset(ring, j, part, planes.pack_bytes)}"
            yield f"    {{ {pack} q = *reinterpret_cast<{pack}*>({place});"
            values = (f"{name}[{part * planes.pack + k}] = q.v[{k}];" for k in range(planes.pack))
            yield f"      {' '.join(values)} }}"

    def _place(self, ring: Ring, age: int) -> str:
        """Where the plane of that age is, in bytes from the ring's beginning."""
        planes, place = self.planes, f"{'at' if ring.version.source else 'ex'}_{ring.count}"
        if planes.fixed(ring.count):
            return f"{(self.number - age) % ring.count * planes.plane_bytes}"
        size, step = ring.count * planes.plane_bytes, age * planes.plane_bytes
        return f"min({place} - {step}u, {place} + {size - step}u)" if age else place

    def _neighbours(self, version: Version, age: int, j: int, offset: int) -> Iterator[str]:
        """What a read finds in other lanes of its row."""
        for i in range(self.planes.shape.columns):
            lanes, element = divmod(i + offset, self.planes.shape.columns)
            name = _shuffled(version, age, j, lanes, element)
            if lanes and name not in self.known:
                self.known.add(name)
                way, value = "up" if lanes < 0 else "down", f"{self.name(version, age, j)}[{element}]"
                yield f"    const R {name} = __shfl_{way}_sync(0xffffffffu, {value}, {abs(lanes)});"


def _tag(kind: str, version: Version, age: int, j: int) -> str:
    return f"{kind}{version.number}_{age}_{'m' if j < 0 else ''}{abs(j)}"


def _shuffled(version: Version, age: int, j: int, lanes: int, element: int) -> str:
    return f"{_tag('s', version, age, j)}_{'l' if lanes < 0 else 'r'}{abs(lanes)}_{element}"
