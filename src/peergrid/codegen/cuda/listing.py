"""The generated CUDA C++ for people to read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from peergrid.codegen.cuda import onestep
from peergrid.codegen.cuda.blocked3d.pass_kernel import PassKernel3D
from peergrid.codegen.cuda.blocked3d.shell import shells
from peergrid.codegen.cuda.choose.shape2d import one_step, pass_kernel
from peergrid.codegen.cuda.choose.steps import several_steps, steps_per_pass
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.codegen.cuda.linked.peer import PeerKernel
from peergrid.codegen.cuda.reduce import ReduceKernel
from peergrid.codegen.cuda.stream3d.choose import one_pass
from peergrid.codegen.cuda.stream3d.kernel import StreamKernel
from peergrid.codegen.cuda.suited import suited
from peergrid.errors import UsageError
from peergrid.stencil import Problem

LINKED = ("peer", "persistent")
AROUND = {"plain": "tiles of the interior", "edge": "all other tiles", "layer": "tiles of zones of absorbers"}


def source(problem: Problem, steps: int | None = None, strategy: str | None = None) -> str:
    """The kernels of a pass of so many steps over the whole grid as CUDA C++, each program under what it is for, and
    those of reductions behind them.

    steps: of a pass (None: as many as suit the problem); strategy: one whose kernels exchange halos themselves (see
    `LINKED`; None: those of all others). Raises UsageError where there is no such kernel.
    """
    if strategy not in (None, *LINKED):
        raise UsageError(
            f"Kernels differ for the strategies {' and '.join(LINKED)} alone, got '{strategy}'; leave it out for the "
            "kernels of all others."
        )
    chosen = steps_per_pass(problem) if steps is None else steps
    passes = _programs(problem, chosen) if strategy is None else _linked(problem, chosen, strategy)
    reduced = ((f"Reduction '{one.name}'", ReduceKernel(problem, one).source) for one in problem.reductions)
    found = chain(passes, reduced)
    return "\n\n".join(f"// {said}\n{text}" for said, text in found)


def _linked(problem: Problem, steps: int, strategy: str) -> Iterator[tuple[str, str]]:
    """The kernels that exchange halos themselves."""
    made = pass_kernel(problem, steps, least=1)
    if made is None:
        raise UsageError(f"No kernel with the exchange in it makes {steps} steps of this problem; they are 2D.")
    said = f"{steps} {'step' if steps == 1 else 'steps'} per pass, exchange within"
    if strategy == "persistent":
        kept = suited(problem, steps, (problem.grid.box,), H200, (H200.multiprocessors,))
        if kept is None:
            raise UsageError(f"No kernel makes many passes of {steps} steps of this problem; ask for fewer steps.")
        program = kept.program
        yield f"{said}, many passes: kernel {program.entry}", program.source
        return
    kernel = PeerKernel(made)
    for launch in kernel.launches(problem.grid.box, 1):
        yield f"{said}: kernel {launch.program.entry}", launch.program.source


def _streamed(kernel: StreamKernel) -> Iterator[tuple[str, str]]:
    """The kernels of a step of a large 3D grid."""
    for stages, program in zip(kernel.stages, kernel.programs, strict=True):
        names = ", ".join(dict.fromkeys(u.name for stage in stages for u in kernel.problem.stages[stage].updates))
        yield f"One step per pass, {names}: kernel {program.entry}", program.source
    parts = kernel.parts(kernel.problem.grid.box, H200, range(len(kernel.problem.receivers)))
    works = [boxes for boxes in (parts.beside, parts.after) if boxes]
    if works:
        yield "One step per pass, all other cells", onestep.program(kernel.problem, works).source


def _programs(problem: Problem, steps: int) -> Iterator[tuple[str, str]]:
    streamed = one_pass(problem) if steps == 1 and problem.grid.box.size >= H200.streamed_cells_3d else None
    if streamed is not None:
        yield from _streamed(streamed)
        return
    kernel = one_step(problem, problem.grid.box.size) if steps == 1 else several_steps(problem, steps)
    if kernel is None and steps > 1:
        raise UsageError(f"No kernel makes {steps} steps of this problem in one pass; ask for fewer, or for 1.")
    if kernel is None:
        yield (
            "One step per pass: each large region a kernel of its own, small ones together",
            onestep.program(problem, [[problem.grid.box]]).source,
        )
        return
    for launch in kernel.launches(problem.grid.box, 1):
        role = next(name for name in AROUND if getattr(kernel, name, None) is launch.program)
        yield (
            f"{steps} {'step' if steps == 1 else 'steps'} per pass, {AROUND[role]}: kernel {launch.program.entry}",
            launch.program.source,
        )
    if isinstance(kernel, PassKernel3D) and kernel.shelled:
        found = shells(problem, steps, kernel.rest(problem.grid.box, 1))
        works = [boxes for shell in found for boxes in shell.steps]
        yield f"{steps} steps per pass, all other cells step by step", onestep.program(problem, works).source
