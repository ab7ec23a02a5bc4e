"""What one pass over the box of a device costs: its interior tiles and its boundary tiles, alone and together, on one
GPU.

    python benchmarks/cuda/boxes.py [--size 16384] [--devices 1,2,4,8] [--rows LO:HI,…] [--model] [--out boxes.json]

For each split into equal slabs an end and a middle one are measured, as they would lie on a device of their own but
without their neighbours. Needs a GPU, NumPy, cuda-core and cuda-bindings.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from cuda.bindings import driver
from gpu import Device, Module, check, start
from planes import Memory
from problems import radar_problem, yee_problem

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.common.program import Launch
from peergrid.codegen.nvrtc import compile_cubin
from peergrid.grid import Box
from peergrid.grid.partition import Partition
from peergrid.stencil import Problem

PASSES = 16


@dataclass
class Cost:
    """The time of one pass over some rows in milliseconds, and the cells and tiles in it by program."""

    rows: tuple[int, int]
    together: float
    alone: dict[str, float]
    tiles: dict[str, int]
    cells: dict[str, int]
    registers: dict[str, int]
    gcells: float


class Pass:
    """The kernels of a problem on a device, ready to be timed."""

    def __init__(self, device: Device, problem: Problem, kernel: PassKernel) -> None:
        self.device, self.problem, self.kernel = device, problem, kernel
        self.memory = Memory(device, problem)
        self.functions: dict[str, Any] = {}
        self.resident: dict[str, int] = {}
        self.registers: dict[str, int] = {}

    def function(self, launch: Launch) -> Any:
        """The kernel of a launch."""
        program = launch.program
        if program.entry not in self.functions:
            module = Module(compile_cubin(program.source, self.device.arch))
            self.functions[program.entry] = module.function(program.entry, program.shared_bytes)
            kind = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_NUM_REGS
            self.registers[program.entry] = check(driver.cuFuncGetAttribute(kind, self.functions[program.entry]))
            blocks = check(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                self.functions[program.entry], program.threads, program.shared_bytes))  # fmt: skip
            self.resident[program.entry] = self.device.multiprocessors * max(1, blocks) * program.tiles_per_block
        return self.functions[program.entry]

    def cost(self, box: Box) -> Cost:
        """One pass over a box."""
        receivers = range(len(self.problem.receivers))
        for launch in self.kernel.launches(box, 1, receivers):
            if launch.program is not self.kernel.layer:  # which is made to fit beside the others
                self.function(launch)
        slots = self.resident.get(self.kernel.boundary.entry, 1), self.resident.get(self.kernel.interior.entry, 1)
        roomy = self.kernel.around(self.registers.get(self.kernel.interior.entry, 255))
        launches = roomy.shorter(box, *slots).launches(box, slots[1], receivers)
        given = [self.memory.arguments(launch, 0) for launch in launches]
        for values in given:
            values["lo"][:2], values["hi"][:2] = box.lo, box.hi

        def begin(k: int, stream: Any) -> None:
            program = launches[k].program
            start(self.function(launches[k]), (launches[k].blocks, 1), (program.threads, 1), program.shared_bytes,
                  stream, given[k])  # fmt: skip

        def run(which: list[int]) -> None:
            for _ in range(PASSES):
                self.device.beside([partial(begin, k) for k in which])

        def timed(which: list[int]) -> float:
            run(which)
            return round(self.device.timed(lambda: run(which), 3) / PASSES, 4)

        every = list(range(len(launches)))
        together = timed(every)
        names = [launch.program.entry for launch in launches]
        return Cost(
            (box.lo[0], box.hi[0]),
            together,
            {name: timed([k]) for k, name in enumerate(names)},
            {name: len(launches[k].regions) for k, name in enumerate(names)},
            {name: _cells(launches[k]) for k, name in enumerate(names)},
            {name: self.registers[name] for name in names},
            round(box.size * self.kernel.steps / together / 1e6, 1),
        )


def _cells(launch: Launch) -> int:
    extent = launch.extents[:, :2].astype(int)
    return int((extent[:, 0] * extent[:, 1]).sum())


def slabs(problem: Problem, counts: list[int]) -> Iterator[Box]:
    """An end and a middle slab of each equal split."""
    for count in counts:
        partition = Partition.over(problem.grid, count)
        yield from (partition.owned(device) for device in sorted({0, count // 2 if count > 2 else 0}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=16384)
    parser.add_argument("--devices", default="1,2,4,8")
    parser.add_argument("--rows", default="", help="further slabs, as LO:HI,…")
    parser.add_argument("--case", choices=("radar", "yee", "model"), default="radar", help="model: as `peergrid bench`")
    parser.add_argument(
        "--edge", default="", help="fields of the pass kernel to change, as boundary_width=128,boundary_rows=32"
    )
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    problem = _problem(options.case, options.size)
    kernel = pass_kernel(problem, 8)
    if kernel is None:
        raise SystemExit("This problem has no kernel of 8 steps.")
    changes: dict[str, Any] = {k: int(v) for k, v in (item.split("=") for item in options.edge.split(",") if item)}
    device = Device()
    measured = Pass(device, problem, replace(kernel, **changes))
    asked = [tuple(map(int, item.split(":"))) for item in options.rows.split(",") if item]
    boxes = [*slabs(problem, [int(n) for n in options.devices.split(",") if n])]
    boxes += [problem.grid.box.with_axis(0, lo, hi) for lo, hi in asked]
    found = []
    for box in boxes:
        found.append(measured.cost(box))
        print(found[-1], flush=True)
        if options.out:
            report = {"device": device.name, "case": options.case, "size": options.size, "changes": changes}
            options.out.write_text(json.dumps({**report, "costs": [asdict(cost) for cost in found]}, indent=1))


def _problem(case: str, n: int) -> Problem:
    if case == "yee":
        return yee_problem((n, n))
    if case == "radar":
        return radar_problem((n, n))
    from peergrid.bench.problems import radar

    return radar(n, n, 4096)


if __name__ == "__main__":
    main()
