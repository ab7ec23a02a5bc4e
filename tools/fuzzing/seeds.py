"""What each reader is given to begin with: files that it can read."""

from __future__ import annotations

import io
import json
import os
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import h5py
import numpy as np
import segyio
import zarr
from PIL import Image

import peergrid
from peergrid import Grid, Problem, Receiver, Simulation
from peergrid.io.checkpoint import write_state
from peergrid.jobs.traces import TraceFiles
from peergrid.models.survey import Trace

CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "benchmarks" / "results" / "profile-h200-x2-quick.json"
GPRMAX = ROOT / "tests" / "gprmax"
WAVES = ("acoustic2d", "acoustic3d", "vti2d", "vti3d", "tti2d", "tti3d")
NODES = (13, 10)  # of acoustic2d.toml
CUBE = (13, 9, 10)  # of vti3d.toml
SURVEY = "a digest"  # of what traces.h5 belongs to
CASES = b"""case_id,object_id,x_m,y_m,z_m,active
a,hertzian_dipole_1,0.012,0.016,0.018,
a,rx_1,0.016,0.018,0.018,
b,hertzian_dipole_1,0.014,0.016,0.02,
b,rx_1,0.018,0.014,0.018,
"""

Seeds = Callable[[], tuple[bytes, ...]]


def files(*names: str) -> Seeds:
    """Files by their names in the repository."""
    return lambda: tuple((ROOT / name).read_bytes() for name in names)


def corpus(*names: str) -> Seeds:
    """Models by their names in the corpus."""
    return lambda: tuple((CORPUS / f"{name}.toml").read_bytes() for name in names)


def given(*contents: bytes) -> Seeds:
    """Contents as they are."""
    return lambda: contents


def npy(values: np.ndarray) -> bytes:
    """An array as a file of NumPy."""
    held = io.BytesIO()
    np.save(held, values)
    return held.getvalue()


def hdf5(values: np.ndarray, name: str = "data") -> bytes:
    """An array in HDF5, compressed."""
    held = io.BytesIO()
    with h5py.File(held, "w") as file:
        file.create_dataset(name, data=values, compression="gzip")
    return held.getvalue()


@cache
def voxels_npy() -> tuple[bytes, ...]:
    return tuple(map(npy, _voxels()))


@cache
def voxels_hdf5() -> tuple[bytes, ...]:
    return tuple(map(hdf5, _voxels()))


def _voxels() -> tuple[np.ndarray, ...]:
    return np.zeros((3, 4), np.uint8), np.ones((2, 2), np.int64), np.zeros((4, 4), ">i2")


def velocities(shape: tuple[int, ...]) -> np.ndarray:
    """Metres per second, more the deeper."""
    return np.broadcast_to(np.linspace(1500.0, 2500.0, shape[-1], dtype=np.float32), shape)


@cache
def velocity_npy() -> tuple[bytes, ...]:
    return npy(velocities(NODES)), npy(np.asfortranarray(velocities(NODES).astype(np.float64)))


@cache
def velocity_hdf5() -> tuple[bytes, ...]:
    return hdf5(velocities(CUBE), "model/v"), hdf5(velocities(CUBE).astype(">f8"), "model/v")


@cache
def velocity_segy() -> tuple[bytes, ...]:
    spec = segyio.spec()
    spec.format, spec.samples, spec.tracecount = 5, list(range(NODES[1])), NODES[0]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "v.segy"
        with segyio.create(str(path), spec) as file:
            file.bin.update({segyio.BinField.Interval: 1000, segyio.BinField.Traces: NODES[0]})
            file.trace.raw[:] = np.ascontiguousarray(velocities(NODES))
        return (path.read_bytes(),)


@cache
def velocity_zarr() -> tuple[bytes, ...]:
    """The description of an array in Zarr whose values are all the same, so that no other file is there."""
    with tempfile.TemporaryDirectory() as folder:
        zarr.create_array(folder, shape=NODES, dtype="float32", fill_value=1500.0)
        return ((Path(folder) / "zarr.json").read_bytes(),)


@cache
def images() -> tuple[bytes, ...]:
    found = []
    for kind, form in ((np.uint8, "PNG"), (np.uint16, "PNG"), (np.uint8, "TIFF"), (np.uint16, "TIFF")):
        held = io.BytesIO()
        Image.fromarray(np.arange(24, dtype=kind).reshape(4, 6)).save(held, format=form)
        found.append(held.getvalue())
    return tuple(found)


@cache
def profiles() -> tuple[bytes, ...]:
    whole = json.loads(RECORDED.read_text())
    whole["probes"] = whole["probes"][:3]
    return (json.dumps(whole).encode(),)


@cache
def checkpoints() -> tuple[bytes, ...]:
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


@cache
def kept_traces() -> tuple[bytes, ...]:
    """A trace of a survey, kept by a run that was ended."""
    trace = Trace(((1.0, 2.0),), ((3.0, 2.0),), np.zeros((1, 8)), {"pattern": np.ones(4)})
    with tempfile.TemporaryDirectory() as folder:
        kept = TraceFiles(Path(folder), SURVEY, 1)
        kept.write(0, trace)
        return (kept.path(0).read_bytes(),)


@cache
def farms() -> tuple[bytes, ...]:
    """What a farm says of itself."""
    return (json.dumps({"command": ["true", "{}"], "inputs": ["a", "b"]}, indent=1).encode(),)


SAMPLES = given(b"time,value\n0.0,0.0\n1e-10,1.5\n2e-10,-1.0\n3e-10,0.0\n", b"0,1\n1,0\n")
LINES = given(
    b"plan\nmodel.toml\n--devices\ncpu:2\n--json",
    b"run\nmodel.toml\n--no-write\n--devices\ncpu:3\n--strategy\npeer\n--depth\n2\n--steps\n5",
    b"run\nmodel.toml\n--output\nout\n--checkpoint\n3steps\n--resume\n--split\n2x1",
    b"trace\nmodel.toml\n--steps\n4\n-o\nout/trace.json",
    b"source\nmodel.toml\n--target\ncpu",
    b"report\nprofile.json\n-o\nout.html",
    b"plan\nacoustic2d.toml\n--devices\ncpu:1\n--picture\nout.png",
    b"run\nacoustic2d.toml\n-o\nout\n--devices\ncpu:1\n--resume\n--steps\n3",
    b"convert\nbar.in\n-o\nout.toml",
    b"image\ngrey.png\nmax(x - 20, 0) * 1.2\n-o\nout.png",
    b"verify\nmodel.toml\n--devices\ncpu:2\n--strategy\npeer\n--depth\n1",
    b"docs\nwaves",
    b"plan\nmodel.toml\n--machine\nh200-x8\n--gpus\n2\n--nodes\n2\n--network\n2e-6,2.5e10\n--timeline\nout/t.json",
    b"plan\nmodel.toml\n--machine\nprofile.json\n--json\n--order\nall\n--route\ncopy",
    b"plan\nspace.toml\n--picture\nout.pdf",
    b"probe\n--profile\nprofile.json\n--compare\nprofile.json\n--json",
)
