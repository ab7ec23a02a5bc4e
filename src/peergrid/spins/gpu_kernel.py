"""The half step on GPUs as a pass, by `half_step.cu` and `half_step_pass.cu`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.cuda.skeletons import include
from peergrid.grid import Box
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.spins.graph import NEIGHBOURS, WORD, BipartiteGraph
from peergrid.spins.philox import Words
from peergrid.stencil import Problem

GROUP, THREADS = 16, 256  # words of a warp
HALF_STEP = np.dtype([("neighbours", "<u8", 2), ("origin", "<u4"), ("limits", "<u4", 5), ("seed", "<u4", 2)])


def file(name: str) -> str:
    """The text of a file of kernels."""
    return resources.files("peergrid.spins").joinpath(name).read_text()


def blocks(share: tuple[int, int]) -> int:
    """The thread blocks for a range of words: a warp for each group of words in it."""
    groups = -(-share[1] // GROUP) - share[0] // GROUP
    return -(-groups * WORD // THREADS)


@dataclass(frozen=True, eq=False)
class GpuHalfStep:
    """An `OwnKernel` for `half_steps`; arguments as in `HalfStepKernel`."""

    graph: BipartiteGraph
    limits: Words
    seed: int
    problem: Problem

    @cached_property
    def program(self) -> Program:
        parts = (include("system_memory.cuh"), Arguments(self.problem).source)
        source = "\n".join((*parts, file("half_step.cu"), file("half_step_pass.cu")))
        return Program(source, "half_step_pass", THREADS, 0)

    @property
    def counts_steps(self) -> bool:
        return True

    def bytes(self, owned: Box) -> int:
        return 2 * 4 * NEIGHBOURS * WORD * (owned.hi[0] - owned.lo[0])

    def blocks(self, box: Box) -> int:
        return blocks((box.lo[0], box.hi[0]))

    def tables(self, devices: Devices, device: int, owned: Box) -> NDArray[Any]:
        found = np.zeros(1, HALF_STEP)
        first, last = (WORD * end for end in (owned.lo[0], owned.hi[0]))
        for colour, side in enumerate((self.graph.red, self.graph.blue)):
            address = devices.allocate(device, 4 * NEIGHBOURS * (last - first))
            devices.driver.upload(address, side[first:last])
            found["neighbours"][0, colour] = address
        found["origin"], found["limits"], found["seed"] = (
            owned.lo[0],
            self.limits,
            (self.seed & 0xFFFFFFFF, self.seed >> 32),
        )
        return found
