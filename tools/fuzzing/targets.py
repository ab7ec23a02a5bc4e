"""The readers that are given mutated files, each with the files that it can read."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import peergrid
from fuzzing import seeds
from fuzzing.seeds import GPRMAX, SURVEY, Seeds
from peergrid import images
from peergrid.cli import main
from peergrid.farm import FarmFolder
from peergrid.farm.jobs import Job
from peergrid.gprmax import read as read_input
from peergrid.images.formula import parse as parse_formula
from peergrid.io.checkpoint import read_state
from peergrid.jobs.traces import TraceFiles
from peergrid.models import ForeignModel, Model
from peergrid.models.fdtd import build
from peergrid.models.modelfile import parse, read
from peergrid.models.survey import surveyed
from peergrid.models.survey import traces as traces_of
from peergrid.models.waveforms import read_samples
from peergrid.probe import profile
from peergrid.report import page

GRID = "[grid]\nsize = [0.4, 0.3]\nspacing = 0.01\nsteps = 2\n"
VOXELS = GRID + '[[shape]]\nkind = "voxels"\nmaterials = ["vacuum", "conductor"]\nfile = '
CELLS = """#domain: 0.02 0.02 0.02
#dx_dy_dz: 0.001 0.001 0.001
#time_window: 9
#pml_cells: 0
#material_from_database: part_materials material_003_clay loam
#geometry_objects_read: 0.002 0.003 0.004 part.h5 part_materials
"""
BEGINNING = """#domain: 0.04 0.036 0.032
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 41
#pml_cells: 4
#hertzian_dipole: y 0.012 0.016 0.018 pulse
#rx: 0.016 0.018 0.018
"""
STUDY = BEGINNING + "#waveform: ricker 1 1.5e9 pulse\n#study: gpr cases.csv\n"
EXCITED = BEGINNING + "#excitation_file: pulse.txt\n"
MOST = 128 << 20  # bytes that a model may need to be built here
EXITS = {0, 2, 3, 4}  # of the command line on files that nobody meant


@dataclass(frozen=True)
class Target:
    """A reader: takes a folder with a file of that name; seeds: contents to begin with."""

    name: str
    file: str
    seeds: Seeds
    take: Callable[[Path], None]


def take_model(path: Path) -> None:
    """As `peergrid run` does before it runs, where the model is small enough to be built often."""
    model = read(path)
    if not _small(model):
        return
    model.build()
    if (survey := surveyed(model)) is not None and _small(last := list(traces_of(survey))[-1]):
        last.build()


def take_input(path: Path) -> None:
    """An input file of gprMax, as far as a run builds it where it is small; and as a model file."""
    model = read_input(path)
    needed = model.memory(computing=True, writing=False)
    if needed.cells + needed.records < MOST:
        model.build()
    assert isinstance(model, ForeignModel)
    text, _ = model.written(path.parent)
    try:
        parse(text, path.parent)
    except peergrid.PeergridError as error:
        raise AssertionError(f"the model file of it is refused: {error}\n{text}") from None


def take_cells(path: Path) -> None:
    """A file of gprMax's cells, or the database of its media, in a model that inserts them."""
    for name in ("part.h5", "part_materials.json"):
        if name != path.name:
            shutil.copy(GPRMAX / name, path.parent)
    _take_text(path, CELLS)


def take_cases(path: Path) -> None:
    """The table of the cases of a study."""
    _take_text(path, STUDY)


def take_excitation(path: Path) -> None:
    """The waveform of a dipole as columns of numbers."""
    _take_text(path, EXCITED)


def _take_text(path: Path, text: str) -> None:
    (path.parent / "model.in").write_text(text)
    take_input(path.parent / "model.in")


def take_npy(path: Path) -> None:
    build(parse(VOXELS + '"cells.npy"', path.parent))


def take_hdf5(path: Path) -> None:
    build(parse(VOXELS + '"cells.h5"', path.parent))


def take_velocity(path: Path) -> None:
    """A parameter of a seismic medium, in the file that the model of the corpus names."""
    if path.name == "zarr.json":
        (path.parent / "v.zarr").mkdir()
        path = path.rename(path.parent / "v.zarr" / path.name).parent
    model = "vti3d.toml" if path.name == "cube.h5" else "acoustic2d.toml"
    text = (path.parent / model).read_text().replace("velocity.npy", path.name)
    parse(text, path.parent).build()


def take_samples(path: Path) -> None:
    read_samples(path)


def take_profile(path: Path) -> None:
    page(profile.read(path))


def take_checkpoint(path: Path) -> None:
    read_state(path)


def take_trace(path: Path) -> None:
    """A trace of a survey that goes on: one that is whole is read again for the merged file."""
    kept = TraceFiles(path.parent, SURVEY, 1)
    for number in kept.done():
        kept[number]


def take_farm(path: Path) -> None:
    """What a farm that goes on reads of the earlier one."""
    shutil.copy(path, path.parent / "1.exit")
    shutil.copy(path, path.parent / "journal.jsonl")
    folder = FarmFolder(path.parent)
    folder.left([Job(1, "a", ("true",))])
    earlier = folder.earlier()
    assert earlier is not None, "no farm"
    assert all(isinstance(word, str) for words in earlier.values() for word in words), "words that are none"


def take_image(path: Path) -> None:
    images.read(path)


def take_formula(path: Path) -> None:
    """The text of a formula, and the value that it has for a number."""
    formula = parse_formula(path.read_bytes().decode("utf-8", "replace"))

    @peergrid.stencil
    def pixel(x):  # type: ignore[no-untyped-def]
        x.next[0] = formula(x[0])

    peergrid.Problem.of(pixel(peergrid.Grid((4,)).field("x", 1.0)))


def take_run(path: Path) -> None:
    """The whole command in this process: only codes that it may end with, and nothing outside its folder."""
    try:
        model = read(path)
        if not _small(model) or model.memory(computing=True, writing=False).steps > 200:
            return
    except peergrid.PeergridError:
        pass
    _command(path, ["run", path.name, "-o", "out", "--devices", "cpu:2"])


def take_line(path: Path) -> None:
    """The words of a command line, one a line, beside models."""
    shutil.copy(seeds.ROOT / "examples" / "bar.in", path.parent)
    (path.parent / "grey.png").write_bytes(seeds.images()[0])
    words = path.read_bytes().replace(b"\0", b"").decode("utf-8", "replace").splitlines()[:12]
    _command(path, [word for word in words if not word.startswith("--devices=cuda")])


def _command(path: Path, words: list[str]) -> None:
    before = set(os.listdir(path.parent))
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
    named = {Path(word).parts[0] for option, word in pairwise(words) if option in ("-o", "--output") and word}
    left = set(os.listdir(path.parent)) - before - {"out"} - named
    if words[:1] == ["run"] and "-o" in words and left:
        raise AssertionError(f"files outside the folder of the results: {sorted(left)}")


def _small(model: Model) -> bool:
    needed = model.memory(computing=True, writing=True)
    return needed.cells < MOST and needed.records < MOST and needed.steps < 20_000


INPUTS = seeds.files(
    "examples/bar.in", "tests/gprmax/objects.in", "tests/gprmax/soils.in", "tools/fuzzing/corpus/waves.in"
)

TARGETS = (
    Target("model", "model.toml", seeds.corpus("model"), take_model),
    Target("fdtd3d", "space.toml", seeds.corpus("space"), take_model),
    Target("seismic", "waves.toml", seeds.corpus(*seeds.WAVES), take_model),
    Target("gprmax", "model.in", INPUTS, take_input),
    Target("gprmax cells", "part.h5", seeds.files("tests/gprmax/part.h5"), take_cells),
    Target("gprmax media", "part_materials.json", seeds.files("tests/gprmax/part_materials.json"), take_cells),
    Target("gprmax cases", "cases.csv", seeds.given(seeds.CASES), take_cases),
    Target("gprmax excitation", "pulse.txt", seeds.given(b"time pulse\n0 0\n1e-11 1\n2e-11 0\n"), take_excitation),
    Target("npy", "cells.npy", seeds.voxels_npy, take_npy),
    Target("hdf5", "cells.h5", seeds.voxels_hdf5, take_hdf5),
    Target("velocity npy", "velocity.npy", seeds.velocity_npy, take_velocity),
    Target("velocity hdf5", "cube.h5", seeds.velocity_hdf5, take_velocity),
    Target("velocity segy", "v.segy", seeds.velocity_segy, take_velocity),
    Target("velocity zarr", "zarr.json", seeds.velocity_zarr, take_velocity),
    Target("samples", "samples.csv", seeds.SAMPLES, take_samples),
    Target("profile", "profile.json", seeds.profiles, take_profile),
    Target("checkpoint", "state.h5", seeds.checkpoints, take_checkpoint),
    Target("trace", "trace-000000.h5", seeds.kept_traces, take_trace),
    Target("farm", "farm.json", seeds.farms, take_farm),
    Target("image", "grey.png", seeds.images, take_image),
    Target("formula", "formula", seeds.given(b"x / 3", b"max(x - 20, 0) * 1.2 + sqrt(abs(-x))"), take_formula),
    Target("run", "model.toml", seeds.corpus("model"), take_run),
    Target("run fdtd3d", "model.toml", seeds.corpus("space"), take_run),
    Target("run seismic", "model.toml", seeds.corpus("acoustic2d"), take_run),
    Target("command line", "words", seeds.LINES, take_line),
)
