"""What a run on GPUs compiles, text by text, each under what its kernels serve. Needs no GPU."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from peergrid.codegen.cuda import onestep, service
from peergrid.codegen.cuda.blocked3d.shell import shells
from peergrid.codegen.cuda.choose.balance import balanced
from peergrid.codegen.cuda.choose.steps import block_of, split_at, steps_per_pass
from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.codegen.cuda.linked.persistent import PersistentKernel
from peergrid.codegen.nvrtc import resources
from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.runtime.cuda.lowering.kernels import ByRegions, ByStreams, Kernels, Plain, Summed, WithShells, Works
from peergrid.runtime.cuda.lowering.programs import Kernel
from peergrid.runtime.cuda.lowering.sources import KERNEL
from peergrid.runtime.inorder import owned_receivers
from peergrid.schedule import Layout, Options, Schedule, layout, one_iteration
from peergrid.schedule.strategies import StrategyName
from peergrid.stencil import Problem

ARCHITECTURE = "sm_90"
SERVED = {
    "plain": "interior tiles",
    "edge": "all other tiles",
    "boundary": "all other tiles",
    "layer": "boundary strips",
}
"""What the programs of a kernel of tiles serve, by the attribute they are."""

Registers = Callable[[str, str], int]
"""Registers of a thread of a kernel, from its text and its name."""


def source_of_run(
    problem: Problem, steps: int | None = None, strategy: StrategyName = "overlap", gpus: int = 1, gpu: GpuModel = H200
) -> str:
    """The CUDA C++ that a run compiles, each text under a line for each of its kernels.

    steps: between exchanges (None: as many as one pass is worth); strategy, gpus: as the run has them; gpu: what the
    kernels are fitted to. Raises UsageError where no kernel makes so many steps.
    """
    depth = steps_per_pass(problem, gpu=gpu) if steps is None else steps
    block = block_of(problem, depth, gpu)
    if steps is not None and block != depth:
        raise UsageError(f"No kernel makes {depth} steps of this problem in one pass; ask for fewer, or for 1.")
    options = Options(strategy, depth)
    partition = balanced(problem, gpus, depth, None, None)
    plan = layout(problem, partition, options, split_at(problem, partition, None, gpu))
    made = f"{depth} {'step' if depth == 1 else 'steps'} per pass, strategy {strategy}, {gpus} GPU{'s' * (gpus > 1)}"
    parts = (f"{head}\n{text}" for head, text in texts_of_run(plan, options, gpu, registers_of))
    return "\n\n".join(("\n".join((f"// {made}: what the run compiles, text by text.", *_numbers(problem))), *parts))


def _numbers(problem: Problem) -> Iterator[str]:
    """Which number kernels have for each of the user's names."""
    given = Arguments(problem)
    for what, names in (("fields", given.fields), ("params", given.params), ("signals", given.signals)):
        if names:
            yield f"// a.{what}: " + ", ".join(f"[{number}] {name}" for number, name in enumerate(names))


def texts_of_run(plan: Layout, options: Options, gpu: GpuModel, registers: Registers) -> Iterator[tuple[str, str]]:
    """Each text that a run compiles, under comments that say which cells each of its kernels serves."""
    kernels = Kernels(plan, None, gpu, (gpu.multiprocessors,) * plan.devices, lambda one, other: True)
    schedule = one_iteration(plan, options)
    needed, served = kernels.needed(schedule), _served(kernels, schedule)
    around = (kernel.around(registers(kernel.plain.source, kernel.plain.entry)).layer for kernel in needed.zoned)
    strips = (layer.source for layer in around if layer is not None)
    for text in dict.fromkeys((*(text for text in needed.texts if text != service.SOURCE), *strips)):
        names = [name for name in KERNEL.findall(text) if name in served]
        yield "\n".join(f"// {name}: {served[name]}" for name in names), text
    yield "// Signals between GPUs, waits, clocks: the same in every run.", service.SOURCE


def _served(kernels: Kernels, schedule: Schedule) -> dict[str, str]:
    """What each kernel serves, by its name."""
    found: dict[str, list[str]] = {}
    for name, cells in _all_served(kernels, schedule):
        if cells not in found.setdefault(name, []):
            found[name].append(cells)
    return {name: "; ".join(cells) for name, cells in found.items()}


def _all_served(kernels: Kernels, schedule: Schedule) -> Iterator[tuple[str, str]]:
    plan = kernels.plan
    owned = tuple((device, (plan.partition.owned(device),)) for device in range(plan.devices))
    linked, cooperative = kernels.linked(schedule), kernels.cooperative(schedule)
    if isinstance(cooperative, PersistentKernel):
        yield cooperative.program.entry, "all cells of a device, many passes in one launch"
    elif linked is not None:
        yield from _by_tiles(linked, owned)
    else:
        for made in kernels.passes(schedule).values():
            yield from _queued(kernels, made)


def _queued(kernels: Kernels, made: Plain | Summed) -> Iterator[tuple[str, str]]:
    if isinstance(made, ByRegions):
        yield from _by_regions(kernels, [boxes for _, boxes in made.works])
        return
    if isinstance(made, ByStreams):
        yield from _by_streams(kernels, made)
        return
    yield from _by_tiles(made.kernel, made.works)
    if isinstance(made, WithShells):
        for device, boxes in made.works:
            rest = [part for box in boxes for part in made.kernel.rest(box, 1, owned_receivers(kernels.plan, device))]
            for shell in shells(made.kernel.problem, made.kernel.steps, rest, kernels.gpu):
                yield from _by_regions(kernels, shell.steps)


def _by_streams(kernels: Kernels, made: ByStreams) -> Iterator[tuple[str, str]]:
    left = []
    for device, boxes in made.works:
        parts = made.kernel.parts_of(boxes, kernels.gpu, owned_receivers(kernels.plan, device))
        for box in parts.plain:
            yield from ((program.entry, f"cells {box.lo} to {box.hi}") for program in made.kernel.programs)
        left += [part for part in (parts.beside, parts.after) if part]
    yield from _by_regions(kernels, left)


def _by_regions(kernels: Kernels, works: Iterable[Iterable[Box]]) -> Iterator[tuple[str, str]]:
    works = [tuple(boxes) for boxes in works]
    program = onestep.program(kernels.plan.problem, works, kernels.gpu)
    for boxes in works:
        for launch in program.launches(boxes, tuple(range(len(kernels.plan.problem.receivers)))):
            if launch.receivers:
                yield launch.kernel, "receivers"
            elif launch.regions:
                yield launch.kernel, f"{len(launch.regions)} small regions"
            else:
                yield launch.kernel, f"cells {launch.box.lo} to {launch.box.hi}"


def _by_tiles(kernel: Kernel, works: Works) -> Iterator[tuple[str, str]]:
    for device, boxes in works:
        for launch in chain.from_iterable(kernel.launches(box, 1) for box in boxes):
            role = next((n for n in SERVED if getattr(kernel, n, None) == launch.program), "")
            yield launch.program.entry, f"{SERVED.get(role, 'tiles')}, {len(launch.regions)} on GPU {device}"


def registers_of(text: str, kernel: str) -> int:
    """As NVRTC compiles it; raises UsageError where it is not installed."""
    return resources(text, ARCHITECTURE)[kernel].registers
