"""Result files: gprMax's layout, SI units, whole or not there at all; snapshots by a thread."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import textwrap
from dataclasses import replace
from itertools import count
from pathlib import Path

import h5py
import numpy as np
import pytest

from full_disk import room
from peergrid.errors import UsageError
from peergrid.files import replacing
from peergrid.io.snapshots import Scale, SnapshotParts, SnapshotWriter, read_snapshots
from peergrid.jobs.recording import scale_of
from peergrid.models import Head
from peergrid.models.fdtd import Built, build
from peergrid.models.fdtd.constants import ETA_0
from peergrid.models.fdtd.materials import Material
from peergrid.models.fdtd.model import (
    GridSpec,
    LineSource,
    Output,
    RadarModel,
    ReceiverArray,
    ReceiverSpec,
)
from peergrid.models.fdtd.results import write_results
from peergrid.models.fdtd.shapes import Box
from peergrid.models.waveforms import Ricker


@pytest.fixture(scope="module")
def built() -> Built:
    return build(
        RadarModel(
            GridSpec((0.4, 0.3), 0.01, steps=5),
            model=Head("small"),
            shapes=(Box("conductor", (0.0, 0.0), (0.4, 0.1)),),
            sources=(LineSource((0.2, 0.15), Ricker(5e8)),),
            receivers=(ReceiverSpec((0.25, 0.15), "near", ("Ez", "Hy")),),
            receiver_arrays=(ReceiverArray((0.1, 0.15), (0.3, 0.15), 2, "line"),),
            output=Output(snapshots=2, stride=2),
        )
    )


def traces(built: Built) -> dict[str, np.ndarray[tuple[int], np.dtype[np.float32]]]:
    names = [name for recorder in built.recorders for name in recorder.traces.values()]
    return {name: np.arange(1, 6, dtype=np.float32) * (k + 1) for k, name in enumerate(names)}


def test_results_without_receivers_have_the_samples_of_the_run(built: Built, tmp_path: Path) -> None:
    bare = replace(built, recorders=())
    write_results(tmp_path / "results.h5", bare, {}, (), {"steps": 5})
    with h5py.File(tmp_path / "results.h5") as file:
        assert file.attrs["Iterations"] == 6
        assert file["srcs/src1/waveform"].shape == (6,)


def test_results_have_the_layout_that_plotting_tools_read(built: Built, tmp_path: Path) -> None:
    """As such a tool does: nrx, dt, Iterations from the attributes, then /rxs/rxN and its components."""
    path = tmp_path / "deep" / "results.h5"
    shape = built.problem.grid.shape
    fields = {"Ez": np.full(shape, 2, np.float32), "Hy": np.full(shape, 3, np.float32), "psi": np.zeros(3)}
    write_results(path, built, traces(built), fields.items(), {"devices": "cpu:2", "steps": 5})
    with h5py.File(path) as file:
        assert file.attrs["Title"] == "small"
        assert file.attrs["nrx"] == 3
        assert file.attrs["nsrc"] == 1
        assert file.attrs["Iterations"] == 6
        assert file.attrs["dt"] == built.dt
        assert tuple(file.attrs["dx_dy_dz"]) == (0.01, 0.01, 0.01)
        assert tuple(file.attrs["nx_ny_nz"]) == (40, 30, 1)
        assert tuple(file.attrs["rxsteps"]) == tuple(file.attrs["srcsteps"]) == (0, 0, 0)
        assert file.attrs["devices"] == "cpu:2"
        assert file["srcs/src1"].attrs["Type"] == "line"
        assert tuple(file["srcs/src1"].attrs["Position"]) == pytest.approx((0.2, 0.15, 0.0))
        assert list(file["rxs"]) == ["rx1", "rx2", "rx3"]
        assert list(file["rxs/rx1"]) == ["Ez", "Hy"]
        assert file["rxs/rx1"].attrs["Name"] == "near"
        assert file["rxs/rx3"].attrs["Name"] == "line-2"
        np.testing.assert_array_equal(file["rxs/rx1/Ez"], [0, 1, 2, 3, 4, 5])
        np.testing.assert_allclose(file["rxs/rx1/Hy"], np.array([0, 2, 4, 6, 8, 10]) / ETA_0, rtol=1e-6)
        assert file["rxs/rx1/Ez"].dtype == np.float32
        assert list(file["fields"]) == ["Ez", "Hy"]
        np.testing.assert_allclose(file["fields/Hy"], 3 / ETA_0, rtol=1e-6)
        assert list(file["geometry/cells"].attrs["materials"]) == ["vacuum", "conductor"]
        np.testing.assert_array_equal(file["geometry/cells"], built.geometry.cells)


def test_a_file_appears_only_when_complete(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    with replacing(path) as partial:
        partial.write_text("new")
        assert not path.exists()
        assert partial.parent == path.parent
    assert path.read_text() == "new"

    def fail_half_way() -> None:
        with replacing(path) as partial:
            partial.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert path.read_text() == "new", "the earlier file is still whole"
    assert os.listdir(tmp_path) == ["result.txt"]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "result.txt"
    with pytest.raises(UsageError) as caught, replacing(path):
        raise AssertionError("the block must not be entered")
    assert str(caught.value).startswith(f"Room to write '{path}' is expected, got: ")
    assert str(caught.value).endswith("; free some space or choose another folder.")


FULL = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from peergrid.errors import UsageError
from peergrid.jobs.recording import scale_of
from peergrid.models.fdtd.results import write_results
from peergrid.io.snapshots import SnapshotWriter
from peergrid.models.fdtd import RadarModel, build
from peergrid.models.fdtd.model import GridSpec

built = build(RadarModel(GridSpec((4.0, 3.0), 0.01, steps=5)))
ez = np.random.default_rng(0).standard_normal(built.problem.grid.shape).astype(np.float32)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
folder = Path(sys.argv[1])
for write in (
    lambda: write_results(folder / "results.h5", built, {}, [("Ez", ez)]),
    lambda: snapshots(),
):
    def snapshots():
        with SnapshotWriter(folder / "snapshots.h5", scale_of(built)) as writer:
            for step in range(20):
                writer.put(step, {"Ez": ez})
    try:
        write()
    except UsageError as error:
        print(error)
"""


@pytest.mark.skipif(
    not hasattr(resource, "RLIMIT_FSIZE"), reason="needs a limit on file sizes to stand for a full disk"
)
def test_a_full_disk_is_one_sentence_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    """A process that may write 100 kB only stands for a full disk: HDF5 sees the same failing writes."""
    command = [sys.executable, "-c", textwrap.dedent(FULL), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.splitlines()
    assert [line.split(" is expected")[0] for line in lines] == [
        f"Room to write '{tmp_path / name}'" for name in ("results.h5", "snapshots.h5")
    ], done.stderr
    assert os.listdir(tmp_path) == []


SCALE = Scale("", 0.5, (1.0, 1.0), {"u": 1.0, "v": 2.0})


def numbered(step: int) -> dict[str, np.ndarray[tuple[int, int], np.dtype[np.float64]]]:
    """Fields that differ from step to step, 9.6 kB each."""
    return {name: np.full((40, 30), step, np.float64) for name in ("u", "v")}


@pytest.mark.parametrize("size", range(10_000, 220_000, 10_487))
def test_a_full_disk_keeps_the_snapshots_that_had_room(tmp_path: Path, size: int) -> None:
    """Wherever the first write fails: within a snapshot, its coordinates, or the metadata of the image."""

    def run() -> None:
        with room(size), SnapshotWriter(tmp_path / "s.h5", SCALE) as writer:
            for step in range(1, 11):
                writer.put(step, numbered(step))

    with pytest.raises(UsageError) as caught:
        run()
    kept = re.fullmatch(r"'(.*)' has the snapshots up to step (\d+) alone: (Room to write .*)", str(caught.value))
    if kept is None:
        assert str(caught.value).startswith("Room to write")
        assert size < 50_000
        assert os.listdir(tmp_path) == []
        return
    assert (kept[1], os.listdir(tmp_path)) == (str(tmp_path / "s.h5"), ["s.h5"])
    last = int(kept[2])
    with read_snapshots(tmp_path / "s.h5") as reader:
        assert reader.steps == tuple(range(1, last + 1))
        for number, step in enumerate(reader.steps):
            assert np.all(reader.frame("u", number) == step)
            assert np.all(reader.frame("v", number) == 2 * step)
    assert last >= size // 20_000 - 2
    with h5py.File(tmp_path / "s.h5") as file:
        assert "VTKHDF" not in file or file["VTKHDF/Steps"].attrs["NSteps"] == last


def test_snapshots_that_had_room_are_merged_with_those_of_earlier_parts(tmp_path: Path) -> None:
    def run() -> None:
        with SnapshotParts(tmp_path / "s.h5", SCALE, tmp_path / "parts", 0, 1) as parts:
            parts.put(1, numbered(1))
            parts.cut(1)
            with room(50_000):
                for step in count(2):
                    parts.put(step, numbered(step))

    with pytest.raises(UsageError, match=r"snapshots-from-0*1.h5' has the snapshots up to step 2 alone: Room to"):
        run()
    with read_snapshots(tmp_path / "s.h5") as reader:
        assert reader.steps == (1, 2)


def test_snapshots_are_written_while_the_run_goes_on(built: Built, tmp_path: Path) -> None:
    path = tmp_path / "snapshots.h5"
    shape = built.problem.grid.shape
    with SnapshotWriter(path, scale_of(built)) as writer:
        for step in range(0, 20, 2):
            writer.put(step, {"Ez": np.full(shape, step, np.float32), "Hy": np.full(shape, step, np.float32)})
            assert not path.exists()
    with read_snapshots(path) as reader:
        assert reader.steps == tuple(range(0, 20, 2))
        assert reader.times == pytest.approx([step * built.dt for step in range(0, 20, 2)])
        assert reader.frame("Ez", 3).shape == (21, 16), "every second node"
        np.testing.assert_array_equal(reader.frame("Ez", 3), 6)
        np.testing.assert_allclose(reader.frame("Hy", 9), 18 / ETA_0, rtol=1e-6)
    assert os.listdir(tmp_path) == ["snapshots.h5"]


def test_an_interrupted_run_leaves_its_snapshots_whole(built: Built, tmp_path: Path) -> None:
    path = tmp_path / "snapshots.h5"

    def interrupted() -> None:
        with SnapshotWriter(path, scale_of(built)) as writer:
            writer.put(2, {"Ez": np.ones(built.problem.grid.shape, np.float32)})
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with read_snapshots(path) as reader:
        assert reader.steps == (2,)


def test_a_run_without_snapshots_leaves_an_empty_file_that_can_be_read(built: Built, tmp_path: Path) -> None:
    with SnapshotWriter(tmp_path / "snapshots.h5", scale_of(built)):
        pass
    with read_snapshots(tmp_path / "snapshots.h5") as reader:
        assert reader.steps == ()


def test_a_writer_that_fails_tells_the_run_and_never_blocks_it(built: Built, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "snapshots.h5"
    values = {"Ez": np.ones(built.problem.grid.shape, np.float32)}

    def run() -> None:
        with SnapshotWriter(path, scale_of(built)) as writer:
            for step in range(50):
                writer.put(step, values)

    with pytest.raises(UsageError, match="Room to write"):
        run()


def test_any_number_of_materials_has_its_names(tmp_path: Path) -> None:
    """HDF5 keeps at most 64 KiB of attributes with an array."""
    media = tuple(Material(f"material {n}", 2.0) for n in range(6000))
    built = build(RadarModel(GridSpec((0.4, 0.3), 0.01, steps=5), materials=media))
    write_results(tmp_path / "results.h5", built, {}, [])
    with h5py.File(tmp_path / "results.h5") as file:
        assert len(file["geometry/materials"]) == 6002
        assert file["geometry/materials"].asstr()[-1] == "material 5999"


def test_arrays_say_where_and_in_which_unit_they_are(built: Built, tmp_path: Path) -> None:
    path, shape = tmp_path / "results.h5", built.problem.grid.shape
    write_results(path, built, traces(built), [("Ez", np.ones(shape, np.float32))])
    with h5py.File(path) as file:
        trace, field = file["rxs/rx1/Hy"], file["fields/Ez"]
        assert (trace.attrs["units"], field.attrs["units"]) == ("A/m", "V/m")
        np.testing.assert_allclose(trace.dims[0]["time"], np.arange(6) * built.dt)
        np.testing.assert_allclose(field.dims[1]["y"], np.arange(shape[1]) * 0.01)
        np.testing.assert_array_equal(
            file["srcs/src1/waveform"], built.model.sources[0].waveform.sample(file["time"][:])
        )


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_snapshots_are_an_image_over_time_whose_axes_are_those_of_the_grid(tmp_path: Path, ndim: int) -> None:
    """By the rules of VTKHDF: point (i, j, k) of an array (time, k, j, i) lies at origin + directions · (i, j, k)."""
    shape, spacing = (5, 4, 3)[:ndim], (1.0, 2.0, 4.0)[:ndim]
    with SnapshotWriter(tmp_path / "s.h5", Scale("", 0.5, spacing, {"u": 2.0}, unit_names={"u": "V/m"})) as writer:
        for step in (0, 3):
            writer.put(step, {"u": np.full(shape, step)})
    with h5py.File(tmp_path / "s.h5") as file:
        assert [dimension.label for dimension in file["u"].dims] == ["time", *"xyz"[:ndim]]
        assert file["u"].attrs["units"] == "V/m"
        image = file["VTKHDF"]
        assert (image.attrs["Type"], image["Steps"].attrs["NSteps"]) == (b"ImageData", 2)
        np.testing.assert_array_equal(image["Steps/Values"], [0, 1.5])
        np.testing.assert_array_equal(image["PointData/u"], file["u"])
        extent = image.attrs["WholeExtent"][1::2]
        np.testing.assert_array_equal(extent, [*(n - 1 for n in shape[::-1]), 0, 0][:3])
        last = image.attrs["Direction"].reshape(3, 3) @ (extent * image.attrs["Spacing"])
        assert tuple(last[:ndim]) == tuple((n - 1) * step for n, step in zip(shape, spacing, strict=True))


def test_snapshots_of_other_axes_lie_where_the_grid_has_them(tmp_path: Path) -> None:
    """Of a section along x and z that begins beside the origin, in the coordinates of its nodes and in VTK's space."""
    scale = Scale("", 0.5, (1.0, 2.0), {"u": 1.0}, stride=2, axes=("x", "z"), origin=(-3.0, -4.0))
    with SnapshotWriter(tmp_path / "s.h5", scale) as writer:
        writer.put(0, {"u": np.zeros((5, 3))})
    with h5py.File(tmp_path / "s.h5") as file:
        assert [dimension.label for dimension in file["u"].dims] == ["time", "x", "z"]
        np.testing.assert_array_equal(file["x"], [-3.0, -1.0, 1.0])
        np.testing.assert_array_equal(file["z"], [-4.0, 0.0])
        image = file["VTKHDF"].attrs
        last = image["Origin"] + image["Direction"].reshape(3, 3) @ (image["WholeExtent"][1::2] * image["Spacing"])
        np.testing.assert_array_equal(last, [1.0, 0.0, 0.0])


def test_all_six_components_are_there_where_all_fields_are_recorded(tmp_path: Path) -> None:
    model = RadarModel(
        GridSpec((0.4, 0.3), 0.01, steps=5), receivers=(ReceiverSpec((0.25, 0.15), "all", ("Ez", "Hx", "Hy")),)
    )
    write_results(tmp_path / "results.h5", build(model), traces(build(model)), [])
    with h5py.File(tmp_path / "results.h5") as file:
        assert sorted(file["rxs/rx1"]) == ["Ex", "Ey", "Ez", "Hx", "Hy", "Hz"]
        assert not file["rxs/rx1/Hz"][:].any()
