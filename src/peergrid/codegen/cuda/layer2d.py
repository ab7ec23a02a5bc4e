"""Several time steps of a 2D problem in one pass over memory: the kernel of the zones along a grid's sides.

As in `stream2d` one warp streams down the rows of a strip and holds the rows of every step in registers; where the
interior has one update for a cell, a zone has a few, told apart by the distance from the side (see `zones`): rows of a
zone along axis 0 branch together, columns of a zone along axis 1 select. Each zone has a function of its own, all are
in one kernel; `variant` of a tile says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.arguments import Arguments
from peergrid.codegen.cuda.expressions import emit
from peergrid.codegen.cuda.levels import Levels, Node, Version, Write
from peergrid.codegen.cuda.stream2d import KERNEL, Stream2D, Turn
from peergrid.codegen.cuda.stream_parts import Shape, known, margin, prelude, row_reach
from peergrid.codegen.cuda.tiles import Cut, unbounded
from peergrid.codegen.cuda.zones import Choice, Zone, zones
from peergrid.grid import Field
from peergrid.stencil import Problem
from peergrid.stencil.expr import Read
from peergrid.stencil.remember import remembered

BASE = 32  # registers of a thread beside rows and pointers
PLAIN = 200  # registers of plain tiles: two of their warps on each of four schedulers with 16384
BESIDE = 112  # leave as many to a warp of a zone
FEW, MOST = 140, 216  # registers by the count of rows: up to which a zone fits into BESIDE, and at all
COLUMNS = (1, 2, 4)
USEFUL = 16  # columns of a tile that are not redundant, at least


@dataclass(frozen=True)
class LayerNode(Node):
    """A node of a zone: one of several updates applies to a cell, or none."""

    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class LayerLevels(Levels):
    """The nodes of a zone: what a cell may read, whichever update applies."""

    @cached_property
    def last_reader(self) -> dict[Version, int]:
        found: dict[Version, int] = {}
        for place, node in enumerate(self.nodes):
            assert isinstance(node, LayerNode)
            reads = {read for choice in node.choices for read in choice.update.reads if read.field in node.before}
            found |= {node.before[read.field]: place for read in reads}
            found |= {write.old: place for write in node.writes}
        return found


def layer_levels(problem: Problem, steps: int, zone: Zone) -> LayerLevels:
    """The nodes of a zone; every version keeps the row that a cell which no update changes is carried over from."""
    count = 0

    def version(name: str, lag: int, source: bool = False) -> Version:
        nonlocal count
        count += 1
        return Version(count - 1, name, lag, source=source)

    current = {name: version(name, 0, source=True) for name in _fields(problem, zone)}
    inputs, starts, nodes = tuple(current.values()), [], list[Node]()
    for step in range(steps):
        starts.append(dict(current))
        for number, choices in enumerate(zone.choices):
            if not choices:
                continue
            assignments = {a.target: a for choice in choices for a in choice.update.assignments}
            reads = {r for c in choices for r in c.update.reads if problem.fields[r.field].full}
            before = dict(current)
            lag = max([before[r.field].lag + r.offset[0] for r in reads] + [before[t].lag for t in assignments])
            for target in assignments:
                before[target].reach(lag - before[target].lag)
                current[target] = version(target, lag)
            writes = tuple(Write(a, current[target], before[target]) for target, a in assignments.items())
            node = LayerNode(step, number, lag, writes, before, choices)
            for read in reads:
                kept, age = node.row(read)
                kept.reach(age)
            nodes.append(node)
    starts.append(dict(current))
    finals = tuple(current[name] for name in problem.state if name in current)
    return LayerLevels(steps, tuple(nodes), inputs, finals, tuple(starts))


def _fields(problem: Problem, zone: Zone) -> list[str]:
    """The fields that the zone reads, and those whose values it has to hand on."""
    named = {name for name in problem.state if unbounded(problem, problem.fields[name].box).overlaps(zone.box)}
    named |= {r.field for stage in zone.choices for c in stage for r in c.update.reads if problem.fields[r.field].full}
    named |= {target for stage in zone.choices for c in stage for target in c.update.targets}
    return [name for name in problem.fields if name in named]


@dataclass(frozen=True)
class Layer2D(Stream2D):
    """The text of one zone's function; `entry` is its name without `_tile`."""

    zone: Zone | None = None

    @property
    def place(self) -> Zone:
        """The zone, which is always there."""
        assert self.zone is not None
        return self.zone

    @cached_property
    def levels(self) -> Levels:
        return layer_levels(self.problem, self.shape.steps, self.place)

    @cached_property
    def useful(self) -> int:
        """Columns of a tile: what a strip leaves when it loses its margins; one that reaches the side loses one."""
        lost, zone = margin(self.problem, self.shape), self.place
        alone = zone.axis == 1 and zone.box.shape[1] <= self.shape.width - lost
        return self.shape.width - (lost if alone else 2 * lost)

    @cached_property
    def tile(self) -> str:
        above, below = row_reach(self.problem, self.shape.steps)
        left = f"(c0 & ~7) - {margin(self.problem, self.shape)}"
        first, last = f"y0 - {above}", f"y1 + {below}"
        if not self.problem.grid.periodic[0]:
            first, last = f"max({first}, 0)", f"min({last}, {self.problem.grid.shape[0]})"
        if not self.problem.grid.periodic[1]:
            left = f"max({left}, 0)"
        lines = [
            f"__device__ __forceinline__ void {self.entry}_tile(const Arguments& a, const Region& tile,",
            "    const int source, const int target, const long long step0, unsigned char* const shared) {",
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
            number = self.arguments.fields.index(ring.version.field)
            yield f"      if (has{number} && {row} >= ylo{number} && {row} < yhi{number}) {{"
            for part in range(self.shape.columns // self.pack):
                place = ring.start + part * 32 * size
                yield f"        pg_fetch<{size}>(ring + in_{ring.rows} + {place}, in{number} + {part * self.pack});"
            yield "      }"
            yield f"      in{number} += a.fields[{number}].pitch[0];"
        yield "    }"
        yield "    pg_fetched();"
        yield from self._advance("in")

    def _turn(self, turn: int, ending: Sequence[int]) -> Iterator[str]:
        row = f"r + {turn}" if turn else "r"
        yield "    {"
        yield from self._fetch(f"{row} + {self.shape.ahead} < last")
        yield f"    pg_await<{self.shape.ahead}>();"
        body = _LayerTurn(self, turn)
        for place, node in enumerate(self.levels.nodes):
            yield from body.node(node)
            yield from body.move_on(place)
        yield from self._store(row, body)
        yield from self._advance("at")
        yield "    }"

    def _store(self, row: str, body: Turn) -> Iterator[str]:
        for version in self.levels.finals:
            number = self.arguments.fields.index(version.field)
            yield from body.load(version, 0)
            yield f"    if ({row} >= top{number} + {version.lag} && {row} < bottom{number} + {version.lag}) {{"
            for i in range(self.shape.columns):
                column = f"x + {i}"
                yield (
                    f"      if ({column} >= left{number} && {column} < right{number}) "
                    f"out{number}[{i}] = {body.name(version, 0)}[{i}];"
                )
            yield "    }"
            yield f"    out{number} += a.fields[{number}].pitch[0];"


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
            text = kernel.bounds(choice, f"(r + {self.turn - node.lag})")
            yield f"    if ({text}) {{" if text else "    {"
        for i in range(kernel.shape.columns):
            if kernel.place.axis == 1:
                text = f"in{node.stage}_{place}_{i}"
                yield f"    if ({text}) {{" if kernel.bounds(choice, "") else "    {"
            for assignment in choice.update.assignments:
                new = next(write.new for write in node.writes if write.new.field == assignment.target)
                value = emit(
                    assignment.value,
                    lambda read, i=i: self._value(node, read, i),  # type: ignore[misc]
                    kernel.arguments.param,
                    lambda signal: kernel.arguments.now(signal).replace("step)", f"step0 + {node.step})"),
                    kernel.dtype,
                )
                yield f"      {self.name(new, 0)}[{i}] = {value};"
            if kernel.place.axis == 1:
                yield "    }"
        if kernel.place.axis == 0:
            yield "    }"

    def _profile(self, node: Node, read: Read, i: int) -> str:
        if self.kernel.problem.fields[read.field].axes == (1,):
            return self.kernel.profile(read, i)
        return self.kernel.coefficient(read, f"r + {self.turn - node.lag + read.offset[0]}")


TILE = """\
__device__ __forceinline__ void layer2d_tile(const Arguments& a, const Region& tile, const int source,
    const int target, const long long step0, unsigned char* const shared) {{
  switch (tile.variant) {{
{cases}
  }}
}}
"""


def layer(problem: Problem, steps: int, zone: Zone, name: str) -> Layer2D | None:
    """The function of a zone, with as few columns to a lane as leave some useful; None where registers do not do.

    Rows move from register to register: that takes the fewest, so that blocks fit beside those of plain tiles.
    """
    for columns in COLUMNS:
        made = Layer2D(problem, Shape(steps, columns, ahead=2, rotate=False), name, zone=zone)
        if made.useful >= USEFUL:
            return made if _registers(made) <= MOST else None
    return None


def _registers(made: Layer2D) -> int:
    rows = sum(version.depth for version in made.levels.versions)
    pointers = 2 * (len(made.levels.inputs) + len(made.levels.finals))
    return BASE + pointers + made.shape.columns * rows * (made.problem.itemsize // 4)


@remembered()
def layers(problem: Problem, steps: int, cut: Cut) -> Layers2D | None:
    """The kernel of all zones of a problem; None where it has none."""
    found = (layer(problem, steps, zone, f"zone{n}") for n, zone in enumerate(zones(problem, steps, cut)))
    parts = tuple(part for part in found if part is not None)
    return Layers2D(problem, parts) if parts else None


@dataclass(frozen=True)
class Layers2D:
    """All zones of a problem in one kernel, a warp for each tile: blocks are small and find room beside others."""

    problem: Problem
    parts: tuple[Layer2D, ...]
    warps: int = 1
    entry: str = "layer2d"

    @cached_property
    def tile(self) -> str:
        """The device functions of all zones and the one that calls them."""
        call = "    case {0}: {1}_tile(a, tile, source, target, step0, shared); break;"
        cases = "\n".join(call.format(number, part.entry) for number, part in enumerate(self.parts))
        return "\n".join([CLAMP, *(part.tile for part in self.parts), TILE.format(cases=cases)])

    @property
    def source(self) -> str:
        """The whole translation unit."""
        parts = (prelude(Arguments(self.problem)), self.tile, self.kernel)
        return "\n".join(parts)

    @property
    def kernel(self) -> str:
        """The kernel whose warps take one tile each."""
        text = KERNEL.format(
            threads=32 * self.warps,
            bound="",
            entry=self.entry,
            more="",
            warps=self.warps,
            warp_bytes=self.warp_bytes,
            norms="",
        )
        return self.limited(text)

    @property
    def small(self) -> bool:
        """Whether its tiles find room beside plain ones."""
        return max(map(_registers, self.parts)) <= FEW

    def limited(self, kernel: str) -> str:
        """The text of a kernel of zones with its registers bounded, where that costs nothing."""
        return bounded(kernel, 32 * self.warps, BESIDE) if self.small else kernel

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.warps * self.warp_bytes

    @property
    def warp_bytes(self) -> int:
        """Shared memory of a warp."""
        return max(-(-part.warp_bytes // 128) * 128 for part in self.parts)


def bounded(kernel: str, threads: int, registers: int) -> str:
    """The text of a kernel whose threads take so many registers at most; one told its blocks at once stays as it is."""
    return kernel.replace(f"__launch_bounds__({threads})", f"__maxnreg__({registers})")


CLAMP = """\
__device__ __forceinline__ int pg_clamp(int i, int lo, int hi) { return i < lo ? lo : i >= hi ? hi - 1 : i; }
"""
