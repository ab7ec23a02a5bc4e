"""The three-point stencil of examples/directives (OpenMP threads and OpenACC) and of peergrid, in turn.

    python benchmarks/directives.py [--devices cpu:2] [--cells 16777216] [--steps 20] [--rounds 2] [--limit 60]
        [--program FILE] [--out FILE]

One line of float32 noise, whose two outermost cells stay as they are; both programs start from the same values and must
end with the same bits. The seconds are those of the steps alone: the line lies on the devices already. PROGRAM is built
with gcc unless it is given, as it is on a machine without the compiler; where it does not end within LIMIT seconds,
that is recorded and peergrid is measured alone. Writes benchmarks/results/directives.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from record import about, save

from peergrid import Grid, Options, Problem, Simulation, stencil
from peergrid.runtime.devices import parse_devices

SOURCES = Path(__file__).resolve().parents[1] / "examples" / "directives"
Line = np.ndarray[tuple[int], np.dtype[np.float32]]


@stencil
def three_points(u: Any) -> None:
    """Half of a cell and a quarter of both neighbours, as examples/directives/device.c has it."""
    u.next[0] = 0.5 * u[0] + 0.25 * u[-1] + 0.25 * u[1]


@dataclass(frozen=True)
class Directives:
    """The built program."""

    program: Path

    @classmethod
    def build(cls, folder: Path) -> Directives:
        """Compiled into a folder, for the processor, whatever lies beside the sources.

        Raises CalledProcessError with the compiler's words.
        """
        subprocess.run(["make", "-s", "-B", "-f", SOURCES / "Makefile", f"VPATH={SOURCES}"], cwd=folder, check=True)
        return cls(folder / "three_points")

    def run(self, first: Line, devices: int, steps: int, limit: float = 60) -> tuple[Line, str, float]:
        """The line after so many steps, the kind of device (cpu, gpu) and the seconds of the steps.

        Raises TimeoutExpired where it does not end within so many seconds.
        """
        with tempfile.TemporaryDirectory() as name:
            before, after = Path(name, "first"), Path(name, "last")
            first.tofile(before)
            command = [str(self.program), str(devices), str(steps), str(before), str(after)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
            kind, seconds = done.stdout.split()
            return np.fromfile(after, np.float32), kind, float(seconds)


def problem(first: Line) -> Problem:
    grid = Grid(first.shape, boundary="fixed")
    return Problem.of(three_points(grid.field("u", init=first)))


def compared(
    program: Directives, first: Line, devices: str, steps: int, rounds: int, limit: float = 60
) -> dict[str, Any]:
    """The median rates of both, in GCells/s, after their bits were compared; limit: seconds of the program's calls."""
    count, kind, last = parse_devices(devices).count, "", None
    samples: dict[str, list[float]] = {"directives": [], "one step per pass": [], "several": []}
    for number in range(rounds):
        if number == 0 or last is not None:
            try:
                last, kind, seconds = program.run(first, count, steps, limit)
                samples["directives"].append(seconds)
            except subprocess.TimeoutExpired:
                last = None
        for name, options in (("one step per pass", Options(depth=1)), ("several", None)):
            with Simulation(problem(first), 2 * steps, devices=devices, options=options) as simulation:
                simulation.run(steps)
                if last is not None and simulation.gather("u").tobytes() != last.tobytes():
                    raise SystemExit(f"peergrid, {name}, has other bits than the program with directives.")
                before = simulation.seconds
                simulation.run(steps)
                samples[name].append(simulation.seconds - before)
    medians = {name: statistics.median(values) for name, values in samples.items() if values}
    found: dict[str, Any] = {
        "devices": devices,
        "directives_on": kind,
        "same_bits": last is not None,
        "gcells_per_second": {name: first.size * steps / seconds / 1e9 for name, seconds in medians.items()},
        "seconds": samples,
    }
    return found if last is not None else found | {"directives": f"did not end within {limit:g} s"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cpu:2", help="with semicolons for several: 'cuda:0;cuda:0,1'")
    parser.add_argument("--cells", type=int, default=1 << 24)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60, help="seconds of a call of the program")
    parser.add_argument("--program", type=Path)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    first = np.random.default_rng(5).random(given.cells, dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        program = Directives(given.program) if given.program else Directives.build(Path(folder))
        rows = []
        for devices in given.devices.split(";"):
            rows.append(compared(program, first, devices, given.steps, given.rounds, given.limit))
            print(json.dumps(rows[-1]), flush=True)
            found = {**about(), "cells": given.cells, "steps": given.steps, "rows": rows}
            if given.out:
                given.out.write_text(json.dumps(found, indent=2) + "\n")
            else:
                save("directives", found)


if __name__ == "__main__":
    main()
