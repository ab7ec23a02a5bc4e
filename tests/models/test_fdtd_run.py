"""The radar on devices: the compiled, split and time-blocked run has the bits of the plain NumPy statements."""

from __future__ import annotations

import numpy as np
import pytest
from fdtd_stepper import Stepper

from peergrid.models.fdtd import build
from peergrid.models.fdtd.materials import Material
from peergrid.models.fdtd.model import Absorber, GridSpec, LineSource, PlaneWave, RadarModel, ReceiverSpec
from peergrid.models.fdtd.shapes import Box, Cylinder
from peergrid.models.waveforms import Ricker
from peergrid.schedule import Options
from peergrid.simulate import Simulation

PULSE = Ricker(8e8)
GROUND = RadarModel(
    GridSpec((0.61, 0.43), 0.01, steps=73),
    materials=(Material("sand", 3.0, 0.01), Material("ferrite", 2.0, 0.0, 3.0)),
    shapes=(
        Box("sand", (-1, -1), (2, 0.21)),
        Cylinder("conductor", (0.2, 0.15), 0.04),
        Cylinder("ferrite", (0.4, 0.12), 0.05),
    ),
    sources=(LineSource((0.3, 0.25), PULSE), LineSource((0.31, 0.25), PULSE)),
    receivers=(ReceiverSpec((0.35, 0.25), "rx", ("Ez", "Hx", "Hy")),),
    absorber=Absorber(cells=6, sides=("x-", "x+", "y-"), kappa=2.0, alpha=0.02),
)
WAVE = RadarModel(
    GridSpec((0.5, 0.3), 0.01, steps=73, periodic=("y",), dtype="float64"),
    shapes=(Cylinder("conductor", (0.3, 0.02), 0.05),),
    sources=(PlaneWave("+x", 0.2, PULSE),),
    receivers=(ReceiverSpec((0.25, 0.3), "edge"),),
)


@pytest.mark.parametrize("model", [GROUND, WAVE], ids=["ground", "periodic wave"])
@pytest.mark.parametrize(("devices", "depth"), [("cpu:1", 8), ("cpu:3", 2)])
def test_a_run_on_devices_has_the_bits_of_numpy(model: RadarModel, devices: str, depth: int) -> None:
    built = build(model)
    plain = Stepper(built.problem).run(built.steps)
    with Simulation(built.problem, built.steps, devices=devices, options=Options("overlap", depth=depth)) as run:
        run.run(built.steps)
        for name in built.problem.state:
            np.testing.assert_array_equal(run.gather(name), plain.arrays[name], err_msg=name)
        for name, trace in plain.traces().items():
            np.testing.assert_array_equal(run.traces()[name], trace, err_msg=name)
    assert np.abs(plain.arrays["Ez"]).max() > 0.1
