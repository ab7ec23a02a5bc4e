"""One step of a problem for a pipeline of warps: how far each stage lags, and which rows lie in between.

Each warp makes one step, a fixed number of rows behind the warp of the step before. A stage finds rows of its own step
at once, rows that another warp made only after the next barrier, so one row later.
"""

from __future__ import annotations

from peergrid.codegen.pipeline import Pipeline, Span, StageAccess, pipeline, span_of
from peergrid.stencil import Problem, Stage
from peergrid.stencil.expr import Read


def step(problem: Problem, norm: str | None = None) -> Pipeline:
    """The smallest lags at which every read finds its row; of the field `norm` the row before the step is kept, too."""
    accesses = [_access(problem, number, stage) for number, stage in enumerate(problem.stages)]
    return pipeline(problem.state, accesses, 1, after_inputs=1, kept=norm)


def rows_of(problem: Problem, read: Read) -> Span:
    """The least and the largest row offset that a read may mean; beyond a reflecting edge it means the mirrored one."""
    offset = read.offset[0]
    return (-abs(offset), abs(offset)) if problem.grid.boundary[0] == "reflecting" else (offset, offset)


def _access(problem: Problem, number: int, stage: Stage) -> StageAccess:
    """The rows of state fields that any cell of a stage reads, and those that a cell may keep."""
    reads = {r for u in stage.updates for r in u.reads if r.field in problem.state}
    reads |= {Read(target, (0,) * problem.grid.ndim) for target in stage.targets}
    elsewhere = {read.field for read in reads if any(read.offset)}
    spans = span_of((r.field, row) for r in reads for row in rows_of(problem, r))
    return StageAccess(number, spans, stage.targets, frozenset(stage.targets) - elsewhere)
