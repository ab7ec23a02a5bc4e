"""The runs that are ended: radar in two and three dimensions and surveys by the command line, heat by a program."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

import peergrid
import peergrid.cli.run  # what every copy of this process needs
from peergrid import Grid, Options, Problem, Receiver, Simulation
from peergrid.io.checkpoints import Checkpoints, Period, newest
from peergrid.pauses import advance
from peergrid.schedule.strategies import STRATEGIES, StrategyName

RADAR = """
[grid]
size = [0.5, 0.4]
spacing = 0.004
steps = {steps}
[[material]]
name = "sand"
permittivity = 4.0
conductivity = 0.01
[[shape]]
kind = "box"
material = "sand"
lower = [0.0, 0.0]
upper = [0.5, 0.2]
[[source]]
kind = "line"
position = [0.25, 0.25]
waveform = {{ kind = "ricker", frequency = 1.5e9 }}
[[receiver]]
position = [0.3, 0.25]
fields = ["Ez", "Hx"]
[output]
snapshots = 100
pictures = false
"""
SURVEY = (
    RADAR.replace("snapshots = 100\n", "")
    + """
[survey]
kind = "common_offset"
traces = 6
step = [0.01, 0.0]
"""
)
SPACE = """
[model]
kind = "fdtd3d"
[grid]
size = [0.12, 0.1, 0.1]
spacing = 0.005
steps = {steps}
[[material]]
name = "clay"
permittivity = 4.0
poles = [{{ kind = "debye", strength = 3.0, relaxation = 2.7e-11 }}]
[[shape]]
kind = "box"
material = "clay"
lower = [0.045, 0.035, 0.035]
upper = [0.065, 0.065, 0.05]
[[source]]
kind = "electric_dipole"
axis = "y"
position = [0.05, 0.05, 0.06]
waveform = {{ kind = "ricker", frequency = 2e9 }}
[[receiver]]
position = [0.065, 0.05, 0.06]
[absorber]
cells = 4
[output]
snapshots = 40
pictures = false
"""
FAR = """
[[far_field]]
lower = [0.025, 0.025, 0.025]
upper = [0.095, 0.075, 0.075]
frequencies = [2e9]
[survey]
kind = "common_offset"
traces = 2
step = [0.005, 0.0, 0.0]
"""
EVERY = 40  # steps between two checkpoints


@peergrid.stencil
def heat(u, k):  # type: ignore[no-untyped-def]
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next[0, 0, 0] = u[0, 0, 0] + k * (around - 6 * u[0, 0, 0])


@peergrid.reduction("sum", every=10)
def total(u):  # type: ignore[no-untyped-def]
    return u[0, 0, 0]


def heat_problem() -> Problem:
    grid = Grid((40, 36, 32), ("periodic", "reflecting", "fixed"))
    u = grid.field("u", np.random.default_rng(5).random(grid.shape))
    return Problem.of(heat(u, k=0.1), [Receiver("probe", "u", (20, 18, 16))], [total(u)])


def run_heat(folder: Path, steps: int, devices: int, strategy: StrategyName, depth: int) -> None:
    """Go on from what lies in a folder; leave the result there as `results.h5`."""

    def say(sentence: str) -> None:
        print(sentence, file=sys.stderr)

    options = Options(strategy, depth)
    with (
        Simulation(heat_problem(), steps, devices=f"cpu:{devices}", options=options) as simulation,
        Checkpoints(folder / "checkpoints", Period(EVERY), say) as checkpoints,
    ):
        if (state := newest(folder / "checkpoints", say)) is not None:
            simulation.restore(state)
        for step in advance(simulation, steps, (EVERY,)):
            if checkpoints.due(step):
                checkpoints.keep(simulation.state())
        result = simulation.result()
        with h5py.File(folder / "results.h5", "w") as file:
            file["u"], file["probe"] = result.fields["u"], result.traces["probe"]
            file["total"] = result.reductions["total"].values


def by_command(model: str, *more: str) -> Callable[[Path, int, int, StrategyName, int], None]:
    """A run of a model file as a user runs it, in the process that calls. more: options of the command line."""

    def run(folder: Path, steps: int, devices: int, strategy: StrategyName, depth: int) -> None:
        _run(folder, model.format(steps=steps), devices, strategy, depth, *more)

    return run


def _run(folder: Path, text: str, devices: int, strategy: str, depth: int, *more: str) -> None:
    model = folder.parent / f"{folder.name}.toml"
    model.write_text(text)
    sys.argv = [
        "peergrid", "run", str(model), "-o", str(folder), "--resume", "--devices", f"cpu:{devices}",
        "--strategy", strategy, "--depth", str(depth), "--json", *more,
    ]  # fmt: skip
    peergrid.cli.main()


KEPT = ("--checkpoint", f"{EVERY}steps")  # of a survey each trace is kept when it is done
RUNS = {
    "radar 2D": by_command(RADAR, *KEPT),
    "heat 3D": run_heat,
    "survey": by_command(SURVEY),
    "radar 3D": by_command(SPACE, *KEPT),
    "survey 3D": by_command(SPACE.replace("snapshots = 40\n", "") + FAR),
}
__all__ = ["RUNS", "STRATEGIES"]
