"""The C++ text that kernels of one step start with."""

from __future__ import annotations

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.expressions import helpers
from peergrid.codegen.cuda.skeletons import include


def prelude(arguments: Arguments) -> str:
    """Structs and helpers of a problem's kernels."""
    return "\n".join((helpers(arguments.problem), arguments.source, include("one_step.cuh")))
