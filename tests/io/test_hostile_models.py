"""Models and files that ask for the impossible are refused in one sentence, soon, and before they take anything."""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from peergrid.errors import UsageError
from peergrid.io.checkpoint import read_state
from peergrid.models.fdtd import build
from peergrid.models.modelfile import parse, read

GRID = """
[grid]
size = [0.4, 0.3]
spacing = 0.01
steps = 20
"""
LINE = '[[source]]\nkind = "line"\nposition = [0.2, 0.15]\nwaveform = '
RICKER = LINE + '{ kind = "ricker", frequency = 1e9 }\n'
SOIL = '[[material]]\nname = "soil"\n'
DISC = '[[shape]]\nkind = "cylinder"\nmaterial = "conductor"\ncentre = [0.1, 0.1]\nradius = '
VOXELS = '[[shape]]\nkind = "voxels"\nmaterials = ["conductor"]\nfile = '
DIGITS = "1" * 4400


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (GRID.replace("0.01", "1e-200"), r"^grid\.spacing is expected to be a positive number or a list"),
        (GRID.replace("0.01", "[1e-9, 1.0]"), "differ by a factor of at most 10000 between the axes"),
        (GRID + RICKER.replace("[0.2, 0.15]", "[1e308, 0.15]"), r"^source\[1\]\.position\[1\] is expected to be "),
        (GRID + RICKER.replace("1e9", "3e306"), "frequency is expected to be a number from 1e-20 to 1e20, got 3e.306"),
        (GRID + RICKER.replace("1e9", "1e-320"), "frequency is expected to be a number from 1e-20 to 1e20"),
        (GRID + RICKER.replace("1e9", "1e9, amplitude = 1e308"), "amplitude is expected to be a number between"),
        (GRID + "[[receiver]]\nposition = [0.1, 1e308]", r"receiver\[1\]\.position\[2\] is expected to be a number"),
        (GRID + DISC + "1e200", r"shape\[1\]\.radius is expected to be a number from 1e-20 to 1e20"),
        (GRID + VOXELS + '"a.npy"\norigin = [1e308, 0.0]', r"shape\[1\]\.origin\[1\] is expected to be a number"),
        (GRID + SOIL + "permittivity = 1e308\npermeability = 1e308", "permittivity is expected to be a number between"),
        (GRID + "[run]\ndepth = " + DIGITS, "numbers that can be read, got one of thousands of digits"),
        (GRID + "[run]\ndepth = 0x" + DIGITS, r"run\.depth .* got a whole number of more than 60 digits"),
        (GRID + '[run]\ndevices = "cpu:' + DIGITS + '"', r"run\.devices is expected to be text of at most 100"),
        (GRID + "[output]\nstride = 0x" + "f" * 400, r"output\.stride is expected to be a whole number below 1e18"),
        (GRID + "[output]\nfields = " + "[" * 900 + "]" * 900, "some nested too deep"),
        (GRID + "a." * 3000 + "b = 1", "some nested too deep"),
        (GRID + '[model]\ntitle = "\\u0000"', r"model\.title is expected to be text without control characters"),
        (GRID + '[model]\ntitle = "\\u001b[31m"', r"control characters, got '\\x1b\[31m'"),
        (GRID + '[model]\ntitle = "' + "x" * 300 + '"', r"model\.title is expected to be text of at most 100"),
        (GRID + '[[receiver]]\nposition = [0.1, 0.1]\nname = "a\\nb"', "name is expected to be text without control"),
        (GRID + '"a\\u0007" = 1', r"grid\.a\\x07 is no known key"),
        (GRID + "[[receiver_array]]\nfirst = [0.1, 0.1]\nlast = [0.2, 0.1]\ncount = 1000000000", "at most 100,000 rec"),
        (GRID + "".join(f'[[material]]\nname = "m{n}"\n' for n in range(10_001)), "material is expected to be at most"),
        (
            GRID.replace("steps = 20", 'steps = 1000000\nperiodic = ["x"]')
            + RICKER.replace('"line"\nposition = [0.2, 0.15]', '"plane_wave"\ndirection = "+y"\nposition = 0.15'),
            r"grid\.steps is expected to be at most 500,000 with a plane wave, got 1,000,000; make the run shorter",
        ),
        (
            GRID.replace("0.4, 0.3", "0.3, 200.0") + '[output]\nsnapshots = 5\nanimation = "gif"',
            r"output\.width is expected to give an animation of at most 8,000 pixels upwards, got 480,000; use",
        ),
    ],
)  # fmt: skip
def test_a_model_that_cannot_mean_anything(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as caught:
        build(parse(text))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600


def csv(text: str) -> Callable[[Path], None]:
    return lambda path: path.write_text(text) and None


def npy(header: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header) and None


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        held = io.BytesIO()
        np.save(held, np.zeros((3, 3), np.int32))
        archive.writestr("a.npy", held.getvalue())


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (csv("0,0\n1e-12,1\n1e-3,0\n"), "of their shortest distance in all, got 1e.09; leave out"),
        (csv("0,1e308\n1e-9,-1e308\n"), "got numbers above 1e20"),
        (csv("0,\x1b[31mred\n"), r"got 0 of at least two lines"),
        (os.mkfifo, "cannot be read: it is no plain file"),
        (lambda path: path.symlink_to("/dev/zero"), "cannot be read: it is no plain file"),
        (lambda path: path.mkdir(), "cannot be read: it is a folder"),
    ],
)  # fmt: skip
def test_samples_that_cannot_be_used(tmp_path: Path, write: Callable[[Path], None], sentence: str) -> None:
    write(tmp_path / "samples.csv")
    with pytest.raises(UsageError, match=sentence):
        build(parse(GRID + LINE + '{ kind = "samples", file = "samples.csv" }', tmp_path))


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (zipped, "an archive of several arrays"),
        (lambda path: np.save(path, np.zeros((3, 3), "m8[s]")), r"holds 2 dimensions of timedelta64"),
        (npy(b"{'descr': '<i4', 'fortran_order': False, 'shape': (999999, 999999), }\n"), "readable .npy or HDF5 file"),
        (npy(b"{'descr': '<i4', 'fortran_order': False, 'shape': (3, 3\n"), "readable .npy or HDF5 file"),
        (npy(b"((((" * 50 + b"\n"), "readable .npy or HDF5 file"),
        (lambda path: np.save(path, np.zeros((50, 3), np.int32)), "inside the grid of 40 by 30 cells, its cells reach"),
        (lambda path: np.save(path, np.array([[None]]), allow_pickle=True), "readable .npy or HDF5 file"),
        (os.mkfifo, "it is no plain file"),
        (lambda path: path.symlink_to("/dev/urandom"), "it is no plain file"),
    ],
)  # fmt: skip
def test_arrays_that_cannot_be_used(tmp_path: Path, write: Callable[[Path], None], sentence: str) -> None:
    write(tmp_path / "cells.npy")
    with pytest.raises(UsageError, match=sentence):
        build(parse(GRID + VOXELS + '"cells.npy"', tmp_path))


def external_values(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file.create_dataset("data", (4, 4), "i1", external=[("/etc/passwd", 0, h5py.h5f.UNLIMITED)])


def external_link(path: Path) -> None:
    with h5py.File(path.with_name("other.h5"), "w") as file:
        file["data"] = np.zeros((4, 4), np.int8)
    with h5py.File(path, "w") as file:
        file["data"] = h5py.ExternalLink("other.h5", "/data")


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    with h5py.File(path, "w") as file:
        file["there"] = h5py.ExternalLink("pipe", "/data")
        file["data"] = h5py.SoftLink("/there")


def virtual(path: Path) -> None:
    layout = h5py.VirtualLayout((4, 4), "i1")
    layout[:] = h5py.VirtualSource(".", "data", shape=(4, 4))  # itself: libhdf5 would go round until the stack ends
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("data", layout)


def written(value: object, **options: object) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("data", data=value, **options)

    return write


def cyclic(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["data"] = h5py.SoftLink("/data")


def unwritten(path: Path) -> None:
    """A file of some kilobytes whose array has a million million values."""
    with h5py.File(path, "w") as file:
        file.create_dataset("data", (1_000_000, 1_000_000), "i8", chunks=(100, 100))


@pytest.mark.parametrize(
    ("write", "sentence"),
    [
        (external_values, "its values lie in another file"),
        (external_link, "its values lie in another file"),
        (link_to_a_pipe, "its values lie in another file"),
        (virtual, "its values lie in another file"),
        (written(h5py.Empty("i4")), "it holds no values"),
        (cyclic, "readable .npy or HDF5 file|name an array"),
        (unwritten, "inside the grid of 40 by 30 cells, .* holds 1000000 by 1000000"),
        (written(np.zeros((4, 4))), "holds 2 dimensions of float64"),
    ],
)  # fmt: skip
def test_hdf5_that_cannot_be_used(tmp_path: Path, write: Callable[[Path], None], sentence: str) -> None:
    write(tmp_path / "cells.h5")
    with pytest.raises(UsageError, match=sentence):
        build(parse(GRID + VOXELS + '"cells.h5"', tmp_path))


@pytest.mark.parametrize("write", [external_values, external_link, link_to_a_pipe, virtual])
def test_a_checkpoint_whose_values_lie_elsewhere(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "state.h5")
    with pytest.raises(UsageError, match="expected to be a checkpoint, got its values lie in another file"):
        read_state(tmp_path / "state.h5")


def test_a_checkpoint_that_is_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "state.h5")
    with pytest.raises(UsageError, match="expected to be a checkpoint, got it is no plain file"):
        read_state(tmp_path / "state.h5")


@pytest.mark.parametrize("place", ["/dev/zero", "pipe", "large"])
def test_a_model_that_is_no_plain_file(tmp_path: Path, place: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 34)
    with pytest.raises(UsageError, match=r"expected at '.*', got: it (is no plain file|has 17,179,869,184)"):
        read(tmp_path / place)
