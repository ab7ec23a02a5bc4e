"""Several time steps in one stream of rows: when each stage computes each row, and how long rows are kept.

Rows (planes in 3D) of a grid arrive one by one along axis 0. A *node*, one stage of one step, computes the row that
lies its *lag* behind the newest: the least lag at which all rows that it reads are there. What a node makes of a field
is a new *value*, of which as many rows are kept as its readers ask for. Lags follow from the offsets of reads along the
streamed axis alone, so that a pipeline knows neither dimensions nor devices: Jacobi's step lags one row, and so does a
whole step of Yee's (H, then E).

Method: time skewing along one axis (Wonnacott, IPDPS 2000; also wavefront blocking).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from peergrid.stencil.expr import Read

Span = tuple[int, int]
"""The least and the largest offset of rows that are read, from the row that is computed."""


@dataclass(frozen=True)
class StageAccess:
    """The rows that a stage reads of each field, and the fields that it writes.

    replaceable: targets whose rows may be replaced in place, as no other cell of the stage reads them.
    """

    stage: int
    reads: Mapping[str, Span]
    targets: tuple[str, ...]
    replaceable: frozenset[str] = frozenset()


@dataclass(frozen=True, eq=False)
class Value:
    """A field as it stands after some node. Row `age` is the one that lies `lag + age` behind the newest input row.

    depth: rows that are kept; source: given, not made by a node.
    """

    number: int
    field: str
    lag: int
    depth: int
    source: bool


@dataclass(frozen=True)
class PipelineNode:
    """One stage of one step, `lag` rows behind the input: the values of all fields before it, of its targets after."""

    step: int
    stage: int
    lag: int
    before: Mapping[str, Value]
    after: Mapping[str, Value]

    def row(self, read: Read) -> tuple[Value, int]:
        """The value and the age of the row that a read asks for."""
        value = self.before[read.field]
        return value, self.lag - read.offset[0] - value.lag


@dataclass(frozen=True)
class Pipeline:
    """The nodes of some steps in order; the values of all fields before each step and, at last, after all."""

    nodes: tuple[PipelineNode, ...]
    starts: tuple[Mapping[str, Value], ...]

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values that are given."""
        return tuple(self.starts[0].values())

    @property
    def finals(self) -> Mapping[str, Value]:
        """The values of all fields in the end; one that is an input is not changed."""
        return self.starts[-1]


def span_of(offsets: Iterable[tuple[str, int]]) -> dict[str, Span]:
    """The span of each field's offsets, fields in order of first appearance."""
    found: dict[str, Span] = {}
    for name, offset in offsets:
        least, most = found.get(name, (offset, offset))
        found[name] = (min(least, offset), max(most, offset))
    return found


def pipeline(
    fields: Iterable[str],
    stages: Sequence[StageAccess],
    steps: int,
    *,
    after_inputs: int = 0,
    carry: bool = False,
    kept: str | None = None,
) -> Pipeline:
    """The pipeline of the least lags.

    after_inputs: additional rows after which inputs are there; carry: the row that a stage replaces can be read, too,
    where the stage leaves some of its cells as they are; kept: a field whose rows before each step are kept until those
    after it are known.

    A stage replaces rows in place where they are of the same step and nothing but the stage reads them (see
    `StageAccess.replaceable`).
    """
    work = _Builder(list(fields), after_inputs, carry)
    for step in range(steps):
        work.starts.append(dict(work.current))
        for access in stages:
            work.add(step, access)
        if kept is not None:
            former = work.starts[-1][kept]
            work.keep(former, work.lags[work.current[kept]] - work.lags[former])
    work.starts.append(dict(work.current))
    return work.made()


Numbers = Mapping[str, int]
"""Values by their numbers, for each field."""


@dataclass
class _Builder:
    """Values as numbers while nodes are added: lags and depths are known when all nodes are."""

    fields: list[str]
    after_inputs: int
    carry: bool
    names: list[str] = field(init=False)
    lags: list[int] = field(init=False)
    depths: list[int] = field(init=False)
    current: dict[str, int] = field(init=False)
    starts: list[Numbers] = field(default_factory=list)
    nodes: list[tuple[int, int, int, Numbers, Numbers]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names, count = list(self.fields), len(self.fields)
        self.lags, self.depths = [0] * count, [1] * count
        self.current = {name: number for number, name in enumerate(self.names)}

    def add(self, step: int, access: StageAccess) -> None:
        """Add a node, with the least lag at which its reads are available and the rows that it replaces are no longer
        needed.
        """
        arrivals = (self._arrival(name, most) for name, (_, most) in access.reads.items())
        lag = max([*arrivals, *(self.lags[self.current[name]] for name in access.targets)])
        before, replaced = dict(self.current), self._replaced(access, lag)
        for name, (least, _) in access.reads.items():
            self.keep(before[name], lag - least - self.lags[before[name]])
        for name in access.targets:
            if self.carry:
                self.keep(before[name], lag - self.lags[before[name]])
            self.current[name] = before[name] if name in replaced else self._new(name, lag)
        self.nodes.append((step, access.stage, lag, before, {name: self.current[name] for name in access.targets}))

    def keep(self, number: int, age: int) -> None:
        """Keep the rows of a value up to an age."""
        self.depths[number] = max(self.depths[number], age + 1)

    def made(self) -> Pipeline:
        """The finished pipeline."""
        sources = len(self.fields)
        values = [
            Value(number, name, lag, depth, number < sources)
            for number, (name, lag, depth) in enumerate(zip(self.names, self.lags, self.depths, strict=True))
        ]

        def of(numbers: Numbers) -> Mapping[str, Value]:
            return {name: values[number] for name, number in numbers.items()}

        nodes = tuple(PipelineNode(step, stage, lag, of(b), of(a)) for step, stage, lag, b, a in self.nodes)
        return Pipeline(nodes, tuple(of(start) for start in self.starts))

    def _arrival(self, name: str, offset: int) -> int:
        """The least lag at which the row at an offset is there."""
        number = self.current[name]
        return self.lags[number] + offset + (self.after_inputs if number < len(self.fields) else 0)

    def _replaced(self, access: StageAccess, lag: int) -> set[str]:
        """The targets whose values of this step nothing but the same row of this stage reads."""
        found = ((name, self.current[name]) for name in access.targets if name in access.replaceable)
        return {
            name
            for name, number in found
            if self.starts[-1][name] != number and self.lags[number] == lag and self.depths[number] == 1
        }

    def _new(self, name: str, lag: int) -> int:
        self.names.append(name)
        self.lags.append(lag)
        self.depths.append(1)
        return len(self.names) - 1
