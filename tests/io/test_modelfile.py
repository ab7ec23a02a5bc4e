"""Model files that are right: every key arrives, and every key is documented."""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import h5py
import numpy as np
import pytest

from peergrid.gprmax.tables import Tables
from peergrid.io.schema import keys
from peergrid.models import Head, RunSpec
from peergrid.models.fdtd import RadarModel, build
from peergrid.models.fdtd.materials import Material
from peergrid.models.fdtd.model import (
    Absorber,
    GridSpec,
    LineSource,
    Output,
    PlaneWave,
    ReceiverArray,
    ReceiverSpec,
)
from peergrid.models.fdtd.shapes import Box, Cylinder, Ellipse, Layer, Polygon, Triangle, Voxels
from peergrid.models.modelfile import parse, read
from peergrid.models.waveforms import Gaussian, Ricker, Samples, Sine

ROOT = Path(__file__).parents[2]

EVERYTHING = """
[model]
title = "all"
kind = "fdtd2d"
[grid]
size = [1, 0.5]
spacing = [0.01, 0.005]
steps = 12
courant = 0.5
dtype = "float64"
background = "sand"
periodic = ["y"]
allow_underresolved = true
[[material]]
name = "sand"
permittivity = 4
conductivity = 0.01
permeability = 1.5
[[shape]]
kind = "box"
material = "vacuum"
lower = [0, 0]
upper = [1, 0.2]
[[shape]]
kind = "cylinder"
material = "sand"
centre = [0.5, 0.1]
radius = 0.05
[[shape]]
kind = "ellipse"
material = "sand"
centre = [0.5, 0.1]
radii = [0.05, 0.1]
angle = 30
[[shape]]
kind = "triangle"
material = "sand"
vertices = [[0, 0], [1, 0], [0, 1]]
[[shape]]
kind = "polygon"
material = "sand"
vertices = [[0, 0], [1, 0], [1, 1], [0, 1]]
[[shape]]
kind = "layer"
material = "sand"
axis = "x"
bottom = 0
top = 0.3
roughness = 0.01
correlation = 0.2
seed = 3
[[shape]]
kind = "voxels"
file = "grain.h5"
dataset = "grains"
origin = [0.1, 0.1]
materials = ["vacuum", "sand"]
[[source]]
kind = "line"
position = [0.5, 0.25]
waveform = { kind = "ricker", frequency = 5e8, amplitude = 2, delay = 1e-9 }
[[source]]
kind = "plane_wave"
direction = "-x"
position = 0.5
waveform = { kind = "gaussian", frequency = 5e8, derivative = 1 }
[[source]]
kind = "line"
position = [0.4, 0.25]
waveform = { kind = "sine", frequency = 5e8, ramp = 2 }
[[source]]
kind = "line"
position = [0.4, 0.2]
waveform = { kind = "samples", file = "pulse.csv" }
[[receiver]]
name = "a"
position = [0.5, 0.3]
fields = ["Ez", "Hx"]
[[receiver_array]]
name = "b"
first = [0.2, 0.3]
last = [0.8, 0.3]
count = 3
fields = ["Hy"]
[absorber]
cells = 8
sides = ["x+"]
order = 4
strength = 0.9
kappa = 3
alpha = 0.05
[output]
snapshots = 4
fields = ["Ez", "Hy"]
stride = 2
pictures = false
animation = "mp4"
width = 320
[run]
devices = "cpu:2"
strategy = "overlap"
depth = 3
exchange = "pairwise"
route = "host"
check_every = 7
"""

EXPECTED = RadarModel(
    model=Head("all"),
    grid=GridSpec((1.0, 0.5), (0.01, 0.005), None, 12, 0.5, "float64", "sand", ("y",), True),
    materials=(Material("sand", 4.0, 0.01, 1.5),),
    shapes=(
        Box("vacuum", (0.0, 0.0), (1.0, 0.2)),
        Cylinder("sand", (0.5, 0.1), 0.05),
        Ellipse("sand", (0.5, 0.1), (0.05, 0.1), 30.0),
        Triangle("sand", ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))),
        Polygon("sand", ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))),
        Layer("sand", 0.0, 0.3, "x", 0.01, 0.2, 3),
        Voxels("folder/grain.h5", ("vacuum", "sand"), "grains", (0.1, 0.1)),
    ),
    sources=(
        LineSource((0.5, 0.25), Ricker(5e8, 2.0, 1e-9)),
        PlaneWave("-x", 0.5, Gaussian(5e8, 1)),
        LineSource((0.4, 0.25), Sine(5e8, 2.0)),
        LineSource((0.4, 0.2), Samples("folder/pulse.csv")),
    ),
    receivers=(ReceiverSpec((0.5, 0.3), "a", ("Ez", "Hx")),),
    receiver_arrays=(ReceiverArray((0.2, 0.3), (0.8, 0.3), 3, "b", ("Hy",)),),
    absorber=Absorber(8, ("x+",), 4.0, 0.9, 3.0, 0.05),
    output=Output(4, ("Ez", "Hy"), 2, False, animation="mp4", width=320),
    run=RunSpec("cpu:2", "overlap", 3, "pairwise", "host", 7),
)


def test_every_key_arrives_in_its_dataclass() -> None:
    model = parse(EVERYTHING, Path("folder"))
    assert model == EXPECTED
    assert isinstance(model.grid.size[0], float), "a whole number is a number too"


def test_a_short_file_has_the_documented_defaults() -> None:
    model = parse("[grid]\nsize = [1, 1]\nspacing = 0.1\nsteps = 1\nperiodic = ['y']\n[absorber]\ncells = 2\n")
    assert model == RadarModel(
        GridSpec((1.0, 1.0), 0.1, steps=1, periodic=("y",)), absorber=Absorber(cells=2), output=Output(), run=RunSpec()
    )
    assert model.absorbing == ("x-", "x+"), "all sides that are not periodic absorb"


def dataclasses_in(hint: Any) -> Iterator[Any]:
    """Every dataclass that a type hint reaches."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint
        inner = get_type_hints(hint, include_extras=True)
        for one in keys(hint).values():
            yield from dataclasses_in(inner[one.name])
    elif get_origin(hint) in (Annotated, tuple, typing.Union, types.UnionType):
        for inner in get_args(hint):
            yield from dataclasses_in(inner)


@pytest.mark.parametrize(
    "kind", sorted({*dataclasses_in(RadarModel), *dataclasses_in(Tables)}, key=lambda k: k.__name__)
)
def test_every_key_is_documented(kind: Any) -> None:
    """docs/model-files.md has each key in back quotes, and each kind as it is written."""
    page = (ROOT / "docs" / "model-files.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z_]+)`", page)) | set(re.findall(r"`\[+([a-z_]+)\]+`", page))
    assert set(keys(kind)) <= documented
    if hasattr(kind, "kind"):
        assert f'`kind = "{kind.kind}"`' in page


def test_every_example_of_the_documentation_is_a_model() -> None:
    page = (ROOT / "docs" / "model-files.md").read_text(encoding="utf-8")
    examples = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert examples
    for example in examples:
        parse(example)


def test_the_radar_example_is_a_model_without_warnings() -> None:
    built = build(read(ROOT / "examples" / "gpr.toml"))
    assert built.warnings == ()
    assert built.geometry.cells.shape == (1200, 600)
    assert {m.name for m in built.geometry.used} == {"vacuum", "conductor", "damp sand", "PVC"}
    assert built.steps * built.dt == pytest.approx(18e-9, rel=1e-3)
    assert [r.name for r in built.recorders][:2] == ["beside", "line-1"]
    assert np.hypot(*np.subtract(built.recorders[0].position, built.emitters[0].position)) < 0.1


def test_the_mark_that_some_editors_put_in_front_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "marked.toml"
    file.write_text("[grid]\nsize = [1.0, 0.5]\nspacing = 0.01\nsteps = 10\n", encoding="utf-8-sig")
    assert read(file).grid.steps == 10


SAMPLED = """
[grid]
size = [0.1, 0.1]
spacing = 0.01
steps = 5
[absorber]
cells = 2
[[shape]]
kind = "voxels"
file = "{folder}/cells.npy"
materials = ["conductor"]
[[source]]
kind = "line"
position = [0.05, 0.05]
waveform = {{ kind = "samples", file = "{folder}/pulse.csv" }}
"""
SHOT = """
[model]
kind = "acoustic2d"
[grid]
size = [100.0, 100.0]
spacing = 10.0
steps = 5
[medium]
velocity = {{ file = "{folder}/velocity.npy" }}
[[source]]
position = [50.0, 50.0]
waveform = {{ kind = "ricker", frequency = 10.0 }}
"""
COLUMNS = """
[model]
kind = "fdtd3d"
[grid]
size = [0.04, 0.04, 0.04]
spacing = 0.002
steps = 5
[absorber]
cells = 2
[[shape]]
kind = "voxels"
origin = [0.01, 0.01, 0.01]
file = "{folder}/part.h5"
materials = {{ file = "{folder}/part_materials.json" }}
[[source]]
kind = "electric_dipole"
axis = "z"
position = [0.02, 0.02, 0.02]
waveform = {{ kind = "column", file = "{folder}/pulse.txt", name = "pulse" }}
"""


@pytest.mark.parametrize("text", [SAMPLED, SHOT, COLUMNS], ids=["radar", "waves", "radar in 3D"])
@pytest.mark.parametrize("way", ["../data", "{absolute}", "linked"])
def test_files_may_lie_in_any_folder(text: str, way: str, tmp_path: Path) -> None:
    """Beside the model's folder, by either kind of path or through a link: reading executes nothing."""
    data, own = tmp_path / "data", tmp_path / "own"
    for folder in (data, own):
        folder.mkdir()
    (own / "linked").symlink_to(data)
    np.save(data / "cells.npy", np.zeros((2, 2), np.int32))
    np.save(data / "velocity.npy", np.full((11, 11), 1500.0))
    (data / "pulse.csv").write_text("0,0\n1e-9,1\n2e-9,0\n")
    (data / "pulse.txt").write_text("pulse\n0\n1\n0\n")
    for name in ("part.h5", "part_materials.json"):
        (data / name).write_bytes((ROOT / "tests" / "gprmax" / name).read_bytes())
    with h5py.File(data / "part.h5", "r+") as file:
        file.attrs["dx_dy_dz"] = (0.002, 0.002, 0.002)
    (own / "model.toml").write_text(text.format(folder=way.format(absolute=data)))
    assert read(own / "model.toml").build().steps == 5
