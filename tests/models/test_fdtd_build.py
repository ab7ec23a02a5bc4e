"""From a model to a problem: what costs nothing is not there, what must be there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import sqrt

import numpy as np
import pytest
from fdtd_examples import WALLS
from fdtd_stepper import Stepper
from hypothesis import given
from hypothesis import strategies as st

from peergrid.grid import Box as Cells
from peergrid.grid import Grid
from peergrid.models.fdtd import assembly, build
from peergrid.models.fdtd.coefficients import coefficients
from peergrid.models.fdtd.constants import ETA_0, SPEED_OF_LIGHT
from peergrid.models.fdtd.cpml import layer
from peergrid.models.fdtd.materials import Geometry, Material, time_step
from peergrid.models.fdtd.model import (
    Absorber,
    GridSpec,
    LineSource,
    Output,
    PlaneWave,
    RadarModel,
    ReceiverArray,
    ReceiverSpec,
)
from peergrid.models.fdtd.shapes import Box
from peergrid.models.waveforms import Gaussian, Ricker, Sine
from peergrid.stencil import Problem

SPEC = GridSpec((1.0, 0.6), 0.02, steps=5)
LONG = replace(SPEC, steps=200)
PULSE = Ricker(3e8)
WET = Material("wet", 4.0, 0.01)
HALF = Box("wet", (-1.0, -1.0), (2.0, 0.3))


def interior(problem: Problem) -> list[str]:
    """The names of the updates in the middle of the grid."""
    middle = tuple(n // 2 - 3 for n in problem.grid.shape)
    return [u.name for stage in problem.stages for u in stage.updates if middle in u.box]


def test_without_losses_the_interior_reads_one_coefficient_field_at_most() -> None:
    vacuum = build(RadarModel(SPEC)).problem
    assert interior(vacuum) == ["magnetic", "electric_lossless"]
    assert all(name.startswith("cpml") for name in vacuum.coefficients)
    dry = build(RadarModel(SPEC, materials=(replace(WET, conductivity=0.0),), shapes=(HALF,))).problem
    assert interior(dry) == ["magnetic", "electric_lossless"]
    assert [name for name in dry.coefficients if not name.startswith("cpml")] == ["cb"]


def test_losses_add_ca_and_permeability_adds_fields_for_h() -> None:
    wet = build(RadarModel(SPEC, materials=(WET,), shapes=(HALF,))).problem
    assert interior(wet) == ["magnetic", "electric"]
    assert [name for name in wet.coefficients if not name.startswith("cpml")] == ["ca", "cb"]
    magnetic = build(RadarModel(SPEC, materials=(replace(WET, permeability=2.0),), shapes=(HALF,))).problem
    assert {"ch_x", "ch_y"} <= set(magnetic.coefficients)
    filled = build(RadarModel(replace(SPEC, background="wet"), materials=(WET,))).problem
    assert all(name.startswith("cpml") for name in filled.coefficients), "one material everywhere is two numbers"


def test_the_memory_of_the_absorber_exists_on_its_sides_alone() -> None:
    problem = build(RadarModel(SPEC, absorber=Absorber(cells=6, sides=("x-", "y+")))).problem
    psi = {name: problem.fields[name].box for name in problem.fields if name.startswith("psi")}
    assert psi == {
        "psi_H.x.lo": Cells((0, 0), (6, 30)),
        "psi_H.y.hi": Cells((0, 24), (50, 30)),
        "psi_E.x.lo": Cells((1, 1), (6, 30)),
        "psi_E.y.hi": Cells((1, 25), (50, 30)),
    }


@given(
    cells=st.tuples(st.integers(9, 30), st.integers(9, 30)),
    thickness=st.integers(0, 3),
    sides=st.sets(st.sampled_from(["x-", "x+", "y-", "y+"])),
    periodic=st.sampled_from([(), ("x",), ("y",)]),
)
def test_every_node_is_updated_once_and_walls_never(
    cells: tuple[int, int], thickness: int, sides: set[str], periodic: tuple[str, ...]
) -> None:
    chosen = tuple(side for side in sorted(sides) if side[0] not in periodic)
    model = RadarModel(
        GridSpec((cells[0] * 0.01, cells[1] * 0.01), 0.01, steps=1, periodic=periodic),  # type: ignore[arg-type]
        absorber=Absorber(cells=thickness, sides=chosen),  # type: ignore[arg-type]
    )
    problem = build(model).problem
    for stage, target in zip(problem.stages, ("Hx", "Ez"), strict=True):
        assert all(target in update.targets for update in stage.updates)
        assert not any(a.box.overlaps(b.box) for a, b in combinations(stage.updates, 2))
    expected = [n if axis in periodic else n - 1 for axis, n in zip("xy", cells, strict=True)]
    assert sum(update.box.size for update in problem.stages[1].updates) == expected[0] * expected[1]
    assert sum(update.box.size for update in problem.stages[0].updates) == cells[0] * cells[1]


def test_the_time_step_is_the_courant_limit_of_the_fastest_material_used() -> None:
    dx, dy = 0.01, 0.02
    limit = 1 / (SPEED_OF_LIGHT * np.hypot(1 / dx, 1 / dy))
    assert time_step([Material("a", 4.0), Material("b", 9.0, 0, 2.0)], (dx, dy), 0.5) == pytest.approx(limit)
    full = build(RadarModel(replace(SPEC, background="wet"), materials=(WET, Material("unused"))))
    assert full.dt == pytest.approx(0.99 * 2 * 0.02 / (SPEED_OF_LIGHT * np.sqrt(2)))


@given(seed=st.integers(0, 1000))
def test_the_scheme_is_stable_at_the_limit_for_any_mixture(seed: int) -> None:
    """Random cells of three materials and conductors, random fields, the full Courant limit: nothing grows."""
    rng = np.random.default_rng(seed)
    model = RadarModel(GridSpec((0.16, 0.12), 0.01, steps=1, dtype="float64", courant=1.0), absorber=WALLS)
    media = (Material("vacuum"), Material("conductor"), Material("a", 3.0, 0.0, 1.0), Material("b", 1.0, 0.0, 4.0))
    geometry = Geometry(rng.integers(0, 4, (16, 12)).astype(np.uint16), media, (0.01, 0.01))
    built = build_with(model, geometry)
    noise = rng.standard_normal((17, 13))
    noise[[0, -1]], noise[:, [0, -1]] = 0, 0
    stepper = Stepper(built, {"Ez": noise * (built.fields["cb"].global_array() > 0)}).run(600)
    assert np.abs(stepper.arrays["Ez"]).max() < 1e3


def build_with(model: RadarModel, geometry: Geometry) -> Problem:
    """The problem of a geometry given cell by cell."""
    grid = Grid(geometry.nodes, dtype=model.grid.dtype)
    dt = time_step(geometry.used, geometry.spacing, model.grid.courant)
    frame = assembly.Frame(grid, geometry, (layer(geometry, 0, (0, 0)), layer(geometry, 1, (0, 0))), model.absorber, dt)
    fields, factors = assembly.Fields.on(grid), coefficients(grid, geometry, dt)
    return Problem.of(
        (
            assembly.magnetic_stage(fields, factors, assembly.cut(frame, half=True)),
            assembly.electric_stage(fields, factors, assembly.cut(frame, half=False)),
        )
    )


def test_ez_stays_zero_in_a_conductor_and_on_the_walls() -> None:
    model = RadarModel(
        SPEC,
        materials=(WET,),
        shapes=(HALF, Box("conductor", (0.2, 0.2), (0.4, 0.4))),
        sources=(LineSource((0.6, 0.3), PULSE),),
        absorber=WALLS,
    )
    ez = Stepper(build(replace(model, grid=replace(SPEC, steps=150))).problem).run(150).arrays["Ez"]
    assert np.abs(ez).max() > 1
    assert not ez[10:21, 10:21].any()
    assert not ez[[0, -1]].any()
    assert not ez[:, [0, -1]].any()


def test_sources_in_one_node_add_up() -> None:
    def trace(*sources: LineSource) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        model = RadarModel(
            replace(SPEC, steps=60, dtype="float64"), sources=sources, receivers=(ReceiverSpec((0.6, 0.3)),)
        )
        return Stepper(build(model).problem).run(60).traces()["rx1.Ez"]

    one, two = LineSource((0.5, 0.3), PULSE), LineSource((0.5, 0.3), Ricker(2e8, 0.3))
    np.testing.assert_allclose(trace(one, two), trace(one) + trace(two), rtol=1e-9, atol=1e-9)


def test_receivers_are_placed_on_nodes_and_named() -> None:
    model = RadarModel(
        SPEC,
        receivers=(ReceiverSpec((0.305, 0.3)), ReceiverSpec((0.5, 0.3), "mine", ("Hx", "Hy"))),
        receiver_arrays=(ReceiverArray((0.3, 0.3), (0.7, 0.3), 3), ReceiverArray((0.3, 0.4), (0.7, 0.4), 2, "top")),
    )
    built = build(model)
    names = ["rx1", "mine", "array1-1", "array1-2", "array1-3", "top-1", "top-2"]
    assert [r.name for r in built.recorders] == names
    assert [r.array for r in built.recorders] == ["", "", "array1", "array1", "array1", "top", "top"]
    assert built.recorders[0].cell == (15, 15)
    assert built.recorders[0].position == pytest.approx((0.3, 0.3))
    assert [r.name for r in built.problem.receivers][1:3] == ["mine.Hx", "mine.Hy"]
    assert dict(built.recorders[1].traces) == {"Hx": "mine.Hx", "Hy": "mine.Hy"}
    half_way = replace(model, receivers=(ReceiverSpec((0.31, 0.33)),))
    assert build(half_way).recorders[0].cell == (15, 16)


def test_units_turn_stored_h_into_amperes_per_metre() -> None:
    built = build(RadarModel(GridSpec((1.0, 0.6), (0.02, 0.01), steps=1)))
    assert built.units == {"Ez": 1.0, "Hx": 0.5 / ETA_0, "Hy": 1 / ETA_0}


def test_a_coarse_grid_is_warned_about_and_a_hopeless_one_allowed_when_asked() -> None:
    model = RadarModel(LONG, sources=(LineSource((0.5, 0.3), Ricker(8e8)),))
    assert build(model).warnings == (
        "grid.spacing should give at least 10 cells per shortest wavelength, got 6.8 ('vacuum' at 2.2 GHz); "
        "use grid.spacing = 0.014 for accurate waves.",
    )
    hopeless = replace(
        model, sources=(LineSource((0.5, 0.3), Ricker(2e9)),), grid=replace(LONG, allow_underresolved=True)
    )
    assert "got 2.7 " in build(hopeless).warnings[0]
    assert build(replace(model, sources=(LineSource((0.5, 0.3), Ricker(4e8)),))).warnings == ()


def test_doubtful_places_are_warned_about() -> None:
    model = RadarModel(
        LONG,
        sources=(LineSource((0.1, 0.3), PULSE), PlaneWave("+y", 0.3, PULSE)),
        receivers=(ReceiverSpec((0.5, 0.55)), ReceiverSpec((0.2, 0.4))),
    )
    assert build(model).warnings == (
        "Receiver 'rx1' lies inside the absorber, where fields mean nothing; move it inwards.",
        "source[1] lies inside the absorber, which weakens it; move it inwards.",
        "source[2] is a plane wave of finite width and diffracts at its edges; add 'x' to grid.periodic for an "
        "unbounded one.",
    )


@pytest.mark.parametrize(
    ("waveform", "peak"),
    [
        (Ricker(1e8, delay=1e-9), 1e-9 + sqrt(2) / 1e8),
        (Gaussian(1e8, 2, delay=1e-9), 1e-9 + 1e-8),
        (Sine(1e8, ramp=2), 2e-8),
    ],
)
def test_a_pulse_is_at_its_strongest(waveform: Ricker | Gaussian | Sine, peak: float) -> None:
    assert waveform.peak() == pytest.approx(peak)
    times = np.linspace(0, 4e-8, 4001)
    sizes = np.abs(waveform.sample(times))
    assert sizes[times <= peak + 0.3e-8].max() == pytest.approx(sizes.max())


def test_a_receiver_in_a_conductor_is_warned_about() -> None:
    model = RadarModel(
        LONG,
        shapes=(Box("conductor", (0.4, 0.2), (0.5, 0.3)),),
        sources=(LineSource((0.7, 0.3), PULSE),),
        receivers=(ReceiverSpec((0.44, 0.24)), ReceiverSpec((0.54, 0.24)), ReceiverSpec((0.44, 0.24), "h", ("Hx",))),
    )
    assert build(model).warnings == (
        "Receiver 'rx1' lies in or on a perfect conductor, where Ez stays zero; move it away.",
    )


def test_what_a_run_would_not_show_is_warned_about() -> None:
    slow = RadarModel(
        replace(SPEC, steps=100), sources=(LineSource((0.5, 0.3), Ricker(0.4)),), output=Output(snapshots=101)
    )
    dt = build(slow).dt
    assert build(slow).warnings == (
        f"source[1] is at its strongest after 3.54 s, but the run ends after {100 * dt:.3g} s; look at its frequency "
        "(Hz) and delay (s), and at grid.time_window (s) or the number of steps.",
        "output.snapshots asks for one every 101 steps, but the run has 100; use a smaller number.",
    )
    assert build(RadarModel(SPEC)).warnings == (
        "The model has no source, so that every field stays zero; add a [[source]].",
    )


def test_the_conductivity_of_the_absorber_follows_what_it_covers() -> None:
    """σ_max = 0.8 (m + 1) / (η₀ dx n): a slower medium takes less of it, so b is nearer to 1."""
    plain = build(RadarModel(SPEC)).problem.fields["cpml.x.H.b"].global_array()
    slow = build(RadarModel(SPEC, materials=(WET,), shapes=(Box("wet", (-1, -1), (0.5, 2)),)))
    b = slow.problem.fields["cpml.x.H.b"].global_array()
    np.testing.assert_allclose(np.log(b[:5]), np.log(plain[:5]) / 2, rtol=1e-5)
    np.testing.assert_allclose(b[-6:], plain[-6:], rtol=1e-6)
