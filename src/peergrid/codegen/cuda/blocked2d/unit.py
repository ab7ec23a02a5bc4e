"""A translation unit of 2D kernels: tables of the problem, templates, each update once, plans, kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from peergrid.codegen.cuda.blocked.prelude import prelude
from peergrid.codegen.cuda.blocked2d.updates import Applied, Updates
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.skeletons import include
from peergrid.stencil import Problem


class Plan(Protocol):
    """The plan of a template: the updates that it applies, and its text, given their functions."""

    @property
    def applied(self) -> tuple[Applied, ...]: ...
    def source(self, updates: Updates) -> str: ...


def unit(
    problem: Problem,
    steps: int,
    norm: str | None,
    templates: Sequence[str],
    plans: Sequence[Plan],
    *kernels: str,
    tables: str = "",
) -> str:
    """The text for passes of so many steps; templates: files of `skeletons`; kernels: what is to follow the plans;
    tables: further ones that the templates ask for.
    """
    updates = Updates(problem, tuple(applied for plan in plans for applied in plan.applied))
    head = (
        prelude(Arguments(problem), norm),
        updates.tables(steps),
        tables,
        include("tiles2d.cuh", *templates),
        updates.source,
    )
    return "\n".join((*filter(None, head), *(plan.source(updates) for plan in plans), *kernels))
