"""Which executor carries a run out, by the kind of its devices; what computes comes when it is asked for."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Literal, get_args

from peergrid.errors import UsageError
from peergrid.runtime.devices import Devices
from peergrid.runtime.executor import Executor
from peergrid.runtime.fit import check_host_memory, check_records
from peergrid.schedule import Layout

KernelKind = Literal["compiled", "reference"]


def executor_of(
    devices: Devices, plan: Layout, steps: int, kernel: KernelKind, cache: Path | None, norm: str | None
) -> Executor:
    """An executor with memory for the layout; arguments as in `Simulation`.

    Raises UsageError for another kind of kernel or where the devices compute no norms, DoesNotFit where they have too
    little memory.
    """
    if kernel not in get_args(KernelKind):
        raise UsageError(f"A kernel is one of {', '.join(get_args(KernelKind))}, got {kernel!r}.")
    if devices.kind == "cuda":
        from peergrid.runtime.cpu.kernel import default_cache
        from peergrid.runtime.cuda.executor import CudaExecutor

        return CudaExecutor(plan, steps, devices.ordinals, cache=(cache or default_cache()) / "cubin", norm=norm)
    if norm is not None:
        raise UsageError("The norm of every step is computed on CUDA devices alone; use --devices cuda, or no norm.")
    return _on_virtual_devices(plan, steps, kernel, cache)


def _on_virtual_devices(plan: Layout, steps: int, kernel: KernelKind, cache: Path | None) -> Executor:
    check_host_memory(sum(plan.memory(device) for device in range(plan.devices)), plan.problem.grid.box.size)
    check_records(len(plan.problem.receivers), steps, plan.problem.itemsize)
    from peergrid.runtime.cpu.executor import ThreadedExecutor
    from peergrid.runtime.reference import ReferenceKernel

    if kernel == "reference":
        return ThreadedExecutor(plan, steps, ReferenceKernel(plan.problem))
    from peergrid.runtime.cpu.kernel import compile_kernel, default_cache

    compiled = compile_kernel(plan.problem, cache or default_cache())
    for device, length in product(range(plan.devices), sorted(set(plan.blocks))):
        compiled.prepare(plan.partition.owned(device), length)  # now, not in the first step
    return ThreadedExecutor(plan, steps, compiled)
