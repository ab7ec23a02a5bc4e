"""Loads of a row function in vectors: whole vectors, and the last one of a line, which is masked.

Most vectors to the left and right of an aligned one lie across two cache lines, and take two accesses each. Where
several are needed they may be shifted together from the aligned vectors before, here and behind. Of the vector before a
line's first and of that behind its last whole one no more is read than is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from peergrid.codegen.cpu.lanes import VECTOR, Lanes

SHIFTED = 4  # values beside the vector from which on shifting is less work than loading


@dataclass(frozen=True, slots=True)
class Load:
    """A vector of values, so many cells along from a line's."""

    name: str
    line: str
    along: int


Code = Sequence[str | Load]


@dataclass(frozen=True)
class Reach:
    """The farthest values before and behind a vector that are read of a line, in cells."""

    before: int
    behind: int


def reaches(lanes: Lanes, code: Code) -> dict[str, Reach]:
    """The lines of which so many values left and right are read that shifting them together is less work."""
    found: dict[str, set[int]] = {}
    for one in code:
        if isinstance(one, Load) and one.along:
            found.setdefault(one.line, set()).add(one.along)
    return {
        line: Reach(max(0, -min(along)), max(0, *along))
        for line, along in found.items()
        if len(along) >= SHIFTED and max(map(abs, along)) <= lanes.count
    }


def ends(lanes: Lanes, shifted: Mapping[str, Reach]) -> list[str]:
    """Code ahead of all lines: of the vector after the last whole one, the lanes that may be read.

    It takes the `%cells` after the last whole vector.
    """
    return [
        line
        for behind in sorted({reach.behind for reach in shifted.values()} - {0})
        for line in (
            f"%behind{behind}.count = add i64 %cells, {behind}",
            f"%behind{behind}.next = shl i64 1, %behind{behind}.count",
            f"%behind{behind}.all = sub i64 %behind{behind}.next, 1",
            f"%behind{behind}.last = trunc i64 %behind{behind}.all to i{lanes.count}",
        )
    ]


def whole(lanes: Lanes, code: Code, shifted: Mapping[str, Reach]) -> list[str]:
    """The code of a whole vector, `%x` bytes from the line's begin, maybe the `%first`, maybe with `%more` behind."""
    writer = _Whole(lanes, shifted)
    return [line for one in code for line in ([one] if isinstance(one, str) else writer.load(one))]


def masked(lanes: Lanes, code: Code) -> list[str]:
    """The code of the cells after the last whole vector, those of `%mask`."""
    return [line for one in code for line in ([one] if isinstance(one, str) else _masked(lanes, one))]


def _masked(lanes: Lanes, load: Load) -> list[str]:
    call = f"call {lanes.vector} @llvm.masked.load.{lanes.suffix}.p0"
    given = f"ptr {load.name}.p, i32 {lanes.size}, {lanes.mask} %mask, {lanes.vector} zeroinitializer"
    return [*_address(load.name, load.line, load.along * lanes.size), f"{load.name} = {call}({given})"]


def _address(name: str, line: str, by: int) -> list[str]:
    return [f"{name}.x = getelementptr i8, ptr {line}, i64 %x", f"{name}.p = getelementptr i8, ptr {name}.x, i64 {by}"]


@dataclass
class _Whole:
    """The loads of a whole vector while they are written: masks and aligned vectors once."""

    lanes: Lanes
    shifted: Mapping[str, Reach]
    written: set[str] = field(default_factory=set)

    def load(self, load: Load) -> Iterator[str]:
        lanes = self.lanes
        if load.line not in self.shifted:
            yield from _address(load.name, load.line, load.along * lanes.size)
            yield f"{load.name} = load {lanes.vector}, ptr {load.name}.p, align {lanes.size}"
            return
        yield from self._aligned(f"{load.line}.here", load.line, 0)
        name = f"{load.line}.here"
        if load.along:
            name, pair = f"{load.name}.w", (name, f"{load.line}.behind")
            if load.along > 0:
                yield from self._behind(load.line)
            else:
                yield from self._before(load.line)
                pair = f"{load.line}.before", pair[0]
            cells = ", ".join(f"i32 {load.along % lanes.count + n}" for n in range(lanes.count))
            both = f"{lanes.words} {pair[0]}, {lanes.words} {pair[1]}"
            yield f"{name} = shufflevector {both}, <{lanes.count} x i32> <{cells}>"
        yield f"{load.name} = bitcast {lanes.words} {name} to {lanes.vector}"

    def _aligned(self, name: str, line: str, by: int, mask: str = "") -> Iterator[str]:
        """An aligned vector, as integers: LLVM shifts these together in one instruction, and numbers in two."""
        lanes = self.lanes
        if name in self.written:
            return
        self.written.add(name)
        yield from _address(name, line, by)
        if mask:
            call = f"call {lanes.words} @llvm.masked.load.{lanes.words_suffix}.p0"
            yield f"{name} = {call}(ptr {name}.p, i32 {lanes.size}, {lanes.mask} {mask}, {lanes.words} zeroinitializer)"
        else:
            yield f"{name} = load {lanes.words}, ptr {name}.p, align {lanes.size}"

    def _before(self, line: str) -> Iterator[str]:
        count, reach = self.lanes.count, self.shifted[line].before
        ends = (1 << count) - (1 << (count - reach))
        yield from self._mask(f"%before{reach}", f"i1 %first, i{count} {ends}, i{count} -1")
        yield from self._aligned(f"{line}.before", line, -VECTOR, f"%before{reach}")

    def _behind(self, line: str) -> Iterator[str]:
        count, name = self.lanes.count, f"%behind{self.shifted[line].behind}"
        yield from self._mask(name, f"i1 %more, i{count} -1, i{count} {name}.last")
        yield from self._aligned(f"{line}.behind", line, VECTOR, name)

    def _mask(self, name: str, chosen: str) -> Iterator[str]:
        if name not in self.written:
            self.written.add(name)
            yield f"{name}.bits = select {chosen}"
            yield f"{name} = bitcast i{self.lanes.count} {name}.bits to {self.lanes.mask}"
