"""The executor of a run, by the kind of its devices; back ends are imported on demand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from peergrid.arguments import brief, is_one_of
from peergrid.codegen.cache import default_cache
from peergrid.errors import UsageError
from peergrid.runtime.devices import Devices
from peergrid.runtime.executor import Executor
from peergrid.runtime.fit import check_host_memory, check_records, gathered_bytes
from peergrid.runtime.mail import Mail
from peergrid.runtime.ranks.executor import RankedExecutor
from peergrid.runtime.ranks.ranks import Ranks
from peergrid.schedule import Layout
from peergrid.stencil.lagged import passing_fields

if TYPE_CHECKING:
    from peergrid.runtime.cpu.executor import ThreadedExecutor

KernelKind = Literal["compiled", "reference"]
LONGEST = 2**31 - 2**20  # with ghost cells and the part of a tile beyond the end


def executor_of(
    devices: Devices,
    plan: Layout,
    steps: int,
    kernel: KernelKind,
    cache: Path | None,
    norm: str | None,
    sources: Path | None = None,
    ranks: Ranks | None = None,
) -> Executor:
    """An executor with memory for the layout; arguments as in `Simulation`; ranks: those that share the devices.

    Raises UsageError for a kind of kernel or a norm that the devices do not support, DoesNotFit if they have too little
    memory.
    """
    if not is_one_of(kernel, get_args(KernelKind)):
        raise UsageError(f"A kernel is one of {', '.join(get_args(KernelKind))}, got {brief(kernel)}.")
    if sources is not None and devices.kind != "cuda":
        raise UsageError(f"The source of kernels is kept for GPUs, not for {devices}; 'peergrid source' prints it.")
    if kernel == "reference" and devices.kind == "cuda":
        raise UsageError(
            f"The reference kernel runs on virtual devices, not on {devices}; use 'cpu:1', or leave out 'kernel'."
        )
    check_size(devices, plan, ranks)
    check_records(plan.problem, steps, norm is not None)
    if devices.kind == "cuda":
        from peergrid.runtime.cuda.executor import CudaExecutor
        from peergrid.runtime.ranks.shared import RanksAsProcesses

        folder = (cache or default_cache()) / "cubin"
        processes = None if ranks is None else RanksAsProcesses(ranks)
        found = CudaExecutor(
            plan, steps, devices.ordinals, cache=folder, norm=norm, sources=sources, processes=processes
        )
        return found if ranks is None else RankedExecutor(found, ranks, divides=True)
    if ranks is None:
        return _on_virtual_devices(plan, steps, kernel, cache, norm)
    from peergrid.runtime.ranks.messages import MpiMail

    mail = MpiMail(ranks, plan.problem.grid.dtype)
    return RankedExecutor(_on_virtual_devices(plan, steps, kernel, cache, norm, ranks.mine, mail), ranks)


def check_size(devices: Devices, plan: Layout, ranks: Ranks | None = None) -> None:
    """Raise UsageError for axes too long for GPUs, DoesNotFit for fields too large for the host's memory."""
    if devices.kind == "cuda" and max(plan.problem.grid.shape) > LONGEST:
        raise UsageError(
            f"An axis has at most {LONGEST:,} cells on GPUs, whose kernels count them in 32 bits, got "
            f"{max(plan.problem.grid.shape):,}; use more axes, or virtual devices."
        )
    mine = range(plan.devices) if ranks is None else ranks.mine
    fields = sum(map(plan.memory, mine)) if devices.kind == "cpu" else 0
    gathered = gathered_bytes(plan.problem) if ranks is None else 0  # several ranks have their requested options
    check_host_memory(fields + gathered, plan.problem.grid.box.size)


def _on_virtual_devices(
    plan: Layout,
    steps: int,
    kernel: KernelKind,
    cache: Path | None,
    norm: str | None,
    mine: Sequence[int] | None = None,
    mail: Mail | None = None,
) -> ThreadedExecutor:
    """The executor of the virtual devices of this process; mine: their numbers, if other processes have devices too."""
    from peergrid.runtime.cpu.executor import ThreadedExecutor
    from peergrid.runtime.norms import Norms

    if kernel == "reference":
        from peergrid.runtime.reference import ReferenceKernel
        from peergrid.runtime.reference_norm import reference_sums

        norms = None if norm is None else Norms(plan, norm, steps, reference_sums)
        return ThreadedExecutor(plan, steps, ReferenceKernel(plan.problem), norms=norms, devices=mine, mail=mail)
    from peergrid.runtime.cpu.kernel import compile_kernel
    from peergrid.runtime.cpu.norm import compiled_sums
    from peergrid.runtime.cpu.reduction import compiled_reductions
    from peergrid.runtime.memory import rotating

    folder = cache or default_cache()
    norms = None if norm is None else Norms(plan, norm, steps, compiled_sums(plan.problem.grid.dtype, folder))
    reductions = compiled_reductions(plan.problem, folder) if plan.problem.reductions else None
    without_memory = rotating(plan, norm)
    compiled = compile_kernel(plan.problem, folder, rotate=bool(without_memory))
    left = passing_fields(plan.problem) - {norm, *without_memory}
    within = compile_kernel(plan.problem, folder, rotate=bool(without_memory), left=left) if left else None
    for device, length in product(range(plan.devices) if mine is None else mine, sorted(set(plan.blocks))):
        for one in (compiled, within) if within else (compiled,):
            one.prepare(plan.partition.owned(device), length)  # now, not in the first step
    return ThreadedExecutor(
        plan,
        steps,
        compiled,
        norms=norms,
        reductions=reductions,
        rotating=without_memory,
        within=within,
        devices=mine,
        mail=mail,
    )
