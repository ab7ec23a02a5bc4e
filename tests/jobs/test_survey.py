"""A survey as one job: its traces are those of single runs, its file has the same bytes however it came about."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import fields, replace
from pathlib import Path

import h5py
import numpy as np
import pytest
import segyio
from PIL import Image

from peergrid.cli import main
from peergrid.cli.survey import SurveySummary, text
from peergrid.errors import UsageError
from peergrid.jobs import run_model, run_survey
from peergrid.jobs.folder import Folder
from peergrid.jobs.requested import RequestedOptions
from peergrid.jobs.survey import SurveyJob, survey_of
from peergrid.models import parse
from peergrid.models.survey import surveyed, traces
from peergrid.models.wave.model import WaveModel
from peergrid.runtime.devices import parse_devices

ROOT = Path(__file__).parents[2]
MODEL = """
[model]
title = "plate"
[grid]
size = [0.6, 0.3]
spacing = 0.01
steps = 40
[[shape]]
kind = "box"
material = "conductor"
lower = [0.2, 0.12]
upper = [0.3, 0.14]
[[source]]
kind = "line"
position = [0.15, 0.2]
waveform = { kind = "ricker", frequency = 2e9 }
[[receiver]]
position = [0.2, 0.2]
fields = ["Ez", "Hx"]
[[receiver_array]]
first = [0.3, 0.2]
last = [0.4, 0.2]
count = 2
[output]
pictures = false
"""
SURVEY = '[survey]\nkind = "common_offset"\ntraces = 4\nstep = [0.03, 0.0]\n'
SHOTS = """
[model]
title = "shots"
kind = "acoustic2d"
[grid]
size = [300.0, 200.0]
spacing = 10.0
steps = 130
layer = 6
order = 4
[medium]
velocity = 1500.0
[[layer]]
top = 120.0
velocity = 2200.0
[[source]]
position = [100.0, 50.0]
waveform = { kind = "ricker", frequency = 6.0 }
[[receiver_array]]
first = [120.0, 55.0]
last = [200.0, 55.0]
count = 3
[output]
segy = true
[survey]
kind = "common_offset"
traces = 3
step = [12.5, 0.0]
"""
CUBE = """
[model]
kind = "fdtd3d"
[grid]
size = [0.06, 0.06, 0.06]
spacing = 0.005
steps = 20
[absorber]
cells = 2
[[source]]
kind = "electric_dipole"
axis = "z"
position = [0.02, 0.03, 0.03]
waveform = { kind = "ricker", frequency = 3e9 }
[[receiver]]
position = [0.03, 0.03, 0.03]
fields = ["Ez"]
[[view]]
name = "seen"
lower = [0.0, 0.0, 0.0]
upper = [0.03, 0.03, 0.03]
[[cells]]
name = "part"
lower = [0.0, 0.0, 0.0]
upper = [0.03, 0.03, 0.03]
[survey]
kind = "common_offset"
traces = 2
step = [0.005, 0.0, 0.0]
"""


def survey(text: str, folder: Path, devices: str = "cpu:1", each: int | None = None) -> SurveyJob:
    model = surveyed(parse(text))
    assert model is not None
    return survey_of(model, Folder(folder), RequestedOptions(parse_devices(devices)), each)


def carried_out(job: SurveyJob) -> str:
    done = job.files.done()
    for _ in job.make_traces([n for n in range(job.files.total) if n not in done], lambda: False):
        pass
    digest, _ = job.merge()
    return digest


def test_a_survey_has_the_traces_of_single_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every trace and every field, over two devices for each trace as over one."""
    shown = MODEL.replace("pictures = false", "pictures = true")
    assert carried_out(survey(shown + SURVEY, tmp_path / "all")) == carried_out(
        survey(MODEL + SURVEY, tmp_path / "split", "cpu:2", each=2)
    )
    assert (tmp_path / "all/results.h5").read_bytes() == (tmp_path / "split/results.h5").read_bytes()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "third.toml").write_text(
        MODEL.replace("[0.15,", "[0.21,").replace("n = [0.2, 0.2]", "n = [0.26, 0.2]")
        .replace("[0.3, 0.2]", "[0.36, 0.2]").replace("[0.4, 0.2]", "[0.46, 0.2]")
    )  # fmt: skip
    monkeypatch.setattr(sys, "argv", ["peergrid", "run", "third.toml", "-o", "third", "--devices", "cpu:1"])
    with pytest.raises(SystemExit):
        main()
    with h5py.File(tmp_path / "all/results.h5") as merged, h5py.File(tmp_path / "third/results.h5") as single:
        for name in ("rx1/Ez", "rx1/Hx", "rx2/Ez", "rx3/Ez"):
            assert merged[f"rxs/{name}"].shape == (41, 4)
            assert np.array_equal(merged[f"rxs/{name}"][:, 2], single[f"rxs/{name}"][:])
            assert single[f"rxs/{name}"][:].any()
        for name in ("dt", "Iterations", "nrx", "nsrc", "dx_dy_dz", "nx_ny_nz"):
            assert np.array_equal(merged.attrs[name], single.attrs[name])
        assert merged.attrs["srcsteps"].tolist() == [3, 0, 0]  # cells, as in gprMax
        np.testing.assert_allclose(merged["survey/receivers"][2, 0], (0.26, 0.2, 0.0))
        assert [dimension.label for dimension in merged["survey/receivers"].dims] == ["trace", "receiver", "axis"]
        section = merged["rxs/rx1/Hx"]
        assert (section.attrs["units"], section.dims[1].label) == ("A/m", "trace")
        np.testing.assert_array_equal(section.dims[0]["time"], single["time"])
    assert sorted(path.name for path in (tmp_path / "all").iterdir()) == [
        "results.h5", "section-array1-1.png", "section-array1-2.png", "section-rx1.png",
    ]  # fmt: skip
    with Image.open(tmp_path / "all/section-rx1.png") as picture:
        assert picture.size[0] > 1000


def test_what_is_done_is_not_done_again(tmp_path: Path) -> None:
    job = survey(MODEL + SURVEY, tmp_path / "a")
    for number, _ in job.make_traces([0, 2], lambda: False):
        assert number in job.files.done()
    kept = {number: job.files.path(number).stat().st_mtime_ns for number in (0, 2)}
    damaged = job.files.path(1)
    damaged.write_bytes(job.files.path(0).read_bytes()[:-100])
    again = survey(MODEL + SURVEY, tmp_path / "a")
    assert again.files.done() == (0, 2)
    for _ in again.make_traces([1, 3], lambda: False):
        pass
    assert {number: job.files.path(number).stat().st_mtime_ns for number in (0, 2)} == kept
    digest, _ = again.merge()
    assert not again.files.folder.exists()
    assert digest == carried_out(survey(MODEL + SURVEY, tmp_path / "b"))
    assert (tmp_path / "a/results.h5").read_bytes() == (tmp_path / "b/results.h5").read_bytes()


def test_a_merged_survey_is_resumed_without_a_trace_made_again(tmp_path: Path) -> None:
    """Another survey in the same folder is begun; and so is the same one, if nobody says that it goes on."""
    many, other = MODEL + SURVEY, MODEL + SURVEY.replace("traces = 4", "traces = 2")
    first = run_survey(parse(many), tmp_path, devices="cpu:1")
    (written,) = first.outputs
    made = written.stat().st_mtime_ns
    assert run_survey(parse(many), tmp_path, devices="cpu:2", resume=True) == first
    assert written.stat().st_mtime_ns == made
    assert run_survey(parse(other), tmp_path, devices="cpu:1", resume=True).traces == 2
    assert run_survey(parse(many), tmp_path, devices="cpu:1", resume=True) == first
    assert run_survey(parse(many), tmp_path, devices="cpu:1") == first
    assert written.stat().st_mtime_ns != made
    written.write_bytes(written.read_bytes()[:-200])
    assert run_survey(parse(many), tmp_path, devices="cpu:1", resume=True) == first


@pytest.mark.parametrize(
    ("text", "merged", "others"),
    [
        (MODEL.replace("pictures = false", "") + SURVEY, "results.h5", 3),
        (SHOTS, "gathers.h5", 2),
        (CUBE, "results.h5", 4),
    ],
    ids=["radar", "waves", "radar in 3D"],
)
def test_missing_files_of_a_merged_survey_are_written_again(
    text: str, merged: str, others: int, tmp_path: Path
) -> None:
    """The same bytes, and of no file that is there, but that cells and their media are written together."""
    first = run_survey(parse(text), tmp_path, devices="cpu:1")
    assert (first.outputs[0].name, len(first.outputs)) == (merged, 1 + others)
    made = {file: file.read_bytes() for file in first.outputs}
    for gone in first.outputs[1:]:
        times = {file: file.stat().st_mtime_ns for file in made}
        gone.unlink()
        assert run_survey(parse(text), tmp_path, devices="cpu:1", resume=True) == first
        assert {file: file.read_bytes() for file in made} == made
        again = {file.name for file, before in times.items() if file.stat().st_mtime_ns != before}
        assert again == ({"part.h5", "part_materials.json"} if gone.name.startswith("part") else {gone.name})


def test_traces_of_another_survey_are_refused(tmp_path: Path) -> None:
    job = survey(MODEL + SURVEY, tmp_path)
    list(job.make_traces([0], lambda: False))
    for other in (SURVEY.replace("0.03", "0.04"), SURVEY.replace("[survey]", "[absorber]\ncells = 5\n[survey]")):
        with pytest.raises(UsageError, match="is expected to hold traces of this survey, and holds those of another"):
            survey(MODEL + other, tmp_path).files.done()


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups, to end a job with all its workers")
@pytest.mark.parametrize(
    ("many", "merged"),
    [
        (MODEL + SURVEY.replace("traces = 4", "traces = 10").replace("0.03", "0.01"), "results.h5"),
        (SHOTS.replace("traces = 3", "traces = 10").replace("12.5, 0.0", "10.0, 0.0"), "gathers.h5"),
    ],
    ids=["radar", "waves"],
)
def test_a_killed_survey_goes_on_to_the_same_file(many: str, merged: str, tmp_path: Path) -> None:
    """On two processes; resumed in this one."""
    (tmp_path / "many.toml").write_text(many)
    begin = "from peergrid.jobs import run_survey; run_survey('many.toml', 'out', devices='cpu:2')"
    job = subprocess.Popen(
        [sys.executable, "-c", begin], cwd=tmp_path, stderr=subprocess.DEVNULL, start_new_session=True
    )
    while len(list((tmp_path / "out").glob("traces/trace-*.h5"))) < 2:
        assert job.poll() is None
        time.sleep(0.01)
    os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    kept = sorted((file.name, file.stat().st_mtime_ns) for file in (tmp_path / "out/traces").glob("trace-*.h5"))
    assert 2 <= len(kept) < 10
    with pytest.raises(
        UsageError, match=f"and holds {len(kept)} of an earlier run: go on with '--resume', remove them"
    ):
        run_survey(parse(many), tmp_path / "out", devices="cpu:1")
    again = survey(many, tmp_path / "out")
    assert len(again.files.done()) == len(kept)
    found = run_survey(parse(many), tmp_path / "out", devices="cpu:1", resume=True)
    assert found.traces == 10
    assert found.sha256 == carried_out(survey(many, tmp_path / "whole"))
    assert (tmp_path / "out" / merged).read_bytes() == (tmp_path / "whole" / merged).read_bytes()


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.toml").write_text(MODEL + SURVEY.replace("traces = 4", "traces = 2"))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["peergrid", *words])
        with pytest.raises(SystemExit) as done:
            main()
        return int(done.value.code or 0), *capsys.readouterr()

    code, out, _ = call("run", "model.toml", "-o", "out", "--devices", "cpu:1", "--steps", "30", "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["traces"], found["done"], found["resumed_from"], found["steps"]) == (2, 2, 0, 30)
    assert (found["devices_per_trace"], found["strategy"], found["depth"]) == (1, "async", 8)
    assert found["outputs"] == ["out/results.h5"]
    with h5py.File("out/results.h5") as file:
        assert found["sha256"] == file.attrs["sha256"]
        assert file["rxs/rx1/Ez"].shape == (31, 2)
    code, out, _ = call("run", "model.toml", "-o", "out", "--devices", "cpu:1", "--steps", "30", "--resume")
    assert (code, out.splitlines()[0].endswith(" steps, by an earlier run")) == (0, True)
    for option, sentence in {
        "--no-write": "A survey writes its traces to the folder of the results; leave out '--no-write'.\n",
        "--checkpoint=5s": "A survey writes each trace as soon as it is done; leave out '--checkpoint'.\n",
        "--devices-per-trace=2": "The devices of each trace are expected to divide 1, the number of devices "
        "of the run, "
        "got 2; name "
        "another number.\n",
    }.items():
        code, _, said = call("run", "model.toml", "--devices", "cpu:1", option)
        assert (code, said) == (2, sentence)
    _, out, said = call("plan", "model.toml", "--devices", "cpu:1")
    assert "note: The model has a survey of 2 traces; the figures are for one trace on all devices.\n" in said


def test_a_survey_that_a_signal_met_in_its_last_trace_is_done() -> None:
    figures = dict.fromkeys((field.name for field in fields(SurveySummary)), 1) | {"shape": (3, 3), "outputs": ()}
    summary = SurveySummary(**{**figures, "traces": 3, "resumed_from": 0, "sha256": "", "interrupted_by": "SIGTERM"})  # type: ignore[arg-type]
    assert ", ended by SIGTERM; continue with '--resume'\n" in text(replace(summary, done=2))
    assert ", ended by SIGTERM\n" in text(replace(summary, done=3))


def test_the_example_shows_the_pipes(tmp_path: Path) -> None:
    """Of three of its traces the one over the iron pipe has the strongest echo."""
    text = (ROOT / "examples/survey.toml").read_text()
    sources = "[[0.37, 0.465], [0.63, 0.465], [1.0, 0.465]]"
    receivers = "[[0.43, 0.465], [0.69, 0.465], [1.06, 0.465]]"
    over = f'kind = "positions"\nsources = {sources}\nreceivers = {receivers}'
    before, _, _ = text.partition('kind = "common_offset"')
    carried_out(survey(before + over, tmp_path))
    with h5py.File(tmp_path / "results.h5") as file:
        late = np.abs(file["rxs/rx1/Ez"][350:430]).max(axis=0)
    assert late[0] > 2 * late[1]
    assert late[0] > 2 * late[2]


def test_shots_of_waves_are_those_of_single_runs(tmp_path: Path) -> None:
    """Shots at nodes and between them, whose receivers are found in different ways."""
    job = survey(SHOTS, tmp_path / "all")
    carried_out(job)
    second = SHOTS[: SHOTS.index("[survey]")].replace("[100.0,", "[112.5,").replace("[120.0,", "[132.5,")
    single = run_model(parse(second.replace("[200.0, 55", "[212.5, 55")), tmp_path / "single", devices="cpu:2")
    with h5py.File(tmp_path / "all/gathers.h5") as shots, h5py.File(single.outputs[0]) as one:
        assert shots["traces"].shape == (3, 3, 130)
        assert [dimension.label for dimension in shots["traces"].dims] == ["shot", "receiver", "time"]
        for name in ("traces", "sources", "receivers"):
            assert np.array_equal(shots[name][1], one[name][:])
        assert one["traces"][:].any()
        traces = shots["traces"][:]
    with segyio.open(tmp_path / "all/gathers.segy", ignore_geometry=True) as file:
        assert list(file.attributes(segyio.TraceField.FieldRecord)) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
        assert file.header[4][segyio.TraceField.SourceX] == 1125000
        assert file.header[4][segyio.TraceField.CDP_X] == (1125000 + 1725000) // 2
        assert np.abs(file.trace[4]).max() == pytest.approx(np.abs(traces[1, 1]).max(), rel=0.05)
    assert (tmp_path / "all/section.png").exists()


def test_snapshots_of_waves_lie_in_the_medium(tmp_path: Path) -> None:
    """Its first node is the origin, also where absorbing layers lie around it; the second axis is z."""
    model = parse(SHOTS[: SHOTS.index("[survey]")].replace("[output]", "[output]\nsnapshots = 130"))
    built = model.build()
    run_model(model, tmp_path, devices="cpu:1")
    with h5py.File(tmp_path / "snapshots.h5") as file, h5py.File(tmp_path / "gather.h5") as last:
        inside = np.ix_([0], file["x"][:] >= 0, file["z"][:] >= 0)
        assert (file["x"][0], file["z"][0]) == built.origin < (0.0, 0.0)
        columns, rows = last["fields/u"].shape
        assert np.array_equal(file["u"][:][inside][0, :columns, :rows], last["fields/u"])


KINDS = {
    "common_midpoint": ("traces = 3\nstep = [12.5, 0.0]", [100.0, 87.5, 75.0], [120.0, 132.5, 145.0]),
    "steps": (
        "traces = 2\nsource_step = [0.0, 5.0]\nreceiver_step = [10.0, 0.0]", [100.0, 100.0], [120.0, 130.0],
    ),
    "positions": ("sources = [[90.0, 50.0], [30.0, 40.0]]", [90.0, 30.0], [120.0, 120.0]),
    "positions, receivers": (
        "sources = [[90.0, 50.0], [30.0, 40.0]]\nreceivers = [[100.0, 55.0], [40.0, 45.0]]", [90.0, 30.0],
        [100.0, 40.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_shots_lie_where_the_survey_has_them(kind: str) -> None:
    """The sources and the first receivers along x; the line of receivers stays one."""
    keys, sources, receivers = KINDS[kind]
    model = parse(f'{SHOTS[: SHOTS.index("[survey]")]}[survey]\nkind = "{kind.partition(",")[0]}"\n{keys}\n')
    assert isinstance(model, WaveModel)
    shots = list(traces(model))
    assert [shot.sources[0].position[0] for shot in shots] == sources
    assert [shot.places[0, 0] for shot in shots] == receivers
    assert all(np.ptp(shot.places[:, 0]) == 80.0 for shot in shots)


def test_shots_outside_the_medium_are_refused() -> None:
    with pytest.raises(UsageError, match=r"^survey, trace 3: Receivers are expected within the medium, from 0 to "):
        parse(SHOTS.replace("12.5, 0.0", "60.0, 0.0"))
    up = SHOTS.replace("order = 4", "order = 4\nfree_surface = true").replace("12.5, 0.0", "0.0, -25.0")
    with pytest.raises(UsageError, match=r"^survey, trace 3: A source is expected below the free surface"):
        parse(up)


def test_sums_of_steps_that_end_at_an_edge_lie_in_the_medium() -> None:
    """0.3 - 3 · 0.1 is a little below 0."""
    text = SHOTS.replace("size = [300.0, 200.0]\nspacing = 10.0", "size = [3.0, 2.0]\nspacing = 0.1")
    for old, new in {
        "top = 120.0": "top = 1.2", "[100.0, 50.0]": "[0.3, 0.5]", "[120.0, 55.0]": "[1.2, 0.5]",
        "[200.0, 55.0]": "[2.0, 0.5]", "frequency = 6.0": "frequency = 600.0", "common_offset": "common_midpoint",
        "traces = 3\nstep = [12.5, 0.0]": "traces = 4\nstep = [0.1, 0.0]",
    }.items():  # fmt: skip
        text = text.replace(old, new)
    model = parse(text)
    assert isinstance(model, WaveModel)
    shots = list(traces(model))
    assert -1e-16 < shots[3].sources[0].position[0] < 0
    edge = shots[3].shot.propagator.source_cells(np.array([[0.0, 0.5]]))
    np.testing.assert_array_equal(shots[3].shot.propagator.source_cells(shots[3].shot.source_positions), edge)
    outside = np.array([[-1e-5, 0.5]])
    with pytest.raises(UsageError, match="within the medium"):
        shots[3].shot.propagator.source_cells(outside)
