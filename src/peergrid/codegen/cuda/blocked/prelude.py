"""The C++ text that time-blocked kernels start with."""

from __future__ import annotations

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import helpers
from peergrid.codegen.cuda.skeletons import include


def prelude(arguments: Arguments, norm: str | None = None) -> str:
    """Structs and helpers."""
    norms = ("norms.cuh",) if norm else ()
    return "\n".join((helpers(arguments.problem), arguments.source, include("async_copy.cuh", "helpers.cuh", *norms)))
