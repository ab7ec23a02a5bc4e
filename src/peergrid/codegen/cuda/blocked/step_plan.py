"""One step of a problem for a pipeline of warps: how far each stage lags, and which rings of rows lie in between.

Each warp makes one step, a fixed number of rows behind the warp of the step before. A stage finds rows of its own step
at once, rows that another warp made only after the next barrier, so one row later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from peergrid.codegen.pipeline import StageAccess, Value, pipeline, span_of
from peergrid.stencil import Problem, Stage
from peergrid.stencil.expr import Read


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one state field; `lag` rows behind the newest that the step is given, `age` the oldest that is read.

    made: written by a stage of the step (else by the step before); place: its number among those of the same kind.
    """

    field: str
    lag: int
    made: bool
    place: int
    age: int


@dataclass(frozen=True)
class StagePlan:
    """A stage: its lag, where it writes its targets, where it finds each state field."""

    number: int
    stage: Stage
    lag: int
    targets: Mapping[str, Rows]
    before: Mapping[str, Rows]

    def in_place(self, target: str) -> bool:
        """True where the stage changes rows that an earlier stage of the same step made."""
        return self.targets[target] is self.before[target]


@dataclass(frozen=True)
class StepPlan:
    """The stages of one step, what it is given, what it makes in between, and what it leaves, `lag` rows behind."""

    stages: tuple[StagePlan, ...]
    given: Mapping[str, Rows]
    between: tuple[Rows, ...]
    final: Mapping[str, Rows]
    lag: int

    def last_stage(self, field: str) -> int:
        """The place in `stages` of the last stage that writes the field."""
        return max(k for k, plan in enumerate(self.stages) if field in plan.targets)


def step_plan(problem: Problem, norm: str | None = None) -> StepPlan:
    """The smallest lags at which every read finds its row; of the field `norm` the row before the step is kept, too."""
    accesses = [_access(problem, number, stage) for number, stage in enumerate(problem.stages)]
    made = pipeline(problem.state, accesses, 1, after_inputs=1, kept=norm)
    given = {
        name: Rows(name, 0, False, place, made.starts[0][name].depth - 1) for place, name in enumerate(problem.state)
    }
    final, values = set(made.finals.values()), [new for node in made.nodes for new in node.after.values()]
    between = dict.fromkeys(new for new in values if new not in final)
    rows = {value: given[name] for name, value in made.starts[0].items()}
    places = {value: place for place, value in enumerate(between)}
    for new in values:
        if new not in rows:
            rows[new] = Rows(new.field, new.lag, True, places.get(new, given[new.field].place), new.depth - 1)

    def of(values: Mapping[str, Value]) -> dict[str, Rows]:
        return {name: rows[value] for name, value in values.items()}

    stages = tuple(
        StagePlan(node.stage, problem.stages[node.stage], node.lag, of(node.after), of(node.before))
        for node in made.nodes
    )
    lag = max(node.lag for node in made.nodes)
    return StepPlan(stages, given, tuple(rows[value] for value in between), of(made.finals), lag)


def _access(problem: Problem, number: int, stage: Stage) -> StageAccess:
    """The rows of state fields that any cell of a stage reads, and those that a cell may keep."""
    reads = {r for u in stage.updates for r in u.reads if r.field in problem.state}
    reads |= {Read(target, (0,) * problem.grid.ndim) for target in stage.targets}
    elsewhere = {read.field for read in reads if any(read.offset)}
    spans = span_of((r.field, row) for r in reads for row in (reach_down(problem, r), reach_up(problem, r)))
    return StageAccess(number, spans, stage.targets, frozenset(stage.targets) - elsewhere)


def reach_down(problem: Problem, read: Read) -> int:
    """The smallest row offset that a read may mean; beyond a reflecting edge it means the mirrored one."""
    offset = read.offset[0]
    return -abs(offset) if problem.grid.boundary[0] == "reflecting" else offset


def reach_up(problem: Problem, read: Read) -> int:
    """The largest row offset that a read may mean."""
    offset = read.offset[0]
    return abs(offset) if problem.grid.boundary[0] == "reflecting" else offset
