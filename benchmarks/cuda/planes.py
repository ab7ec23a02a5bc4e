"""The fields of a 2D problem on one GPU, and what a kernel of a pass is told of them."""

from __future__ import annotations

import numpy as np
from gpu import Device

from peergrid.codegen.cuda.common.arguments import Arguments
from peergrid.codegen.cuda.common.program import Launch
from peergrid.stencil import Problem

PAD = 32
SCALES = {"ca": (0.1, 0.9), "cb": (0.5, 0.0)}  # the others: noise around zero


class Memory:
    """The fields of a problem on the device, two slots for the state, columns at multiples of 32 floats."""

    def __init__(self, device: Device, problem: Problem) -> None:
        self.device, self.problem = device, problem
        self.pitch, self.bases = {}, {}
        for seed, (name, described) in enumerate(problem.fields.items()):
            if not described.full:
                self.bases[name] = (device.upload(described.global_array()),)
                continue
            box = described.box
            self.pitch[name] = -(-(box.hi[1] - box.lo[1] // PAD * PAD) // PAD) * PAD
            size = self.pitch[name] * box.shape[0] * 4
            slots = 2 if name in problem.state else 1
            self.bases[name] = tuple(device.allocate(size) for _ in range(slots))
            for base in self.bases[name]:
                self.device.noise(base, size // 4, seed, *SCALES.get(name, (1.0, -0.5)))
        self.signals = {name: (device.upload(s.samples), len(s.samples)) for name, s in problem.signals.items()}
        self.total_steps = 4096
        self.traces = device.upload(np.full((max(1, len(problem.receivers)), self.total_steps), np.nan, np.float32))
        device.sync()

    def origin(self, name: str, slot: int) -> int:
        box = self.problem.fields[name].box
        if name not in self.pitch:
            return self.bases[name][0]
        return self.bases[name][slot] - (box.lo[0] * self.pitch[name] + box.lo[1] // PAD * PAD) * 4

    def arguments(self, launch: Launch, source: int, step: int = 0) -> np.ndarray:
        table = Arguments(self.problem)
        given = np.zeros((), table.dtype)
        for number, name in enumerate(table.fields):
            row = given["fields"][number]
            slots = len(self.bases[name])
            row["slot"][:slots] = [self.origin(name, slot) for slot in range(slots)]
            row["pitch"][0] = self.pitch.get(name, 0)
            row["into"][0] = self.pitch.get(name, 0)
        for number, name in enumerate(table.signals):
            given["signals"][number] = self.signals[name]
        given["params"][: len(table.params)] = list(self.problem.params.values())
        given["corners"] = table.corners
        given["traces"], given["total_steps"], given["step"] = self.traces, self.total_steps, step
        given["source"], given["target"] = source, 1 - source
        given["lo"][:2], given["hi"][:2] = (0, 0), self.problem.grid.shape
        given["regions"], given["receivers"] = self.device.upload(launch.regions), self.device.upload(launch.receivers)
        given["count"] = len(launch.regions)
        return given
