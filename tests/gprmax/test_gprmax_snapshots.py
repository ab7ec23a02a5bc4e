"""Snapshots of input files of gprMax: what is in their files, when they are written, what is refused."""

from __future__ import annotations

import re
import resource
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from scipy.ndimage import map_coordinates

from peergrid.errors import UsageError
from peergrid.gprmax import read
from peergrid.jobs import run_model
from peergrid.models.fdtd3d import COMPONENTS

pytestmark = pytest.mark.filterwarnings("ignore:Source . is at its strongest:UserWarning")  # runs end early here
MODEL = """\
#domain: 0.036 0.032 0.04
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 41
#pml_cells: 4
#waveform: ricker 1 1.5e9 pulse
#hertzian_dipole: y 0.018 0.016 0.02 pulse
#rx: 0.022 0.016 0.02
"""
WHOLE = "#snapshot: 0 0 0 0.036 0.032 0.04 0.002 0.002 0.002 {} {}\n"
PART = "#snapshot: 0.01 0.008 0.012 0.022 0.02 0.024 0.004 0.006 0.002 {} {}\n"
PLANE = MODEL.replace("0.032 0.04", "0.032 inf").replace("0.016 0.02", "0.016 0.002") + "#domain_mode: TE\n"


def _file(folder: Path, text: str) -> Path:
    path = folder / "model.in"
    path.write_text(text)
    return path


@pytest.mark.parametrize(("text", "lo", "width", "count"), [
    (MODEL + WHOLE.format(40, "shot"), (0, 0, 0), (1, 1, 1), (18, 16, 20)),
    (MODEL + PART.format(40, "shot"), (5, 4, 6), (2, 3, 1), (3, 2, 6)),
    (PLANE + PART.format(40, "shot").replace("0.02 0.024", "0.02 inf"), (5, 4), (2, 3), (3, 2)),
])  # fmt: skip
def test_fields_are_those_at_the_centres_of_cells(
    tmp_path: Path, text: str, lo: tuple[int, ...], width: tuple[int, ...], count: tuple[int, ...]
) -> None:
    """At the last step, beside the final fields of the results: interpolated there by SciPy."""
    found = run_model(read(_file(tmp_path, text)).without_pictures(), tmp_path / "out", devices="cpu:2")
    assert found.outputs == (tmp_path / "out/results.h5", tmp_path / "out/shot.vtkhdf")
    with h5py.File(tmp_path / "out/results.h5") as results, h5py.File(tmp_path / "out/shot.vtkhdf") as file:
        image = file["VTKHDF"]
        assert image.attrs["WholeExtent"].tolist() == [e for n in (*count, 1)[:3] for e in (0, n)]
        np.testing.assert_allclose(image.attrs["Origin"][: len(lo)], np.multiply(lo, 0.002))
        np.testing.assert_allclose(image.attrs["Spacing"][: len(lo)], np.multiply(width, 0.002))
        for name, values in image["CellData"].items():
            half = [(name[0] == "E") == ("xyz"[axis] == name[1]) for axis in range(len(lo))]
            axes = [a + s * (np.arange(n) + 0.5) - 0.5 * h for a, s, n, h in zip(lo, width, count, half, strict=True)]
            nodes = results[f"fields/{name}"][:].astype(np.float64)
            expected = map_coordinates(nodes, np.meshgrid(*axes, indexing="ij"), order=1)
            scale = np.abs(nodes).max()
            np.testing.assert_allclose(values[:].T.reshape(count), expected, rtol=0, atol=1e-6 * scale, err_msg=name)
        assert np.abs(image["CellData/Ey"][:]).max() > 0.01 * np.abs(results["fields/Ey"][:]).max() > 0
        assert set(image["CellData"]) == (set(COMPONENTS) if len(lo) == 3 else {"Ex", "Ey", "Hz"})


def test_each_has_its_step_and_is_there_after_an_end(tmp_path: Path) -> None:
    """The run stops at a failure after step 20: snapshots up to there are whole, later ones are not there."""
    text = MODEL + WHOLE.format(0, "first.h5") + WHOLE.format(13, "second.h5") + WHOLE.format("7e-11", "third.h5")
    model = read(_file(tmp_path, text)).without_pictures()
    run_model(model, tmp_path / "whole", devices="cpu:1")
    dt = model.domain.dt

    def fail(simulation: object) -> None:
        if simulation.step >= 13:  # type: ignore[attr-defined]
            raise RuntimeError("here")

    with pytest.raises(RuntimeError, match="here"):
        run_model(model, tmp_path / "ended", devices="cpu:1", checkpoint="5steps", call=fail)
    assert {path.name for path in (tmp_path / "ended").glob("*.h5")} == {"first.h5", "second.h5"}
    run_model(model, tmp_path / "ended", devices="cpu:1", resume=True)
    for name, step in (("first.h5", 0), ("second.h5", 13), ("third.h5", 18)):
        with h5py.File(tmp_path / "whole" / name) as file, h5py.File(tmp_path / "ended" / name) as other:
            assert (file.attrs["iteration"], file.attrs["time"]) == (step, step * dt)
            assert file.attrs["magnetic_time"] == (step - 0.5) * dt
            assert np.array_equal(file["Ey"][:], other["Ey"][:])
            assert file["Ey"][:].any() == (step > 0)


def test_a_run_goes_on_without_a_snapshot_and_resumes_before_it(tmp_path: Path) -> None:
    """A folder in the place of the snapshot stands for a full disk."""
    text = MODEL + WHOLE.format(0, "first.h5") + WHOLE.format(13, "second.h5") + WHOLE.format(13, "third.h5")
    model, folder = read(_file(tmp_path, text)).without_pictures(), tmp_path / "out"
    (folder / "second.h5").mkdir(parents=True)
    with (
        pytest.raises(UsageError, match=r"second.h5' is expected to be free"),
        pytest.warns(UserWarning, match="A snapshot could not be written, and the run continues without"),
    ):
        run_model(model, folder, devices="cpu:1", checkpoint="5steps")
    assert {path.name for path in folder.glob("*.h5")} == {"first.h5", "second.h5", "third.h5", "results.h5"}
    assert {path.name for path in folder.glob("checkpoints/*")} == {f"step-{n:012d}.h5" for n in (5, 10)}
    (folder / "second.h5").rmdir()
    run_model(model, folder, devices="cpu:1", resume=True)
    with h5py.File(folder / "second.h5") as file, h5py.File(folder / "third.h5") as other:
        assert np.array_equal(file["Ey"][:], other["Ey"][:])


def test_a_snapshot_after_the_end_of_a_shorter_run_is_missing_with_a_warning(tmp_path: Path) -> None:
    model = read(_file(tmp_path, MODEL + WHOLE.format(20, "early") + WHOLE.format(21, "late"))).without_pictures()
    late = "The snapshot 'late.vtkhdf' is of step 21, but the run has 20 steps: it is not made."
    assert late not in model.build().warnings
    with pytest.warns(UserWarning, match=re.escape(late)):
        found = run_model(model.with_steps(20), tmp_path / "out", devices="cpu:1")
    assert [path.name for path in found.outputs] == ["results.h5", "early.vtkhdf"]


@pytest.mark.parametrize("kilobytes", [40, 100])
def test_a_full_disk_leaves_the_files_that_have_room(tmp_path: Path, kilobytes: int) -> None:
    """A limit on file sizes stands for the full disk: fields of 45 kB each and snapshots of 138 kB are too large."""
    cells = "#geometry_objects_write: 0.01 0.008 0.012 0.022 0.02 0.024 cells"
    (tmp_path / "pulse.in").write_text(MODEL + WHOLE.format(20, "whole") + PART.format(20, "part") + cells)
    done = subprocess.run(
        [sys.executable, "-m", "peergrid", "run", "pulse.in", "-o", "full", "--devices", "cpu:1", "--no-pictures"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000 * kilobytes,) * 2),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "warning: A snapshot could not be written, and the run continues without it: Room to write" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("The results are written without the final fields: Room to write")
    made = {path.name for path in (tmp_path / "full").iterdir()}
    assert made == {"results.h5", "part.vtkhdf", "cells.h5", "cells_materials.json"}
    with h5py.File(tmp_path / "full/results.h5") as file:
        assert file["rxs/rx1/Ey"][:].any()
        assert not list(file["fields"])


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (WHOLE.format(41, "a"), "line 8: #snapshot is expected to be of a step from 0 to 40, got 41"),
        (WHOLE.format(1, "results.h5"), "not that of results, got 'results.h5'"),
        (WHOLE.format(1, "a.vti"), "a name in .vtkhdf or .h5"),
        (WHOLE.format(1, "../a"), "a name without folders, got '../a'"),
        (
            WHOLE.format(1, "a") + PART.format(2, "a.vtkhdf"),
            "line 9: #snapshot is expected to have a name of its own, got 'a.vtkhdf' again",
        ),
        (WHOLE.format(1, "a.h5") + "#geometry_objects_write: 0 0 0 0.01 0.01 0.01 a", "got 'a.h5' again; rename it"),
        ("#geometry_view: 0 0 0 0.01 0.01 0.01 0.002 0.002 0.002 a n\n" + WHOLE.format(1, "a"), "line 9: #snapshot"),
        (
            WHOLE.format(1, "a").replace(" 0.002 0.002 0.002", " 0.002 0.001 0.002"),
            "to have samples 1 to ",
        ),
        (WHOLE.format(1, "a").replace(" 0.002 0.002 0.002", " 0.02 0.002 0.002"), "in whole samples, within"),
    ],
)
def test_what_cannot_be_taken_is_refused(tmp_path: Path, line: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence.replace("(", r"\(")) as raised:
        read(_file(tmp_path, MODEL + line)).build()
    assert "\n" not in str(raised.value)
