"""From a case to the texts that its run compiles on GPUs of an architecture."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from catalogue.cases import GPUS, SERVICE, Case
from peergrid.codegen.cuda import service
from peergrid.codegen.cuda.choose.balance import balanced
from peergrid.codegen.cuda.choose.steps import block_of, split_at, steps_per_pass
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.runtime.cuda.lowering.kernels import Kernels
from peergrid.schedule import Options, Schedule, layout, one_iteration
from peergrid.stencil import Problem


@dataclass(frozen=True)
class Text:
    """What is compiled in one piece; shared_bytes: what launches ask for beside what the text declares."""

    source: str
    shared_bytes: int = 0

    @property
    def sha256(self) -> str:
        """The first digits, which are enough to tell texts apart."""
        return hashlib.sha256(expanded(self.source).encode()).hexdigest()[:16]

    @property
    def has_kernels(self) -> bool:
        """Whether it holds any: one step of a 3D box may leave none for a group of stages."""
        return "__global__" in expanded(self.source)

    @property
    def lines(self) -> int:
        return self.source.count("\n") + 1


Registers = Callable[[str, str], int]
"""Registers of a thread of the kernel of a text, by its text and its entry, as compiled."""


def texts(case: Case, problem: Problem, arch: str, registers: Registers) -> Iterator[Text]:
    """The texts of a run, as `peergrid.run` would compile them, beside those that every run has (`SERVICE`)."""
    if case.name == SERVICE:
        yield Text(service.SOURCE)
        return
    kernels, schedule = _run(case, problem, GPUS[arch])
    needed = kernels.needed(schedule)
    yield from (Text(source, shared) for source, shared in needed.texts.items() if source != service.SOURCE)
    for kernel in needed.striped:
        layer = kernel.around(registers(kernel.interior.source, kernel.interior.entry)).layer
        assert layer is not None
        yield Text(layer.source, layer.shared_bytes)


def _run(case: Case, problem: Problem, gpu: GpuModel) -> tuple[Kernels, Schedule]:
    depth = steps_per_pass(problem, norm=case.norm, gpu=gpu) if case.depth is None else case.depth
    block = block_of(problem, depth, gpu, case.norm)
    options = Options(case.strategy, depth, block=None if block == depth else block)
    partition = balanced(problem, case.devices, depth, case.norm, options.block)
    plan = layout(problem, partition, options, split_at(problem, partition, case.norm, gpu))
    multiprocessors = (gpu.multiprocessors,) * case.devices
    return Kernels(plan, case.norm, gpu, multiprocessors, lambda one, other: True), one_iteration(plan, options)
