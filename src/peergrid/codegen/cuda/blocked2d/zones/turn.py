"""The text of one turn of the loop of a zone's tile: one row of every step."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.codegen.cuda.blocked.levels import Node, Version
from peergrid.codegen.cuda.blocked2d.stream.plan import StreamPlan2D
from peergrid.stencil.expr import Read


class Turn:
    """One turn: which rows and shuffled neighbours it has already at hand."""

    def __init__(self, kernel: StreamPlan2D) -> None:
        self.kernel = kernel
        self.known: set[str] = set()

    def name(self, version: Version, age: int) -> str:
        """The array that holds a version's row of that age."""
        if version.source:
            return f"u{version.number}_{age}"
        return f"v{version.number}_{age}"

    def difference(self, node: Node) -> Iterator[str]:
        """The squared change of the step of the field whose norm is asked for, cell by cell in order."""
        kernel = self.kernel
        if not kernel.norm:
            return
        end, start = kernel.levels.ends(kernel.norm)[node.step], kernel.levels.starts[node.step][kernel.norm]
        if all(write.new is not end for write in node.writes):
            return
        age = end.lag - start.lag
        yield from self.load(start, age)
        yield from self.squared(node.step, self.name(end, 0), self.name(start, age))

    def squared(self, step: int, now: str, was: str) -> Iterator[str]:
        """The squared change of a row; now, was: arrays with a lane's columns of it."""
        raise NotImplementedError

    def move_on(self, place: int) -> Iterator[str]:
        """The rows of a version move on by one as soon as no later node reads them."""
        for version in self.kernel.levels.versions:
            if version.depth > 1 and self.kernel.levels.last_reader[version] == place:
                for age in range(version.depth - 1, 0, -1):
                    for i in range(self.kernel.shape.columns):
                        yield f"    v{version.number}_{age}[{i}] = v{version.number}_{age - 1}[{i}];"

    def load(self, version: Version, age: int) -> Iterator[str]:
        """An input row from its ring."""
        name = self.name(version, age)
        if not version.source or name in self.known:
            return
        self.known.add(name)
        kernel = self.kernel
        ring = kernel.rings[version.number]
        size, step = ring.rows * kernel.row_bytes, age * kernel.row_bytes
        place = f"at_{ring.rows}"
        if age:
            place = f"min(at_{ring.rows} - {step}u, at_{ring.rows} + {size - step}u)"
        yield f"    R {name}[{kernel.shape.columns}];"
        for part in range(kernel.shape.columns // kernel.pack):
            start = ring.start + part * 32 * kernel.pack * kernel.problem.itemsize
            pack = f"const Pack<{kernel.pack}>"
            yield f"    {{ {pack} q = *reinterpret_cast<{pack}*>(ring + {place} + {start});"
            for k in range(kernel.pack):
                yield f"      {name}[{part * kernel.pack + k}] = q.v[{k}];"
            yield "    }"

    def _neighbours(self, read: Read, version: Version, age: int) -> Iterator[str]:
        """What a read finds in other lanes."""
        columns = self.kernel.shape.columns
        for i in range(columns):
            lanes, element = divmod(i + read.offset[1], columns)
            if lanes:
                name = self._shuffled(version, age, lanes, element)
                if name not in self.known:
                    self.known.add(name)
                    way = "up" if lanes < 0 else "down"
                    yield (
                        f"    const R {name} = __shfl_{way}_sync(0xffffffffu, "
                        f"{self.name(version, age)}[{element}], {abs(lanes)});"
                    )

    def _shuffled(self, version: Version, age: int, lanes: int, element: int) -> str:
        side = "l" if lanes < 0 else "r"
        return f"{self.name(version, age)}_{side}{abs(lanes)}_{element}"

    def _value(self, node: Node, read: Read, i: int) -> str:
        described = self.kernel.problem.fields[read.field]
        if not described.full:
            return self._profile(node, read, i)
        version, age = node.row(read)
        lanes, element = divmod(i + read.offset[1], self.kernel.shape.columns)
        if lanes:
            return self._shuffled(version, age, lanes, element)
        return f"{self.name(version, age)}[{element}]"

    def _profile(self, node: Node, read: Read, i: int) -> str:
        raise NotImplementedError
