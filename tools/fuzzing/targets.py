"""The readers that are given mutated files, each with the files that it can read."""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import h5py
import numpy as np

import peergrid
from peergrid import Grid, Problem, Receiver, Simulation
from peergrid.cli import main
from peergrid.gprmax import read as read_input
from peergrid.io.checkpoint import read_state, write_state
from peergrid.models import Model
from peergrid.models.fdtd import build
from peergrid.models.modelfile import parse, read
from peergrid.models.waveforms import read_samples
from peergrid.probe import profile
from peergrid.report import page

CORPUS = Path(__file__).parent / "corpus"
RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "profile-h200-x2-quick.json"
GRID = "[grid]\nsize = [0.4, 0.3]\nspacing = 0.01\nsteps = 2\n"
VOXELS = GRID + '[[shape]]\nkind = "voxels"\nmaterials = ["vacuum", "conductor"]\nfile = '
GPRMAX = Path(__file__).parents[2] / "tests" / "gprmax"
CELLS = """#domain: 0.02 0.02 0.02
#dx_dy_dz: 0.001 0.001 0.001
#time_window: 9
#pml_cells: 0
#material_from_database: part_materials material_003_clay loam
#geometry_objects_read: 0.002 0.003 0.004 part.h5 part_materials
"""
MOST = 128 << 20  # bytes that a model may need to be built here
EXITS = {0, 2, 3, 4}  # of the command line on files that nobody meant


@dataclass(frozen=True)
class Target:
    """A reader: takes a folder with a file of that name; seeds: contents to begin with."""

    name: str
    file: str
    seeds: Callable[[], tuple[bytes, ...]]
    take: Callable[[Path], None]


def take_model(path: Path) -> None:
    """As `peergrid run` does before it runs, where the model is small enough to be built often."""
    model = read(path)
    if _small(model):
        model.build()


def take_input(path: Path) -> None:
    """An input file of gprMax, as far as a run builds it where it is small."""
    model = read_input(path)
    needed = model.memory(computing=True, writing=False)
    if needed.cells + needed.records < MOST:
        model.build()


def take_cells(path: Path) -> None:
    """A file of gprMax's cells, or the database of its media, in a model that inserts them."""
    for name in ("part.h5", "part_materials.json"):
        if name != path.name:
            shutil.copy(GPRMAX / name, path.parent)
    (path.parent / "cells.in").write_text(CELLS)
    take_input(path.parent / "cells.in")


def take_npy(path: Path) -> None:
    build(parse(VOXELS + '"cells.npy"', path.parent))


def take_hdf5(path: Path) -> None:
    build(parse(VOXELS + '"cells.h5"', path.parent))


def take_samples(path: Path) -> None:
    read_samples(path)


def take_profile(path: Path) -> None:
    page(profile.read(path))


def take_checkpoint(path: Path) -> None:
    read_state(path)


def take_run(path: Path) -> None:
    """The whole command in this process: only codes that it may end with, and nothing outside its folder."""
    try:
        if not _small(read(path)) or read(path).memory(computing=True, writing=False).steps > 200:
            return
    except peergrid.PeergridError:
        pass
    before = set(os.listdir(path.parent))
    _command(path, ["run", path.name, "-o", "out"])
    if left := set(os.listdir(path.parent)) - before - {"out"}:
        raise AssertionError(f"files outside the folder of the results: {sorted(left)}")


def take_line(path: Path) -> None:
    """The words of a command line, one a line, beside a model."""
    words = path.read_bytes().replace(b"\0", b"").decode("utf-8", "replace").splitlines()[:12]
    _command(path, [word for word in words if not word.startswith("--devices=cuda")])


def _command(path: Path, words: list[str]) -> None:
    said = io.StringIO()
    given, sys.argv = sys.argv, ["peergrid", *words]
    code: object = 0
    try:
        with chdir(path.parent), redirect_stderr(said), redirect_stdout(io.StringIO()):
            main()
    except SystemExit as done:
        code = done.code or 0
    finally:
        sys.argv = given
    if code not in EXITS:
        raise AssertionError(f"exit code {code}: {said.getvalue()[-500:]}")
    if "Traceback" in said.getvalue():
        raise AssertionError(said.getvalue()[-2000:])


def _small(model: Model) -> bool:
    needed = model.memory(computing=True, writing=True)
    return needed.cells < MOST and needed.records < MOST and needed.steps < 20_000


@cache
def _models() -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(CORPUS.glob("*.toml")))


def _plane() -> tuple[bytes, ...]:
    return ((CORPUS / "model.toml").read_bytes(),)


def _arrays(write: Callable[[io.BytesIO, np.ndarray], None]) -> tuple[bytes, ...]:
    found = []
    for values in (np.zeros((3, 4), np.uint8), np.ones((2, 2), np.int64), np.zeros((4, 4), ">i2")):
        held = io.BytesIO()
        write(held, values)
        found.append(held.getvalue())
    return tuple(found)


@cache
def _npy() -> tuple[bytes, ...]:
    return _arrays(lambda held, values: np.save(held, values))


@cache
def _hdf5() -> tuple[bytes, ...]:
    def write(held: io.BytesIO, values: np.ndarray) -> None:
        with h5py.File(held, "w") as file:
            file.create_dataset("data", data=values, compression="gzip")

    return _arrays(write)


@cache
def _profiles() -> tuple[bytes, ...]:
    whole = json.loads(RECORDED.read_text())
    whole["probes"] = whole["probes"][:3]
    return (json.dumps(whole).encode(),)


@cache
def _checkpoints() -> tuple[bytes, ...]:
    @peergrid.stencil
    def halve(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = 0.5 * u[0, 0]

    problem = Problem.of(halve(Grid((8, 6)).field("u", 1.0)), [Receiver("r", "u", (1, 1))])
    with Simulation(problem, 4, devices="cpu:1", kernel="reference") as simulation:
        simulation.run(2)
        path = CORPUS.parent / f".{os.getpid()}.h5"
        write_state(path, simulation.state())
    try:
        return (path.read_bytes(),)
    finally:
        path.unlink()


def _samples() -> tuple[bytes, ...]:
    return b"time,value\n0.0,0.0\n1e-10,1.5\n2e-10,-1.0\n3e-10,0.0\n", b"0,1\n1,0\n"


def _lines() -> tuple[bytes, ...]:
    return (
        b"plan\nmodel.toml\n--devices\ncpu:2\n--json",
        b"run\nmodel.toml\n--no-write\n--devices\ncpu:3\n--strategy\npeer\n--depth\n2\n--steps\n5",
        b"run\nmodel.toml\n--output\nout\n--checkpoint\n3steps\n--resume\n--split\n2x1",
        b"trace\nmodel.toml\n--steps\n4\n-o\nout/trace.json",
        b"source\nmodel.toml\n--target\ncpu",
        b"report\nprofile.json\n-o\nout.html",
    )


def _inputs() -> tuple[bytes, ...]:
    root = Path(__file__).parents[2]
    files = ("examples/bar.in", "tests/gprmax/objects.in", "tests/gprmax/soils.in", "tools/fuzzing/corpus/waves.in")
    return tuple((root / name).read_bytes() for name in files)


def _from_gprmax(name: str) -> Callable[[], tuple[bytes, ...]]:
    return lambda: ((GPRMAX / name).read_bytes(),)


TARGETS = (
    Target("model", "model.toml", _models, take_model),
    Target("gprmax", "model.in", _inputs, take_input),
    Target("gprmax cells", "part.h5", _from_gprmax("part.h5"), take_cells),
    Target("gprmax media", "part_materials.json", _from_gprmax("part_materials.json"), take_cells),
    Target("npy", "cells.npy", _npy, take_npy),
    Target("hdf5", "cells.h5", _hdf5, take_hdf5),
    Target("samples", "samples.csv", _samples, take_samples),
    Target("profile", "profile.json", _profiles, take_profile),
    Target("checkpoint", "state.h5", _checkpoints, take_checkpoint),
    Target("run", "model.toml", _plane, take_run),
    Target("command line", "words", _lines, take_line),
)
