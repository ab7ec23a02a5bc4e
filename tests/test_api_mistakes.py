"""Calls of the public interface that cannot mean anything are refused with a sentence, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import peergrid
from peergrid import Grid, Options, Problem, Simulation, UsageError
from peergrid.grid.partition import Partition
from peergrid.runtime.devices import Devices
from peergrid.runtime.executors import executor_of
from peergrid.schedule import layout


@peergrid.stencil
def drift(u, k):  # type: ignore[no-untyped-def]
    u.next[0, 0] = u[0, 0] + k * (u[1, 0] - u[0, 0])


@peergrid.stencil
def idle(u: peergrid.Cell) -> None:
    u.next[0] = u[0]


SURVEY = Path(__file__).parents[1] / "examples" / "survey.toml"
RADAR = Path(__file__).parents[1] / "examples" / "gpr.toml"
STEP = drift(Grid((20, 16)).field("u"), k=0.1)


def norms_of_a_run_without() -> object:
    with Simulation(Problem.of(STEP), 4, devices="cpu:1") as simulation:
        return simulation.norms()


def closed() -> Simulation:
    simulation = Simulation(Problem.of(STEP), 4, devices="cpu:1")
    simulation.close()
    return simulation


def torn() -> Simulation:
    """A simulation whose user lost patience after some of its operations."""
    simulation = Simulation(Problem.of(STEP), 4, devices="cpu:1")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    simulation._executor.execute = interrupted  # type: ignore[method-assign]
    with suppress(KeyboardInterrupt):
        simulation.run(2)
    return simulation


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: peergrid.run(STEP, -1), "A run takes zero or more whole steps, got -1."),
        (lambda: peergrid.run(STEP, 1.5), "A run takes zero or more whole steps, got 1.5."),
        (
            lambda: peergrid.run(STEP, 1, devices=2),
            "Devices are 'auto', 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0', got '2'; "
            "write 'cpu:2' or GPUs such as 'cuda:0'.",
        ),
        (
            lambda: peergrid.run(STEP, 1, options="overlap"),
            "Options are given as peergrid.Options('overlap', depth=4), got 'overlap'.",
        ),
        (
            lambda: peergrid.run(STEP, 1, devices="cpu:4", split=4),
            "A split gives a positive number of parts for each of the 2 axes, got (4,).",
        ),
        (lambda: peergrid.run(STEP, True), "A run takes zero or more whole steps, got True."),
        (lambda: peergrid.run(STEP, "4"), "A run takes zero or more whole steps, got '4'."),
        (
            lambda: drift(Grid((20, 16)).field("u"), k=1e39),
            "Stencil 'drift' takes numbers of float32, got k=1e+39; use other units or a grid of float64.",
        ),
        (lambda: Options("overlap", depth=2.5), "The depth is a positive number of steps, got 2.5."),
        (lambda: Options("overlap", depth="3"), "The depth is a positive number of steps, got '3'."),
        (lambda: Options("overlap", depth=True), "The depth is a positive number of steps, got True."),
        (lambda: Options(depth=2, block=1.5), "A pass takes 1 to 2 steps (the depth), got block = 1.5."),
        (
            lambda: Simulation(Problem.of(STEP), 4, devices="cpu:1", kernel="fast"),
            "A kernel is one of compiled, reference, got 'fast'.",
        ),
        (norms_of_a_run_without, "This run computes no norm; name a field when it is made, such as norm='u'."),
        (
            lambda: closed().gather("u"),
            "The simulation is closed and its memory freed; use it inside its 'with' block.",
        ),
        (
            lambda: closed().run(1),
            "The simulation is closed and its memory freed; use it inside its 'with' block.",
        ),
        (
            lambda: closed().check(),
            "The simulation is closed and its memory freed; use it inside its 'with' block.",
        ),
        (
            lambda: Simulation(Problem.of(STEP), 4, devices="cpu:1").gather("u", (0, 0)),  # type: ignore[arg-type]
            "A box within [0,20)×[0,16) is expected for 'u', got (0, 0).",
        ),
        (
            lambda: Grid((20, 16)).field("w", within=(0, 3)),  # type: ignore[arg-type]
            "Field 'w' is confined to a peergrid.Box such as Box((0, 0), (8, 8)), got (0, 3).",
        ),
        (lambda: Grid((20, 16), None), "A boundary is 'fixed', 'periodic' or 'reflecting', got None."),  # type: ignore[arg-type]
        (
            lambda: peergrid.Stage(STEP),  # type: ignore[arg-type]
            "A stage takes a list of updates, got Update(drift: u in (0, 0) to (20, 16)); write [update].",
        ),
        (
            lambda: Simulation(STEP, 4, devices="cpu:1").restore("state.h5"),  # type: ignore[arg-type]
            "A state is expected, such as peergrid.read_state(path) gives, got 'state.h5'.",
        ),
        (
            lambda: peergrid.write_state("state.h5", STEP),  # type: ignore[arg-type]
            "A state is expected, such as simulation.state() gives, got Update(drift: u in (0, 0) to (20, 16)).",
        ),
        (
            lambda: peergrid.read_state("/none/a.h5"),
            "'/none/a.h5' is expected to be a checkpoint, got No such file or directory; use another, or start anew.",
        ),
        (
            lambda: peergrid.save(Simulation(STEP, 4, devices="cpu:1"), "/proc/none/u.h5"),
            "Room to write '/proc/none/u.0.h5' is expected, got: No such file or directory; free some space or choose "
            "another folder.",
        ),
        (lambda: peergrid.source_of(STEP, "cuda", steps=0), "'steps' takes a whole number from 1 to 10,000, got 0."),
        (
            lambda: peergrid.run_model(None),  # type: ignore[arg-type]
            "A model is expected, or the path of a model file, got None.",
        ),
        (lambda: peergrid.run_model(RADAR, depth=0), "The depth is a positive number of steps, got 0."),
        (
            lambda: peergrid.run_model(RADAR, call=3),  # type: ignore[arg-type]
            "'call' takes a function of the simulation, got 3.",
        ),
        (
            lambda: peergrid.Box(0, 3),  # type: ignore[arg-type]
            "A box takes two corners of as many whole numbers, such as Box((0, 0), (8, 8)), got 0 and 3.",
        ),
        (
            lambda: Grid((20, 16)).field("w", within=peergrid.Box((0,), (4,))),
            "Field 'w' is confined to a peergrid.Box such as Box((0, 0), (8, 8)), got Box(lo=(0,), hi=(4,)).",
        ),
        (
            lambda: Grid((20, 16)).field(""),
            "A field has a name, text that is not empty and without control characters, got ''.",
        ),
        (
            lambda: Grid((20, 16)).signal("s\0", [1.0]),
            "A signal has a name, text that is not empty and without control characters, got 's\\x00'.",
        ),
        (
            lambda: Grid((10**9, 10**10)),
            "A grid has at most 1,000,000,000,000,000,000 cells, got 10,000,000,000,000,000,000.",
        ),
        (
            lambda: peergrid.run(STEP, 10**19),
            "A run takes at most 1,000,000,000,000,000,000 steps, got 10,000,000,000,000,000,000.",
        ),
        (lambda: drift(3, k=0.1), "A number of a stencil has no cells; use it without [...], or give a field."),
        (
            lambda: peergrid.stencil(None),  # type: ignore[arg-type]
            "A stencil is made of a function of one cell, got None.",
        ),
        (
            lambda: Problem.of(STEP, None),  # type: ignore[arg-type]
            "Receivers are given as peergrid.Receiver('r1', 'u', (8, 8)), got None.",
        ),
        (
            lambda: peergrid.save(STEP, "u.h5"),  # type: ignore[arg-type]
            "A simulation is expected, whose fields are saved, got Update(drift: u in (0, 0) to (20, 16)).",
        ),
        (
            lambda: peergrid.run_survey(SURVEY, None),  # type: ignore[arg-type]
            "'folder' takes a path, text or a pathlib.Path, got None.",
        ),
        (
            lambda: peergrid.run_model(RADAR, resume="no"),  # type: ignore[arg-type]
            "'resume' is True or False, got 'no'.",
        ),
        (
            lambda: peergrid.run(STEP, 1, comm=np.zeros(3)),  # type: ignore[arg-type]
            "comm takes an MPI communicator, such as mpi4py.MPI.COMM_WORLD, got array([0., 0., 0.]).",
        ),
        (lambda: torn().run(1), "The simulation failed or was interrupted while stepping; make a new one."),
        (lambda: torn().gather("u"), "The simulation failed or was interrupted while stepping; make a new one."),
    ],
)
def test_a_call_that_means_nothing_is_refused(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        call()
    assert str(refused.value) == sentence


def test_counts_may_come_from_numpy() -> None:
    steps = np.arange(4)
    with Simulation(Problem.of(STEP), steps[3], devices="cpu:1", options=Options(depth=steps[2])) as simulation:
        simulation.run(steps[3])
        assert simulation.step == 3


def test_gpus_refuse_axes_that_their_kernels_cannot_count() -> None:
    grid = Grid((2**31,))
    wide = Problem.of(idle(grid.field("u")))
    plan = layout(wide, Partition.over(grid, 1), Options())
    with pytest.raises(UsageError, match=r"at most 2,146,435,072 cells on GPUs, .*, got 2,147,483,648"):
        executor_of(Devices("cuda", (0,)), plan, 4, "compiled", None, None)


def test_gpus_refuse_the_reference_kernel() -> None:
    plan = layout(Problem.of(STEP), Partition.over(Problem.of(STEP).grid, 1), Options())
    with pytest.raises(UsageError) as refused:
        executor_of(Devices("cuda", (0,)), plan, 4, "reference", None, None)
    assert str(refused.value) == (
        "The reference kernel runs on virtual devices, not on cuda:0; use 'cpu:1', or leave out 'kernel'."
    )
