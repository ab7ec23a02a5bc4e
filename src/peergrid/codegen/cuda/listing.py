"""The generated CUDA C++ for people to read."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.codegen.cuda import onepass
from peergrid.codegen.cuda.choose import several_steps, steps_per_pass
from peergrid.codegen.cuda.pass3d import PassKernel3D
from peergrid.codegen.cuda.shell3d import shells
from peergrid.errors import UsageError
from peergrid.stencil import Problem

AROUND = {"plain": "tiles of the interior", "edge": "all other tiles", "layer": "tiles of zones of absorbers"}


def source(problem: Problem, steps: int | None = None) -> str:
    """The kernels of a pass of so many steps over the whole grid as CUDA C++, each program under what it is for.

    steps: of a pass (None: as many as suit the problem). Raises UsageError where no kernel makes so many.
    """
    chosen = steps_per_pass(problem) if steps is None else steps
    return "\n\n".join(f"// {said}\n{text}" for said, text in _programs(problem, chosen))


def _programs(problem: Problem, steps: int) -> Iterator[tuple[str, str]]:
    if steps == 1:
        yield (
            "One step per pass: each large region a kernel of its own, small ones together",
            onepass.program(problem, [[problem.grid.box]]).source,
        )
        return
    kernel = several_steps(problem, steps)
    if kernel is None:
        raise UsageError(f"No kernel makes {steps} steps of this problem in one pass; ask for fewer, or for 1.")
    for launch in kernel.launches(problem.grid.box, 1):
        role = next(name for name in AROUND if getattr(kernel, name, None) is launch.program)
        yield f"{steps} steps per pass, {AROUND[role]}: kernel {launch.program.entry}", launch.program.source
    if isinstance(kernel, PassKernel3D) and kernel.shelled:
        found = shells(problem, steps, kernel.rest(problem.grid.box, 1))
        works = [boxes for shell in found for boxes in shell.steps]
        yield f"{steps} steps per pass, all other cells step by step", onepass.program(problem, works).source
