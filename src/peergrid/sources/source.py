"""The source of the kernels that a run compiles, for reading; without a compiler or a GPU."""

from __future__ import annotations

from typing import Literal, get_args

from peergrid.arguments import brief, is_one_of, is_whole
from peergrid.errors import UsageError
from peergrid.schedule.build import MOST_DEPTH
from peergrid.schedule.strategies import STRATEGIES, StrategyName
from peergrid.stencil import Problem, Step, problem_of

Target = Literal["cpu", "cuda"]
TARGETS = get_args(Target)
MOST_GPUS = 1024


def source_of(
    problem: Step,
    target: Target = "cpu",
    steps: int | None = None,
    strategy: StrategyName | None = None,
    gpus: int | None = None,
) -> str:
    """The source of the kernels of a run, under headings that say what each serves: for LLVM, or CUDA C++.

    For CUDA alone: steps: between exchanges (None: chosen as in a run); strategy (None: `overlap`); gpus: their number
    (None: the fewest that the strategy needs). Raises UsageError for arguments that the target does not have, or if no
    kernel makes so many steps.
    """
    if not is_one_of(target, TARGETS):
        raise UsageError(f"Source is generated for {' or '.join(TARGETS)}, got {brief(target)}.")
    problem = problem_of(problem)
    if target == "cpu":
        return _of_cpus(problem, steps, strategy, gpus)
    if strategy is not None and not is_one_of(strategy, STRATEGIES):
        raise UsageError(f"A strategy is one of {', '.join(STRATEGIES)}, got {brief(strategy)}.")
    for name, count, most in (("steps", steps, MOST_DEPTH), ("gpus", gpus, MOST_GPUS)):
        if count is not None and (not is_whole(count) or not 1 <= count <= most):
            raise UsageError(f"'{name}' takes a whole number from 1 to {most:,}, got {brief(count)}.")
    from peergrid.sources.cuda import source_of_run

    return source_of_run(problem, steps, strategy or "overlap", gpus or (2 if strategy == "peer" else 1))


def _of_cpus(problem: Problem, steps: int | None, strategy: str | None, gpus: int | None) -> str:
    if strategy is not None:
        raise UsageError("Kernels for CPUs are the same under every strategy; leave 'strategy' out.")
    if steps is not None:
        raise UsageError("Kernels for CPUs take any number of steps per pass; leave 'steps' out.")
    if gpus is not None:
        raise UsageError("Kernels for CPUs run on no GPU; leave 'gpus' out.")
    from peergrid.codegen.cpu.source import source

    return source(problem)
