"""A time-blocked 2D pass on one GPU: compiled, loaded, launched over the whole grid."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from cuda.bindings import driver
from gpu import Module, check, start
from planes import Memory

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.common.norm import NORMS
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.norm import NORM_COLUMNS, NORM_ROWS
from peergrid.codegen.nvrtc import compile_cubin


@dataclass(frozen=True)
class Built:
    """The machine code of a pass."""

    kernel: PassKernel
    plain: bytes
    edge: bytes
    layer: bytes | None
    sums: bytes | None
    seconds: float


def build(kernel: PassKernel, arch: str) -> Built:
    """Compile the programs of a pass; needs no GPU."""
    began = time.perf_counter()
    plain, edge = (compile_cubin(program.source, arch) for program in (kernel.interior, kernel.boundary))
    sums = compile_cubin(kernel.sums.source, arch) if kernel.norm else None
    layer = compile_cubin(kernel.layer.source, arch) if kernel.layer else None
    return Built(kernel, plain, edge, layer, sums, time.perf_counter() - began)


class LoadedPass:
    """A pass on the device of its fields: the functions of its programs, its launches, what they are given."""

    def __init__(self, memory: Memory, built: Built) -> None:
        self.memory, self.device, self.kernel = memory, memory.device, built.kernel
        self.modules: list[Module] = []
        codes = (
            (built.kernel.interior, built.plain),
            (built.kernel.boundary, built.edge),
            (built.kernel.layer, built.layer),
        )
        self.functions = {program: self._loaded(program, code) for program, code in codes if program and code}
        self.blocks = self._blocks_at_once()
        slots = self.device.multiprocessors * max(1, self.blocks) * built.kernel.shape.warps
        problem = memory.problem
        self.launches = built.kernel.launches(problem.grid.box, slots, range(len(problem.receivers)))
        self.given = {(k, s): memory.arguments(launch, s) for k, launch in enumerate(self.launches) for s in (0, 1)}
        self.norms = NormTable(self, built.sums) if built.sums else None

    @property
    def resources(self) -> dict[str, Any]:
        """Registers and memory of the kernels, and the warps of a multiprocessor."""
        kernel, kind = self.kernel, driver.CUfunction_attribute
        found = {
            "registers": self._attribute(kernel.interior, kind.CU_FUNC_ATTRIBUTE_NUM_REGS),
            "edge_registers": self._attribute(kernel.boundary, kind.CU_FUNC_ATTRIBUTE_NUM_REGS),
            "local_bytes": self._attribute(kernel.interior, kind.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
            "shared_bytes": kernel.interior.shared_bytes,
            "warps_per_multiprocessor": self.blocks * kernel.shape.warps,
        }
        if kernel.layer is not None:
            found["layer_registers"] = self._attribute(kernel.layer, kind.CU_FUNC_ATTRIBUTE_NUM_REGS)
        return found

    def run(self, which: Sequence[int], source: int) -> None:
        """Some of the launches side by side, from a slot into the other; with more than one the sums of their norms."""
        self.device.beside([partial(self._begin, k, source) for k in which])
        if self.norms is not None and len(which) > 1:
            self.norms.add(self.given[0, source])

    def unload(self) -> None:
        for module in self.modules:
            check(driver.cuModuleUnload(module.handle))

    def load(self, code: bytes) -> Module:
        """A module that goes with the pass."""
        self.modules.append(Module(code))
        return self.modules[-1]

    def _loaded(self, program: Program, code: bytes) -> Any:
        return self.load(code).function(program.entry, program.shared_bytes)

    def _attribute(self, program: Program, attribute: Any) -> int:
        return int(check(driver.cuFuncGetAttribute(attribute, self.functions[program])))

    def _blocks_at_once(self) -> int:
        """Blocks of the plain kernel that a multiprocessor holds."""
        plain = self.kernel.interior
        return int(check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            self.functions[plain], plain.threads, plain.shared_bytes)))  # fmt: skip

    def _begin(self, k: int, source: int, stream: Any) -> None:
        launch, more = self.launches[k], [] if self.norms is None else [self.norms.table]
        program = launch.program
        start(self.functions[program], (launch.blocks, 1), (program.threads, 1), program.shared_bytes, stream,
              self.given[k, source], *more)  # fmt: skip


class NormTable:
    """Where a pass leaves the norms of its steps: of each warp's rows, and their sums over each band of rows."""

    def __init__(self, made: LoadedPass, code: bytes) -> None:
        self.device, self.program, self.steps = made.device, made.kernel.sums, made.kernel.shape.steps
        rows, columns = made.memory.problem.grid.shape
        self.bands, across = -(-rows // NORM_ROWS), -(-columns // NORM_COLUMNS)
        self.table = np.zeros((), NORMS)
        self.table["partial"] = self.device.allocate(self.steps * self.bands * across * 4)
        self.table["rows"] = self.device.allocate(self.steps * self.bands * 8)
        self.table["pitch"], self.table["plane"], self.table["row_plane"] = across, self.bands * across, self.bands
        self.function = made.load(code).function(self.program.entry)

    def add(self, given: np.ndarray) -> None:
        """Sum up what the launches left."""
        start(self.function, (self.bands, self.steps), (256, 1), self.program.shared_bytes, self.device.main, given,
              self.table)  # fmt: skip

    def rows(self) -> np.ndarray:
        """The sums, shape (steps, bands)."""
        found = np.zeros((self.steps, self.bands))
        check(driver.cuMemcpyDtoH(found.ctypes.data, int(self.table["rows"]), found.nbytes))
        return found
