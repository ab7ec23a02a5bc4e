"""Several time steps of a 2D problem in one pass over memory: the tiles of a zone along one of the grid's sides.

As in `blocked2d.stream` one warp streams down the rows of a strip and holds the rows of every step in registers; where
the interior has one update for a cell, a zone has a few, told apart by the distance from the side (see `zone`): rows of
a zone along axis 0 branch together, columns of a zone along axis 1 select. Each zone has a function of its own, all are
in one kernel (see `kernel`); `variant` of a tile says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Levels, Node, Write
from peergrid.codegen.cuda.blocked.plain import unbounded
from peergrid.codegen.cuda.blocked.reach import known, row_reach
from peergrid.codegen.cuda.blocked2d.shape import margin
from peergrid.codegen.cuda.blocked2d.zones import norm
from peergrid.codegen.cuda.blocked2d.zones.levels import LayerNode, layer_levels
from peergrid.codegen.cuda.blocked2d.zones.rows import Rows2D
from peergrid.codegen.cuda.blocked2d.zones.turn import Turn
from peergrid.codegen.cuda.blocked2d.zones.zone import Choice, Zone
from peergrid.codegen.cuda.common.cells import assigned
from peergrid.codegen.cuda.common.norm import norm_reference
from peergrid.grid import Field
from peergrid.stencil.expr import Read


@dataclass(frozen=True)
class Layer2D(Rows2D):
    """The text of one zone's function; `entry` is its name without `_tile`."""

    zone: Zone | None = None

    @property
    def place(self) -> Zone:
        """The zone, which is always there."""
        assert self.zone is not None
        return self.zone

    @cached_property
    def levels(self) -> Levels:
        return layer_levels(self.problem, self.shape.steps, self.place, self.norm)

    @cached_property
    def useful(self) -> int:
        """Columns of a tile: what a strip leaves when it loses its margins; one that reaches the side loses one, unless
        columns wrap.
        """
        lost, zone = margin(self.problem, self.shape), self.place
        side = zone.axis == 1 and not self.problem.grid.periodic[1]
        alone = side and zone.box.shape[1] <= self.shape.width - lost
        return self.shape.width - (lost if alone else 2 * lost)

    @cached_property
    def tile(self) -> str:
        above, below = row_reach(self.problem, self.shape.steps)
        more = norm_reference(self.norm)
        left = f"(c0 & ~7) - {margin(self.problem, self.shape)}"
        first, last = f"y0 - {above}", f"y1 + {below}"
        if not self.problem.grid.periodic[0]:
            first, last = f"max({first}, 0)", f"min({last}, {self.problem.grid.shape[0]})"
        if not self.problem.grid.periodic[1]:
            left = f"max({left}, 0)"
        lines = [
            f"__device__ __forceinline__ void {self.entry}_tile(const Arguments& a, const Region& tile,",
            f"    const int source, const int target, const long long step0, unsigned char* const shared{more}) {{",
            "  const int lane = threadIdx.x & 31;",
            "  const int y0 = tile.lo[0], y1 = tile.hi[0], c0 = tile.lo[1], c1 = tile.hi[1];",
            f"  const int x = {left} + lane * {self.shape.columns};",
            f"  const int first = {first}, last = {last};",
            f"  unsigned char* const ring = shared + lane * {self.pack * self.problem.itemsize};",
            *self._sources(),
            *self._targets(),
            *self._known(),
            *self._conditions(),
            *self._profiles(),
            *self._declarations(),
            *self._fill(),
            *self._rows(),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def known(self, described: Field, axis: int) -> tuple[str, str]:
        """The text of the bounds between which the device holds values of a field for this pass."""
        return known(self.problem, self.shape.steps, described, axis)

    def _known(self) -> Iterator[str]:
        """Which rows and lanes have something to load of each field."""
        for ring in self.rings.values():
            number = self.arguments.fields.index(ring.version.field)
            described = self.problem.fields[ring.version.field]
            (ylo, yhi), (xlo, xhi) = (self.known(described, axis) for axis in (0, 1))
            yield f"  const int ylo{number} = {ylo}, yhi{number} = {yhi};"
            yield f"  const bool has{number} = x + {self.shape.columns} > {xlo} && x < {xhi};"
        for version in self.levels.finals:
            number = self.arguments.fields.index(version.field)
            box = unbounded(self.problem, self.problem.fields[version.field].box)
            (top, left), (bottom, right) = box.lo, box.hi
            yield f"  const int top{number} = max(y0, {top}), bottom{number} = min(y1, {bottom});"
            yield f"  const int left{number} = max(c0, {left}), right{number} = min(c1, {right});"

    def _conditions(self) -> Iterator[str]:
        """Which columns of a lane each update of a zone along axis 1 applies to."""
        if self.place.axis == 0:
            return
        for stage, choices in enumerate(self.place.choices):
            for place, choice in enumerate(choices):
                for i in range(self.shape.columns):
                    if text := self.bounds(choice, f"(x + {i})"):
                        yield f"  const bool in{stage}_{place}_{i} = {text};"

    def bounds(self, choice: Choice, at: str) -> str:
        """The text of whether an update applies at a coordinate along the zone's axis; empty if always."""
        tests = [f"{at} >= {choice.least}"] if choice.least is not None else []
        tests += [f"{at} < {choice.most}"] if choice.most is not None else []
        return " && ".join(tests)

    def _profiles(self) -> Iterator[str]:
        """Profiles along axis 1, which no row changes."""
        reads = {r for stage in self.place.choices for c in stage for r in c.update.reads}
        for read in sorted(reads, key=str):
            described = self.problem.fields[read.field]
            if described.axes == (1,):
                for i in range(self.shape.columns):
                    yield f"  const R {self.profile(read, i)} = {self.coefficient(read, f'x + {i + read.offset[1]}')};"

    def _sums_declared(self) -> Iterator[str]:
        return norm.declared(self.shape.steps, self.shape.columns) if self.norm else iter(())

    def profile(self, read: Read, i: int) -> str:
        """The name of a value of a profile along axis 1."""
        side = f"m{-read.offset[1]}" if read.offset[1] < 0 else f"p{read.offset[1]}"
        return f"g{self.arguments.fields.index(read.field)}_{side}_{i}"

    def coefficient(self, read: Read, at: str) -> str:
        """A value of a profile straight from memory; where the device has none, its nearest (never used)."""
        described = self.problem.fields[read.field]
        lo, hi = self.known(described, described.axes[0])
        return f"a.fields[{self.arguments.fields.index(read.field)}].slot[0][pg_clamp({at}, {lo}, {hi})]"

    def _fetch(self, condition: str) -> Iterator[str]:
        size = self.pack * self.problem.itemsize
        row = condition.removesuffix(" < last")
        yield f"    if ({condition}) {{"
        for ring in self.rings.values():
            number, start = self._number(ring.version), self._from(ring.version, row)
            yield f"      if (has{number} && {row} >= ylo{number} && {row} < yhi{number}) {{"
            for part in range(self.shape.columns // self.pack):
                place = ring.start + part * 32 * size
                yield f"        pg_fetch<{size}>(ring + in_{ring.rows} + {place}, {start} + {part * self.pack});"
            yield "      }"
            yield from (f"      {line}" for line in self._next("in", number))
        yield "    }"
        yield "    pg_fetched();"
        yield from self._advance("in")

    def _turn(self) -> Iterator[str]:
        row = "r"
        yield "    {"
        yield from self._fetch(f"{row} + {self.shape.ahead} < last")
        yield f"    pg_await<{self.shape.ahead}>();"
        body = _LayerTurn(self)
        for place, node in enumerate(self.levels.nodes):
            yield from body.node(node)
            yield from body.difference(node)
            yield from body.move_on(place)
        yield from self._ended()
        yield from self._store(row, body)
        yield from self._advance("at")
        yield "    }"

    def _ended(self) -> Iterator[str]:
        """The sums that end with the newest row."""
        if self.norm:
            for step, version in enumerate(self.levels.ends(self.norm)):
                yield from norm.ended(step, self.shape.columns, version.lag)
            yield norm.advanced()

    def _store(self, row: str, body: Turn) -> Iterator[str]:
        for version in self.levels.finals:
            number, start = self._number(version), self._to(version, row)
            yield from body.load(version, 0)
            yield f"    if ({row} >= top{number} + {version.lag} && {row} < bottom{number} + {version.lag}) {{"
            for i in range(self.shape.columns):
                column = f"x + {i}"
                yield (
                    f"      if ({column} >= left{number} && {column} < right{number}) "
                    f"({start})[{i}] = {body.name(version, 0)}[{i}];"
                )
            yield "    }"
            yield from (f"    {line}" for line in self._next("out", number))


class _LayerTurn(Turn):
    """The text of one turn of a zone's loop."""

    kernel: Layer2D

    def node(self, node: Node) -> Iterator[str]:
        assert isinstance(node, LayerNode)
        kernel = self.kernel
        yield f"    // step {node.step}, stage {node.stage}"
        for read in sorted({r for choice in node.choices for r in choice.update.reads}, key=str):
            if kernel.problem.fields[read.field].full:
                yield from self.load(*node.row(read))
                yield from self._neighbours(read, *node.row(read))
        for write in node.writes:
            yield from self._carried(node, write)
        for place, choice in enumerate(node.choices):
            yield from self._applied(node, place, choice)

    def squared(self, step: int, now: str, was: str) -> Iterator[str]:
        return norm.difference(step, self.kernel.shape.columns, now, was)

    def _carried(self, node: LayerNode, write: Write) -> Iterator[str]:
        """What a cell holds that no update changes."""
        choices = [c for c in node.choices if write.new.field in c.update.targets]
        if any(self.kernel.bounds(choice, "") == "" for choice in choices):
            return
        age = node.lag - write.old.lag
        yield from self.load(write.old, age)
        for i in range(self.kernel.shape.columns):
            yield f"    {self.name(write.new, 0)}[{i}] = {self.name(write.old, age)}[{i}];"

    def _applied(self, node: LayerNode, place: int, choice: Choice) -> Iterator[str]:
        """An update where it applies."""
        kernel = self.kernel
        if kernel.place.axis == 0:
            text = kernel.bounds(choice, f"(r + {-node.lag})")
            yield f"    if ({text}) {{" if text else "    {"
        for i in range(kernel.shape.columns):
            if kernel.place.axis == 1:
                text = f"in{node.stage}_{place}_{i}"
                yield f"    if ({text}) {{" if kernel.bounds(choice, "") else "    {"
            news = [next(w.new for w in node.writes if w.new.field == name) for name in choice.update.targets]
            lines = assigned(
                kernel.arguments,
                choice.update.assignments,
                [f"{self.name(new, 0)}[{i}]" for new in news],
                lambda read, i=i: self._value(node, read, i),  # type: ignore[misc]
                prefix=f"t{i}_",
                step=f"step0 + {node.step}",
            )
            yield from (f"      {line}" for line in lines)
            if kernel.place.axis == 1:
                yield "    }"
        if kernel.place.axis == 0:
            yield "    }"

    def _profile(self, node: Node, read: Read, i: int) -> str:
        if self.kernel.problem.fields[read.field].axes == (1,):
            return self.kernel.profile(read, i)
        return self.kernel.coefficient(read, f"r + {-node.lag + read.offset[0]}")
