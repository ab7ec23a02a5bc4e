"""The generated source of a problem, on demand: needs neither a compiler nor a device."""

from __future__ import annotations

from typing import Literal, get_args

from peergrid.codegen.cpu import listing as cpu
from peergrid.errors import UsageError
from peergrid.stencil import Problem

Target = Literal["cpu", "cuda"]
TARGETS = get_args(Target)


def source(problem: Problem, target: Target = "cpu", steps: int | None = None, strategy: str | None = None) -> str:
    """The kernels of a problem as text: Python that Numba compiles, or CUDA C++.

    steps: of a pass, for CUDA alone (None: as many as suit the problem); strategy: `peer` or `persistent`, for CUDA
    alone, whose kernels exchange halos themselves (None: those of all others). Raises UsageError for another target
    or strategy, or where no kernel makes so many.
    """
    if target not in TARGETS:
        raise UsageError(f"Source is generated for {' or '.join(TARGETS)}, got '{target}'.")
    if target == "cuda":
        from peergrid.codegen.cuda import listing as cuda

        return cuda.source(problem, steps, strategy)
    if strategy is not None:
        raise UsageError("Kernels for CPUs are the same under every strategy; leave 'strategy' out.")
    if steps is not None:
        raise UsageError("Kernels for CPUs take any number of steps per pass; leave 'steps' out.")
    return cpu.source(problem)
