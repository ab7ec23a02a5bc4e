"""Signals that differ from cell to cell: on every device, at every depth, the sample of each cell's own place."""

from __future__ import annotations

import numpy as np
import pytest

import peergrid
from peergrid import Box, Grid, Options, Problem, stencil
from peergrid.codegen.cpu.lanes import vector_for
from peergrid.errors import UsageError
from peergrid.grid import Array, Dtype, Index
from peergrid.runtime.cpu.kernel import _with_room

STEPS, KNOWN = 9, 7


@stencil
def drift(u):
    here = (0,) * u.described.grid.ndim
    u.next[here] = 0.5 * u[here] + 0.25 * u[(-1, *here[1:])]


@stencil
def driven(u, wave):
    here = (0,) * u.described.grid.ndim
    u.next[here] = u[here] + wave.now


def expected(first: Array, box: Box, places: Array, samples: Array) -> Array:
    """By NumPy, whole arrays at a time."""
    u, inside = first.copy(), box.slices((0,) * box.ndim)
    half, quarter = (u.dtype.type(value) for value in (0.5, 0.25))
    for step in range(STEPS):
        moved = u.copy()
        moved[1:] = half * u[1:] + quarter * u[:-1]
        u = moved
        if step < KNOWN:
            u[inside] += samples[step][places]
    return u


@pytest.mark.parametrize(
    ("shape", "lo", "hi", "slopes", "dtype"),
    [
        ((40,), (5,), (33,), (-3,), "float64"),
        ((600,), (5,), (583,), (3,), "float32"),
        ((40,), (5,), (33,), (0,), "float32"),
        ((20, 37), (3, 4), (15, 35), (2, -1), "float32"),
        ((12, 14, 50), (3, 2, 1), (9, 12, 47), (1, -2, 3), "float32"),
        ((12, 14, 50), (3, 2, 1), (9, 12, 47), (1, -2, 0), "float64"),
        ((12, 14, 50), (3, 2, 1), (9, 12, 47), (0, 0, 0), "float32"),
    ],
)
def test_each_cell_has_the_sample_of_its_place(shape: Index, lo: Index, hi: Index, slopes: Index, dtype: Dtype) -> None:
    grid, box, random = Grid(shape, "fixed", dtype), Box(lo, hi), np.random.default_rng(1)
    cells = np.meshgrid(*(np.arange(a, b) for a, b in zip(lo, hi, strict=True)), indexing="ij")
    places = sum(slope * cell for slope, cell in zip(slopes, cells, strict=True))
    samples = random.random((KNOWN, int(np.ptp(places)) + 1)).astype(dtype)
    u = grid.field("u", random.random(shape))
    wave = grid.signal("wave", samples, slopes, -int(places.min()))
    problem = Problem.of([drift(u), driven(u, wave).within(box)])
    wanted = expected(np.array(u.first_values()), box, places - places.min(), samples)
    for devices, options in (("cpu:1", Options("serial", 1)), ("cpu:3", Options("overlap", 2)), ("cpu:2", Options())):
        assert np.array_equal(peergrid.run(problem, STEPS, devices=devices, options=options).fields["u"], wanted)
    room = _with_room(problem, "wave", STEPS)[1]
    assert room >= (vector_for(shape, problem.itemsize) // problem.itemsize - 1) * abs(slopes[-1]), "read by idle lanes"


def test_places_that_a_signal_lacks_are_refused() -> None:
    grid = Grid((8, 9))
    u, wave = grid.field("u"), grid.signal("wave", np.zeros((3, 20)), (2, 1), first=0)
    with pytest.raises(UsageError, match=r"reads the signal 'wave' at places 0 to 22 of .* which has places 0 to 19"):
        Problem.of(driven(u, wave))
    Problem.of(driven(u, wave).within(Box((0, 0), (6, 9))))


def test_signals_of_another_shape_are_refused() -> None:
    grid = Grid((8, 9), ("fixed", "periodic"))
    for samples, slopes, said in (
        (np.zeros((3, 20)), (1,), "takes slopes of 2 whole numbers"),
        (np.zeros(20), (1, 0), "takes one number for each step and place, got shape"),
        (np.zeros((3, 20)), (), "takes a one-dimensional array, got shape"),
        (np.zeros((3, 20)), (1, 1), "takes no slope along a periodic axis"),
    ):
        with pytest.raises(UsageError, match=said):
            grid.signal("wave", samples, slopes)
