"""The rows of a boundary tile of a 2D pass in shared memory: a ring for each state field and step, one for all
steps for a coefficient, and the part that it needs of each profile.

Each warp makes one step, a fixed number of rows behind the warp of the step before. A stage finds rows of its own step
at once, rows that another warp made only after the next barrier, so one row later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from peergrid.codegen.cuda.blocked.reach import overhead
from peergrid.codegen.cuda.blocked.updates import confined_bits
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.pipeline import Pipeline, Span, StageAccess, Value, pipeline, span_of
from peergrid.stencil import Problem, Stage
from peergrid.stencil.expr import Read

MOST_ROWS = 64  # of a tile


class Ring(NamedTuple):
    """Rows in shared memory, in values (see `boundary2d.cuh`): of step t they begin at `start + t * stride`; those that
    a step is given at `first` for step 0, else one stride earlier.
    """

    start: int
    stride: int
    rows: int
    first: int = 0
    first_rows: int = 0


@dataclass(frozen=True)
class BoundaryRings:
    """The rings of one problem in passes of so many steps.

    width: columns of a tile, a multiple of 32, redundant ones included; ahead: rows loaded ahead; norm: a field whose
    rows before each step are kept, too.
    """

    problem: Problem
    steps: int
    width: int = 64
    ahead: int = 3
    norm: str | None = None

    @cached_property
    def step(self) -> Pipeline:
        """The stages of one step at the smallest lags at which every read finds its row; of the field `norm` the row
        before the step is kept, too.
        """
        accesses = [_access(self.problem, number, stage) for number, stage in enumerate(self.problem.stages)]
        return pipeline(self.problem.state, accesses, 1, after_inputs=1, kept=self.norm)

    @cached_property
    def given(self) -> Mapping[str, Value]:
        """The rows that a step is given of each state field."""
        return self.step.starts[0]

    @cached_property
    def lag(self) -> int:
        """The rows by which what a step leaves lies behind what it is given."""
        return max(node.lag for node in self.step.nodes)

    @cached_property
    def _between(self) -> tuple[Value, ...]:
        """The rows that a step makes for itself alone."""
        made = dict.fromkeys(value for node in self.step.nodes for value in node.after.values())
        return tuple(value for value in made if value not in self.step.finals.values())

    @cached_property
    def pads(self) -> tuple[int, int]:
        """Rows and columns on each side of a tile's that reads may touch (their values are never used)."""
        offsets = [read.offset for read in self._reads]
        return max((abs(y) for y, _ in offsets), default=0), max((abs(x) for _, x in offsets), default=0)

    @property
    def stride(self) -> int:
        """Values of a row in shared memory."""
        return self.width + 2 * self.pads[1]

    @cached_property
    def rows(self) -> int:
        """The most rows that a tile needs, those it loads beside its own included."""
        return MOST_ROWS + overhead(self.problem, self.steps)

    def depth(self, rows: Value, first: bool) -> int:
        """The number of rows in a ring; `first`: of those loaded from memory."""
        if not rows.source:
            return rows.depth
        if first:
            return self.ahead + rows.depth
        left = self.step.finals[rows.field]
        return max(self.lag - left.lag + rows.depth, left.depth)

    @cached_property
    def coefficients(self) -> dict[str, int]:
        """The number of rows kept of each coefficient field; one that is read too far ahead is left in memory."""
        found, early = dict[str, int](), set[str]()
        for node in self.step.nodes:
            for read in self.problem.stages[node.stage].reads:
                if read.field in self.problem.state or not self.problem.fields[read.field].full:
                    continue
                least, most = _rows_of(self.problem, read)
                age = (self.steps - 1) * self.lag + node.lag - least
                found[read.field] = max(found.get(read.field, 0), self.ahead + age + 1)
                if node.lag - most < 1:
                    early.add(read.field)
        return {name: found[name] for name in self.problem.fields if name in found and name not in early}

    @cached_property
    def profiles(self) -> tuple[str, ...]:
        """The coefficient fields along one axis, of which a tile keeps what it needs."""
        reads, fields = {read.field for read in self._reads}, self.problem.fields
        return tuple(n for n in fields if n in reads - set(self.problem.state) and len(fields[n].axes) == 1)

    @property
    def rings(self) -> dict[Value | str, Ring]:
        """The rings of the rows that a step is given and of those that it makes; of each coefficient, the same for all
        steps.
        """
        return self._rings[0]

    @cached_property
    def _rings(self) -> tuple[dict[Value | str, Ring], int]:
        """The rings, one behind the other, and the values of all; what a step leaves is what the next one is given."""
        found, at = dict[Value | str, Ring](), 0
        for names in self.sharing:
            first, size = (max(self.depth(self.given[name], n) for name in names) * self.stride for n in (True, False))
            for name in names:
                given, left = self.given[name], self.step.finals[name]
                rows = self.depth(given, first=False)
                found[left] = Ring(at + first, size, rows)
                found[given] = Ring(at + first, size, rows, at, self.depth(given, first=True))
            at += first + size * self.steps
        for value in self._between:
            found[value] = Ring(at, value.depth * self.stride, value.depth)
            at += value.depth * self.stride * self.steps
        for name, depth in self.coefficients.items():
            found[name] = Ring(at, 0, depth)
            at += depth * self.stride
        return found, at

    @cached_property
    def profile_starts(self) -> dict[str, int]:
        """The beginning of each profile's values, behind all rings."""
        at, found = self._rings[1], dict[str, int]()
        for name in self.profiles:
            found[name] = at
            at += self._profile_length(name)
        return found

    def loaded(self, name: str) -> tuple[int, int] | None:
        """The beginning and the rows of the ring of a field whose rows come from memory; None if there is none."""
        if name in self.problem.state:
            return self.rings[self.given[name]][-2:]
        return (self.rings[name].start, self.rings[name].rows) if name in self.coefficients else None

    def _profile_length(self, name: str) -> int:
        """The number of values of a profile that a tile keeps."""
        return self.rows + 2 * self.pads[0] if self.problem.fields[name].axes == (0,) else self.stride

    @cached_property
    def sharing(self) -> tuple[tuple[str, ...], ...]:
        """The state fields in groups of which a tile deals with one at most: they take the same room."""
        groups: list[list[str]] = []
        for name in self.problem.state:
            found = (group for group in groups if all(self._apart(name, other) for other in group))
            group = next(found, None)
            if group is None:
                groups.append([name])
            else:
                group.append(name)
        return tuple(map(tuple, groups))

    def _apart(self, one: str, other: str) -> bool:
        """True where no tile reaches the boxes of both fields."""
        if not {one, other} <= confined_bits(self.problem).keys():
            return False
        a, b = self.problem.fields[one].box, self.problem.fields[other].box
        most = (self.rows, self.width)
        return any(max(a.lo[k], b.lo[k]) - min(a.hi[k], b.hi[k]) >= most[k] for k in (0, 1))

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return (self._rings[1] + sum(map(self._profile_length, self.profiles))) * self.problem.itemsize

    @property
    def blocks(self) -> int:
        """For how many blocks a multiprocessor has shared memory."""
        return H200.blocks_by_shared(self.shared_bytes)

    @property
    def _reads(self) -> Iterator[Read]:
        return (read for stage in self.problem.stages for read in stage.reads)


def _rows_of(problem: Problem, read: Read) -> Span:
    """The least and the largest row offset that a read may mean; beyond a reflecting edge it means the mirrored one."""
    offset = read.offset[0]
    return (-abs(offset), abs(offset)) if problem.grid.boundary[0] == "reflecting" else (offset, offset)


def _access(problem: Problem, number: int, stage: Stage) -> StageAccess:
    """The rows of state fields that any cell of a stage reads, and those that a cell may keep."""
    reads = {read for read in stage.reads if read.field in problem.state}
    reads |= {Read(target, (0,) * problem.grid.ndim) for target in stage.targets}
    elsewhere = {read.field for read in reads if any(read.offset)}
    spans = span_of((r.field, row) for r in reads for row in _rows_of(problem, r))
    return StageAccess(number, spans, stage.targets, frozenset(stage.targets) - elsewhere)
