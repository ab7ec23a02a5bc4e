"""Waves, radar in three dimensions and surveys go on over ranks where one process ended, with its results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
from launchers import MPICH

from peergrid import Simulation
from peergrid.jobs import run_model
from peergrid.jobs.folder import Folder
from peergrid.jobs.requested import requested_of
from peergrid.jobs.survey import run_survey, survey_of
from peergrid.models import read
from peergrid.models.survey import surveyed

APP = Path(__file__).with_name("ranks_app.py")
WAVE = """
[model]
kind = "{kind}"
[grid]
size = [120.0, 90.0, 80.0]
spacing = 10.0
steps = 40
layer = 3
order = 4
absorber = "{absorber}"
[medium]
velocity = 1500.0
{medium}
[[source]]
position = [43.0, 40.0, 41.0]
waveform = {{ kind = "ricker", frequency = 15.0 }}
[[receiver_array]]
first = [10, 20, 33]
last = [110, 20, 33]
count = 5
[output]
picture = false
"""
RADAR = """#domain: 0.3 0.2 0.2
#dx_dy_dz: 0.01 0.01 0.01
#time_window: 40
#pml_cells: 3
#material: 5 0.01 1 0 soil
#box: 0 0 0 0.3 0.2 0.1 soil
#waveform: ricker 1 1.2e9 pulse
#hertzian_dipole: x 0.1 0.1 0.15 pulse
#rx: 0.2 0.1 0.15 beside Ex
"""
SURVEY = """
[grid]
size = [0.3, 0.2]
spacing = 0.005
steps = 60
[[source]]
kind = "line"
position = [0.08, 0.1]
waveform = { kind = "ricker", frequency = 1e9 }
[[receiver]]
position = [0.12, 0.1]
[survey]
kind = "common_offset"
step = [0.04, 0.0]
traces = 3
[output]
pictures = false
"""
MODELS = {
    "acoustic.toml": WAVE.format(kind="acoustic3d", absorber="cpml", medium=""),
    "tti.toml": WAVE.format(kind="tti3d", absorber="sponge", medium="epsilon = 0.1\ndelta = 0.05\ntilt = 0.3"),
    "radar.in": RADAR,
}


class EndedError(Exception):
    """The end of a run before its time."""


def end(simulation: Simulation) -> None:
    if simulation.step >= 20:
        raise EndedError


def records(folder: Path) -> dict[str, list[object]]:
    """The values in all HDF5 files of a run."""
    found = dict[str, list[object]]()

    def take(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = np.ravel(item[()]).tolist()

    for path in sorted(folder.glob("*.h5")):
        with h5py.File(path) as file:
            file.visititems(take)
    return found


def begin_survey(folder: Path) -> str:
    """One trace of a survey, kept for ranks to go on from; the digest of all of them by one process."""
    (folder / "survey.toml").write_text(SURVEY)
    described = surveyed(read(folder / "survey.toml"))
    assert described is not None
    place = Folder(folder / "two-survey.toml")
    with place.taken():
        ((number, _),) = survey_of(described, place, requested_of(described, "cpu:1")).make_traces([1], lambda: False)
    assert number == 1
    return run_survey(described, folder / "one-survey.toml", devices="cpu:1").sha256


@pytest.mark.skipif(not MPICH.there, reason="no MPI beside this Python: pip install mpi4py mpich")
@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # so few cells and steps are no physics
def test_models_and_surveys_go_on_over_ranks_with_the_results_of_one_process(tmp_path: Path) -> None:
    expected = {}
    for name, text in MODELS.items():
        (tmp_path / name).write_text(text)
        whole, part = tmp_path / f"one-{name}", tmp_path / f"two-{name}"
        expected[name] = run_model(tmp_path / name, whole, devices="cpu:1").sha256
        with pytest.raises(EndedError):
            run_model(tmp_path / name, part, devices="cpu:1", checkpoint="10steps", call=end)
    expected["survey.toml"] = begin_survey(tmp_path)
    line = [*MPICH.command(2), sys.executable, str(APP), "models", json.dumps([str(tmp_path), list(expected)])]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, env=MPICH.environment(), check=False)
    assert done.returncode == 0, done.stderr
    for name, sha256 in expected.items():
        told = json.loads((tmp_path / f"told-{name}").read_text())
        assert (told["sha256"], told["resumed_from"]) == (sha256, 1 if name == "survey.toml" else 20)
        assert records(tmp_path / f"two-{name}") == records(tmp_path / f"one-{name}") != {}
        assert not (tmp_path / f"two-{name}" / "checkpoints").exists()
