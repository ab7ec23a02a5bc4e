"""Fields that `peergrid.save` writes are found by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import unquote

import h5py
import numpy as np

import peergrid
from peergrid import Grid, Problem, Simulation, stencil

NAMES = ("u", "σ", ".", "..", "x/", "a", "a/b", "a//b", "a%2Fb")


@stencil
def double(u: Any) -> None:
    u.next[0] = 2 * u[0]


def test_any_name_of_a_field_is_written(tmp_path: Path) -> None:
    grid = Grid((5,))
    updates = [double(grid.field(name, float(number))) for number, name in enumerate(NAMES)]
    with Simulation(Problem.of(updates), 1, devices="cpu:2") as simulation:
        simulation.run(1)
        peergrid.save(simulation, tmp_path / "100%.h5")
    with h5py.File(tmp_path / "100%.h5") as file:
        assert {"u", "σ"} < set(file)
        found = {unquote(key): values[:] for key, values in file.items()}
    assert set(found) == set(NAMES)
    for number, name in enumerate(NAMES):
        assert np.array_equal(found[name], np.full(5, 2.0 * number, np.float32)), name
