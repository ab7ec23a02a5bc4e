"""A B-scan: runs whose sources and receivers lie elsewhere have the same kernels, and the same arrangement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from host_driver import HostDriver
from runtime_problems import electric, heat_3d, magnetic, source_3d

from peergrid import Box, Grid, Options, Problem, Receiver, stencil
from peergrid.codegen.cuda.choose.balance import balanced
from peergrid.codegen.cuda.choose.steps import block_of
from peergrid.codegen.cuda.gpu_model import H200, GpuModel
from peergrid.grid.partition import Partition
from peergrid.models.fdtd import build
from peergrid.models.fdtd.model import (
    GridSpec,
    LineSource,
    PlaneWave,
    RadarModel,
    ReceiverArray,
    ReceiverSpec,
)
from peergrid.models.waveforms import Ricker
from peergrid.runtime.cuda.lowering.kernels import Kernels
from peergrid.schedule import ResolvedOptions, layout, one_iteration
from peergrid.schedule.strategies import StrategyName
from peergrid.trials.step_timer import StepTimer
from peergrid.trials.trial import Trial

PULSE = Ricker(900e6)
STRATEGIES: list[StrategyName] = ["overlap", "peer", "persistent", "graph"]
CELL = 0.002


def radar(distance: int) -> Problem:
    """A plane wave that stays; two sources, a receiver and an array of them, moved by so many cells along x."""
    x = (150 + distance) * CELL
    model = RadarModel(
        GridSpec(size=(400 * CELL, 300 * CELL), spacing=CELL, steps=20),
        sources=(
            LineSource((x, 150 * CELL), PULSE),
            LineSource((x + 30 * CELL, 160 * CELL), PULSE),
            PlaneWave("+y", 40 * CELL, PULSE),
        ),
        receivers=(ReceiverSpec((x + 10 * CELL, 150 * CELL), "beside", ("Ez", "Hx")),),
        receiver_arrays=(ReceiverArray((x - 20 * CELL, 155 * CELL), (x + 20 * CELL, 155 * CELL), 5, "line"),),
    )
    return build(model).problem


@stencil
def shine(u: Any, v: Any, s: Any) -> None:
    u.next[0, 0] = u[0, 0] + s.now * v[0, 1]


def own(distance: int) -> Problem:
    """Yee's step on a plane whose rows wrap, with an update of three rows and two columns."""
    grid = Grid((400, 300), ("fixed", "periodic"))
    ez, hx, hy = (grid.field(name, np.random.default_rng(1).random(grid.shape)) for name in ("Ez", "Hx", "Hy"))
    ca, wave = grid.field("ca", np.ones(grid.shape)), grid.signal("s", np.linspace(0, 1, 9))
    lamp = Box((150 + distance, 100 + distance), (153 + distance, 102 + distance))
    stages = [magnetic(ez, hx, hy, 0.5), electric(ez, hx, hy, ca, 0.5), shine(ez, hx, wave).within(lamp)]
    return Problem.of(stages, Receiver("r", "Ez", (160 + distance, 100)))


def room(distance: int) -> Problem:
    """Heat in three dimensions with a source in one cell."""
    grid = Grid((96, 64, 64))
    u, cell = grid.field("u", np.random.default_rng(1).random(grid.shape)), (30 + distance, 30 + distance // 2, 30)
    lit = source_3d(u, grid.signal("s", np.linspace(0, 1, 9))).within(Box.cell(cell))
    return Problem.of([heat_3d(u, 0.1), lit], Receiver("r", "u", (cell[0] + 2, *cell[1:])))


PROBLEMS: dict[str, Callable[[int], Problem]] = {"radar": radar, "own": own, "room": room}


def texts(problem: Problem, options: Options, devices: int, norm: str | None = None, gpu: GpuModel = H200) -> set[str]:
    """The texts of all kernels of a run."""
    options = Options(options.strategy, options.depth, block=block_of(problem, options.depth))
    plan = layout(problem, Partition(problem.grid, (devices, *(1,) * (problem.grid.ndim - 1))), options, (24, 24))
    needed = Kernels(plan, norm, gpu, (132,) * devices, lambda *_: True).needed(one_iteration(plan, options))
    return {*needed.texts, *(kernel.layer.source for kernel in needed.striped if kernel.layer is not None)}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize(
    ("name", "depth"), [("radar", 1), ("radar", 8), ("own", 1), ("own", 4), ("room", 1), ("room", 3)]
)
def test_kernels_stay(name: str, depth: int, devices: int, strategy: StrategyName) -> None:
    here, there = (texts(PROBLEMS[name](distance), Options(strategy, depth), devices) for distance in (0, 40))
    assert here == there
    several = ("boundary2d", "persistent2d", "stream3d")  # skeletons of several steps
    assert any(skeleton in text for text in here for skeleton in several) or depth == 1


@pytest.mark.parametrize("depth", [1, 8])
@pytest.mark.parametrize("devices", [1, 2])
def test_kernels_with_norms_stay(depth: int, devices: int) -> None:
    here, there = (texts(radar(distance), Options("overlap", depth), devices, "Ez") for distance in (0, 40))
    assert here == there


def test_one_pass_for_all_stages_stays() -> None:
    gpu = replace(H200, streamed_cells=1)
    here, there = (texts(radar(distance), Options("overlap", 1), 1, gpu=gpu) for distance in (0, 40))
    assert here == there
    assert any("edge2d" in text for text in here)


def test_the_arrangement_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Options]()

    def seconds(self: Trial, options: Options, timer: StepTimer) -> float:
        asked.append(options)
        return 1.0

    def chosen(distance: int) -> ResolvedOptions:
        problem = radar(distance)
        cut = balanced(problem, 2, 8)
        ways = Options("overlap", 8), Options("peer", 4)
        trial = Trial(problem, cut, (0, 1), 400, ways, cache=tmp_path, driver=HostDriver())
        return trial.fastest(Options("overlap", 8))

    monkeypatch.setattr(Trial, "step_seconds", seconds)
    first = chosen(0).options
    assert asked
    asked.clear()
    assert chosen(40).options == first
    assert not asked
