"""A small NumPy stepper for physics tests: the updates of a problem as plain array statements, in place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from peergrid.grid import Array, Box, Index
from peergrid.stencil import Problem, Stage
from peergrid.stencil.expr import Binary, Const, Expr, Now, Param, Read

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}


@dataclass
class Source:
    """Python source of one step, with the array views that it names."""

    problem: Problem
    arrays: dict[str, Array]
    names: dict[str, object] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def stage(self, stage: Stage) -> None:
        writes = []
        for update in stage.updates:
            if update.box.empty:
                continue
            known: dict[int, str] = {}
            for assignment in update.assignments:
                value = self.value(assignment.value, update.box, known)
                writes.append(f"{self.view(assignment.target, update.box, None)}[...] = {value}")
        self.lines += writes

    def value(self, expr: Expr, box: Box, known: dict[int, str]) -> str:
        if id(expr) in known:
            return known[id(expr)]
        match expr:
            case Const(number):
                text = self.name(np.dtype(self.problem.grid.dtype).type(number))
            case Param(key):
                text = self.name(np.dtype(self.problem.grid.dtype).type(self.problem.params[key]))
            case Now(signal):
                text = f"{self.name(self.problem.signals[signal].samples)}[step]"
            case Read(name, offset):
                text = self.view(name, box, offset)
            case Binary(op, a, b):
                left, right = self.value(a, box, known), self.value(b, box, known)
                text = f"t{len(self.lines)}"
                self.lines.append(f"{text} = {left} {SIGNS[op]} {right}")
            case _:
                raise TypeError(f"The stepper knows no {expr!r}.")
        known[id(expr)] = text
        return text

    def view(self, name: str, box: Box, offset: Index | None) -> str:
        described = self.problem.fields[name]
        seen = box if offset is None else box.shift(offset)
        chosen = tuple(
            slice(seen.lo[a] - described.box.lo[a], seen.hi[a] - described.box.lo[a]) for a in described.axes
        )
        spread = tuple(slice(None) if a in described.axes else None for a in range(box.ndim))
        if any(s.start < 0 or s.stop > n for s, n in zip(chosen, self.arrays[name].shape, strict=True)):
            around = np.ix_(
                *(np.arange(s.start, s.stop) % n for s, n in zip(chosen, self.arrays[name].shape, strict=True))
            )
            return f"{self.name(self.arrays[name])}[{self.name(around)}]"
        return self.name(self.arrays[name][chosen][spread])

    def name(self, thing: object) -> str:
        label = f"v{len(self.names)}"
        self.names[label] = thing
        return label

    def compile(self) -> Callable[[int], None]:
        body = "\n    ".join(self.lines)
        exec(f"def advance(step):\n    {body}\n", self.names)
        return self.names["advance"]  # type: ignore[return-value]


class Stepper:
    """Steps a problem; `arrays` holds the fields now, `traces` what the receivers recorded."""

    def __init__(self, problem: Problem, init: dict[str, Array] | None = None) -> None:
        self.problem = problem
        self.arrays = {name: one.global_array() for name, one in problem.fields.items()}
        for name, values in (init or {}).items():
            self.arrays[name][...] = values
        source = Source(problem, self.arrays)
        for stage in problem.stages:
            source.stage(stage)
        self._advance = source.compile()
        self._records: list[list[float]] = []
        self.step = 0

    def run(self, steps: int) -> Stepper:
        for _ in range(steps):
            self._advance(self.step)
            self._records.append([self.arrays[r.field][r.cell] for r in self.problem.receivers])
            self.step += 1
        return self

    def traces(self) -> dict[str, Array]:
        table = np.array(self._records, dtype=np.float64)
        return {r.name: table[:, k] for k, r in enumerate(self.problem.receivers)}
