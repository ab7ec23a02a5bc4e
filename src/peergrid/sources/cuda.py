"""The texts that a run on GPUs compiles, each under the cells that its kernels serve. Needs no GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from peergrid.codegen.cuda import service
from peergrid.codegen.cuda.choose.balance import balanced
from peergrid.codegen.cuda.choose.steps import block_of, split_at, steps_per_pass
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.codegen.nvrtc import resources
from peergrid.errors import UsageError
from peergrid.runtime.cuda.lowering.kernels import Kernels
from peergrid.runtime.cuda.lowering.sources import KERNEL
from peergrid.schedule import Layout, Options, Schedule, layout, one_iteration
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem

ARCHITECTURE = "sm_90"
INCLUDED = "// Included files are in peergrid/codegen/cuda/skeletons; 'run --keep-sources DIR' writes whole texts."
FEW_LINES = 3  # of a paragraph that is printed again
Registers = Callable[[str, str], int]
"""Registers of a thread of a kernel, from its text and its name."""


def source_of_run(
    problem: Problem, steps: int | None = None, strategy: StrategyName = "overlap", gpus: int = 1, gpu: GpuModel = H200
) -> str:
    """The CUDA C++ that a run compiles, each text under a line for each of its kernels, parts of several texts once.

    steps: between exchanges (None: as many as one pass is worth); strategy, gpus: as the run has them; gpu: what the
    kernels are chosen for. Raises UsageError where no kernel makes so many steps.
    """
    depth = steps_per_pass(problem, gpu=gpu) if steps is None else steps
    block = block_of(problem, depth, gpu)
    if steps is not None and block != depth:
        raise UsageError(f"No kernel makes {depth} steps of this problem in one pass; use fewer, or 1.")
    options = Options(strategy, depth)
    partition = balanced(problem, gpus, depth, None, None)
    plan = layout(problem, partition, options, split_at(problem, partition, None, gpu))
    made = f"{depth} {'step' if depth == 1 else 'steps'} per pass, strategy {strategy}, {gpus} GPU{'s' * (gpus > 1)}"
    texts = list(texts_of_run(plan, options, gpu, registers_of))
    parts = (
        f"{head}\n{text}" for (head, _), text in zip(texts, each_part_once([text for _, text in texts]), strict=True)
    )
    head = f"// {made}: what the run compiles, text by text.", INCLUDED, *_numbers(problem)
    return "\n\n".join(("\n".join(head), *parts))


def each_part_once(texts: Sequence[str]) -> Iterator[str]:
    """The texts, of which each begins by paragraphs; in place of those that an earlier text has, how many lines."""
    seen = set[str]()
    for text in texts:
        shown, skipped = list[str](), 0
        parts = text.split("\n\n")
        for part in parts:
            if part.count("\n") + 1 >= FEW_LINES and part in seen:
                skipped += part.count("\n") + 1
                continue
            if skipped:
                shown.append(f"// {skipped} lines as above")
                skipped = 0
            shown.append(part)
        if skipped:
            shown.append(f"// {skipped} lines as above")
        seen.update(parts)
        yield "\n\n".join(shown)


def _numbers(problem: Problem) -> Iterator[str]:
    """The number that kernels have for each of the user's names."""
    given = Arguments(problem)
    for what, names in (("fields", given.fields), ("params", given.params), ("signals", given.signals + given.tables)):
        if names:
            yield f"// a.{what}: " + ", ".join(f"[{number}] {name}" for number, name in enumerate(names))


def texts_of_run(plan: Layout, options: Options, gpu: GpuModel, registers: Registers) -> Iterator[tuple[str, str]]:
    """Each text that a run compiles, under comments that say which cells each of its kernels serves."""
    kernels = Kernels(plan, None, gpu, (gpu.multiprocessors,) * plan.devices, lambda one, other: True)
    schedule = one_iteration(plan, options)
    needed, served = kernels.needed(schedule), _served(kernels, schedule)
    inside = ((kernel, kernel.interior) for kernel in needed.striped)
    around = (kernel.around(registers(program.source, program.entry)).layer for kernel, program in inside)
    strips = (layer.source for layer in around if layer is not None)
    for text in dict.fromkeys((*(text for text in needed.texts if text != service.SOURCE), *strips)):
        names = [name for name in KERNEL.findall(expanded(text)) if name in served]
        yield "\n".join(f"// {name}: {served[name]}" for name in names), text
    yield "// Signals between GPUs, waits, clocks: the same in every run.", service.SOURCE


def _served(kernels: Kernels, schedule: Schedule) -> dict[str, str]:
    """The cells that each kernel serves, by its name."""
    found: dict[str, dict[str, None]] = {}
    for name, cells in kernels.served(schedule):
        found.setdefault(name, {})[cells] = None
    return {name: "; ".join(cells) for name, cells in found.items()}


def registers_of(text: str, kernel: str) -> int:
    """As NVRTC compiles it; raises UsageError where it is not installed."""
    return resources(text, ARCHITECTURE)[kernel].registers
