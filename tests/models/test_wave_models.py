"""Model files of seismic waves: parameters from numbers, layers and files; gathers as HDF5 and SEG-Y; mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import matplotlib
import numpy as np
import pytest
import segyio
import zarr

from full_disk import room
from peergrid import Simulation, UsageError
from peergrid.jobs import run_model
from peergrid.models import Outcome, PicturedBuilt, parse, read
from peergrid.models.wave.model import WaveModel
from peergrid.models.wave.picture import picture_survey
from peergrid.models.wave.segy import sampled, write_segy
from peergrid.models.wave.shot import Gather, coarse

ROOT = Path(__file__).parents[2]
HEAD = """
[model]
kind = "{kind}"
[grid]
size = {size}
spacing = 10.0
steps = 30
layer = 4
order = 4
absorber = "{absorber}"
[[source]]
position = {source}
waveform = {{ kind = "ricker", frequency = 25.0 }}
[[receiver]]
position = {source}
[[receiver_array]]
first = {first}
last = {last}
count = 5
"""
PLANE = {
    "kind": "acoustic2d", "size": [200.0, 150.0], "source": [63.0, 51.0], "first": [10, 71], "last": [170, 71],
    "absorber": "sponge",
}  # fmt: skip
CUBE = {
    "kind": "tti3d", "size": [100.0, 90.0, 80.0], "source": [43.0, 40.0, 41.0], "first": [10, 20, 33],
    "last": [90, 20, 33], "absorber": "sponge",
}  # fmt: skip
VELOCITY = (1500 + 10 * np.arange(21 * 16).reshape(21, 16)).astype(np.float32)


def model(medium: str, head: Mapping[str, Any] = PLANE, folder: Path = Path()) -> WaveModel:
    found = parse(HEAD.format(**head) + medium, folder)
    assert isinstance(found, WaveModel)
    return found


def as_npy(path: Path) -> str:
    np.save(path / "v.npy", VELOCITY)
    return '{ file = "v.npy" }'


def as_hdf5(path: Path) -> str:
    with h5py.File(path / "v.h5", "w") as file:
        file["model/velocity"], file["other"] = VELOCITY, 1
    return '{ file = "v.h5", dataset = "model/velocity" }'


def as_zarr(path: Path) -> str:
    zarr.create_group(str(path / "v.zarr")).create_array("velocity", data=VELOCITY)
    return '{ file = "v.zarr" }'


def as_segy(path: Path) -> str:
    segyio.tools.from_array2D(str(path / "v.segy"), VELOCITY, format=5, dt=10000)
    return '{ file = "v.segy" }'


@pytest.mark.parametrize("write", [as_npy, as_hdf5, as_zarr, as_segy])
def test_parameters_come_from_files(write: Callable[[Path], str], tmp_path: Path) -> None:
    found = model(f"[medium]\nvelocity = {write(tmp_path)}", folder=tmp_path)
    np.testing.assert_array_equal(found.propagator.medium.values("velocity"), VELOCITY)


@pytest.mark.parametrize(
    "sorting", [segyio.TraceSortingFormat.INLINE_SORTING, segyio.TraceSortingFormat.CROSSLINE_SORTING]
)
def test_inlines_of_segy_are_along_x_however_traces_are_sorted(sorting: int, tmp_path: Path) -> None:
    velocity = (1500 + np.arange(5 * 5 * 4).reshape(5, 5, 4)).astype(np.float32)
    spec = segyio.spec()
    spec.format, spec.sorting, spec.samples, spec.ilines, spec.xlines = 5, sorting, range(4), range(1, 6), range(11, 16)
    crossed = sorting == segyio.TraceSortingFormat.CROSSLINE_SORTING
    with segyio.create(str(tmp_path / "v.segy"), spec) as file:
        for number, (slow, fast) in enumerate(np.ndindex(5, 5)):
            inline, crossline = (fast, slow) if crossed else (slow, fast)
            file.header[number] = {segyio.su.iline: 1 + inline, segyio.su.xline: 11 + crossline}
            file.trace[number] = velocity[inline, crossline]
    head = {**CUBE, "kind": "acoustic3d", "size": [40.0, 40.0, 30.0]}
    found = model('[medium]\nvelocity = { file = "v.segy" }', head, tmp_path)
    np.testing.assert_array_equal(found.propagator.medium.values("velocity"), velocity)


def test_layers_go_over_the_background_from_their_tops_down() -> None:
    layers = "[[layer]]\ntop = 50.0\nvelocity = 2000\n[[layer]]\ntop = 95.0\nvelocity = 2500\ndensity = 1900\n"
    medium = model(f"[medium]\nvelocity = 1500\ndensity = 1000\n{layers}").propagator.medium
    line = medium.values("velocity")[7]
    np.testing.assert_array_equal(line, [1500] * 5 + [2000] * 5 + [2500] * 6)
    np.testing.assert_array_equal(medium.values("density")[3], [1000] * 10 + [1900] * 6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float16])
def test_layers_keep_fractions_over_files_of_any_numbers(dtype: type, tmp_path: Path) -> None:
    for name, value in (("v", 200), ("e", 0)):
        np.save(tmp_path / f"{name}.npy", np.full((21, 16), value, dtype))
    text = '[medium]\nvelocity = { file = "v.npy" }\nepsilon = { file = "e.npy" }\n'
    layer = "[[layer]]\ntop = 50.0\nvelocity = 2000.1\nepsilon = 0.2\n"
    medium = model(text + layer, {**PLANE, "kind": "vti2d"}, tmp_path).propagator.medium
    np.testing.assert_array_equal(medium.values("velocity")[7], [200] * 5 + [2000.1] * 11)
    np.testing.assert_array_equal(medium.values("epsilon")[7], [0] * 5 + [0.2] * 11)


def test_angles_are_in_degrees() -> None:
    found = model("[medium]\nvelocity = 2000\ntilt = 30.0\nazimuth = 90.0\nepsilon = 0.2", CUBE)
    assert float(found.propagator.medium.values("tilt")) == pytest.approx(np.pi / 6)
    assert found.propagator.medium.kind == "tti"
    assert found.shape == found.build().problem.grid.shape


def test_epsilon_is_delta_around_sources_where_the_file_says_so() -> None:
    plain = "[medium]\nvelocity = 2000\nepsilon = 0.2\ndelta = 0.1\ntilt = 30.0\n"
    tilted = {**PLANE, "kind": "tti2d"}
    around, before = (model(text, tilted) for text in (plain + "elliptical = 20.0", plain))
    medium, (source,) = around.propagator.medium, around.sources
    node = tuple(round(x / h) for x, h in zip(source.position, medium.spacings, strict=True))
    epsilon = medium.values("epsilon")
    assert epsilon[node] == pytest.approx(0.1)
    assert epsilon[-1, -1] == pytest.approx(0.2)
    assert around.propagator.dt == before.propagator.dt
    assert around.memory(computing=True, writing=False).cells > before.memory(computing=True, writing=False).cells
    assert ["slow wave" in " ".join(one.shot.warnings) for one in (around, before)] == [False, True]
    with pytest.raises(UsageError, match=r"medium\.elliptical is no parameter of a model of kind 'acoustic2d'"):
        model("[medium]\nvelocity = 2000\nelliptical = 20.0")


def test_layers_are_of_the_kind_that_the_file_names() -> None:
    found = model("[medium]\nvelocity = 1500", {**PLANE, "absorber": "cpml"})
    assert found.scheme.absorber == "cpml"
    sponge = model("[medium]\nvelocity = 1500")
    assert len(found.build().problem.state) == len(sponge.build().problem.state) + 8
    memory, plain = (one.memory(computing=True, writing=False) for one in (found, sponge))
    assert memory.devices > plain.devices


@pytest.mark.parametrize("absorber", ["sponge", "cpml"])
def test_a_model_knows_its_shape_before_it_is_built(absorber: str) -> None:
    """Under a free surface, too, where tilted media need more cells above."""
    head = {**CUBE, "absorber": f'{absorber}"\nfree_surface = true #'}
    found = model("[medium]\nvelocity = 2000\ntilt = 30.0", head)
    assert found.shape == found.build().problem.grid.shape


def test_a_large_medium_of_numbers_is_planned_without_arrays() -> None:
    """A billion nodes are described in no memory to speak of; as layers they are arrays."""
    cube = {**CUBE, "kind": "acoustic3d", "size": [10230.0] * 3}
    plain, layered = (
        model("[medium]\nvelocity = 2000.0\n" + more, cube).memory(computing=False, writing=False).cells
        for more in ("", "[[layer]]\ntop = 500.0\nvelocity = 3000.0\n")
    )
    assert plain < 1 << 30
    assert layered > 1024**3 * 24
    assert model("[medium]\nvelocity = 2000.0\n", cube).build().problem.grid.shape == (1040,) * 3


@pytest.mark.parametrize("density", [None, 1000.0])
def test_the_steps_of_a_layered_medium_are_known_without_its_arrays(density: float | None) -> None:
    """A medium of 3 TB says so at once, and a column of one gives the time step of the whole."""
    medium = "[medium]\nvelocity = 1500.0\n[[layer]]\ntop = 50.0\nvelocity = 2800.0\n"
    if density is not None:
        medium = medium.replace("[[layer]]", f"density = {density}\n[[layer]]") + "density = 2100.0\n"
    timed = model(medium)
    timed = replace(timed, grid=replace(timed.grid, steps=None, time=0.4))
    assert timed.steps == timed.propagator.steps(0.4)
    for size in ((6e6, 6e6), (200.0, 6e11)):
        large = replace(timed, grid=replace(timed.grid, size=size))
        assert large.memory(computing=True, writing=False).cells > 1 << 40


def test_waves_of_any_length_are_warned_of_or_not() -> None:
    """A wave of 1e17 cells is none that a grid is coarse for."""
    found = model("[medium]\nvelocity = 1500.0\n")
    assert coarse(found.propagator, 1e-15) == ()
    assert "has 3.0 cells" in coarse(found.propagator, 50.0)[0]


def test_a_survey_is_checked_without_the_places_of_all_receivers() -> None:
    array = "[[receiver_array]]\nfirst = [30.0, 20.0]\nlast = [3e8, 20.0]\ncount = 2000000000\n"
    survey = '[survey]\nkind = "common_offset"\ntraces = 2\nstep = [1.0, 0.0]\n'
    described = model(f"[medium]\nvelocity = 1500.0\n{array}{survey}", {**PLANE, "size": [4e8, 150.0]})
    assert described.memory(computing=True, writing=False).records > 1 << 33


def test_results_are_the_gather_as_hdf5_segy_and_a_picture(tmp_path: Path) -> None:
    built = model("[medium]\nvelocity = 1500\n[output]\nsegy = true").build()
    with Simulation(built.problem, built.steps, devices="cpu:1", kernel="reference") as run:
        run.run(built.steps)
        fields = ((name, run.gather(name)) for name in run.problem.state)
        files = built.write(tmp_path, Outcome(run.traces(), fields, about={"devices": "cpu:1"}))
        expected = built.shot.gather(run.traces())
    assert [file.name for file in files] == ["gather.h5", "gather.segy", "gather.png"]
    with h5py.File(files[0]) as file:
        np.testing.assert_array_equal(file["traces"], expected.traces)
        np.testing.assert_allclose(file["receivers"][2], (50.0, 71.0))
        assert file["fields/u"].shape == (21, 16)
        assert file.attrs["dt"] == built.dt
        assert file.attrs["devices"] == "cpu:1"
        assert [dimension.label for dimension in file["fields/u"].dims] == ["x", "z"]
        np.testing.assert_allclose(file["fields/u"].dims[1]["z"], np.arange(16) * 10.0)
        np.testing.assert_allclose(file["traces"].dims[1]["time"], expected.times)
        assert file["receivers"].attrs["units"] == "m"
    with segyio.open(str(files[1]), ignore_geometry=True) as file:
        assert file.tracecount == 6
        text = file.text[0].decode()
        lines = [text[k : k + 80] for k in range(0, 3200, 80)]
        assert lines[0].startswith("C 1 PRESSURE OF SEISMIC WAVES, PEERGRID ")
        assert lines[3].startswith(f"C 4 SAMPLES EVERY {int(built.dt * 1e6)} MICROSECONDS")
        assert [line.rstrip() for line in lines[-2:]] == ["C39 SEG Y REV1", "C40 END TEXTUAL HEADER"]
        assert "DATE" not in text
        assert file.header[2][segyio.TraceField.EnergySourcePoint] == 1
        assert file.header[2][segyio.TraceField.GroupX] == 500000
        assert file.header[2][segyio.TraceField.ReceiverGroupElevation] == -710000
        assert file.bin[segyio.BinField.AuxTraces] == 0
        assert file.bin[segyio.BinField.MeasurementSystem] == 1
        interval = file.bin[segyio.BinField.Interval]
        assert interval == int(built.dt * 1e6)
        times = np.arange(file.trace[1].size) * interval * 1e-6
        near = np.interp(times, expected.times, expected.traces[1])
        assert np.abs(file.trace[1] - near).max() < 0.05 * np.abs(near).max()

    assert files[1].read_bytes()[3500:3504] == bytes([1, 0, 0, 1])  # revision 1.0, traces of one length


@pytest.mark.filterwarnings("ignore:The shortest wave", "ignore:Waves of")
def test_without_room_for_final_fields_there_is_all_else(tmp_path: Path) -> None:
    described = model("[medium]\nvelocity = 1500\n[output]\nsegy = true", {**PLANE, "size": [1500.0, 1500.0]})
    with pytest.raises(UsageError, match="The results are written without the final fields: Room to"), room(60_000):
        run_model(described, tmp_path, devices="cpu:1")
    assert {path.name for path in tmp_path.iterdir()} >= {"gather.h5", "gather.segy"}
    with h5py.File(tmp_path / "gather.h5") as file:
        assert file["traces"][:].any()
        assert "fields" not in file


@pytest.mark.parametrize(("extent", "error"), [(2.0, 5e-5), (2e5, 5e-5), (3e5, 5e-4), (3e6, 5e-3)])
def test_positions_in_segy_are_as_exact_as_they_can_be(extent: float, error: float, tmp_path: Path) -> None:
    """By the scalars of its headers, up to the far end of a medium."""
    source, receiver = np.array([[0.00314, 0.01234]]), np.array([[extent - 0.0004, extent / 3]])
    gather = Gather(np.ones((1, 24), np.float32), 1e-3, source, receiver)
    write_segy(tmp_path / "gather.segy", [gather], (extent, extent))
    with segyio.open(str(tmp_path / "gather.segy"), ignore_geometry=True) as file:
        header = file.header[0]
    across, down = (-header[name] for name in (segyio.TraceField.SourceGroupScalar, segyio.TraceField.ElevationScalar))
    found = [header[segyio.TraceField.SourceX] / across, header[segyio.TraceField.SourceDepth] / down]
    found += [header[segyio.TraceField.GroupX] / across, -header[segyio.TraceField.ReceiverGroupElevation] / down]
    assert np.abs(np.array(found) - np.concatenate([source[0], receiver[0]])).max() <= error * (1 + 1e-6)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"size": (2e-3, 2e-3), "spacing": 1e-4},
            "a time step from 1e-6 to 0.032767 s, as it counts whole microseconds, got 2.86e-08 s;",
        ),
        (
            {"size": (2e6, 2e6), "spacing": 1e5},
            "a time step from 1e-6 to 0.032767 s, as it counts whole microseconds, got 28.6 s;",
        ),
        ({"steps": 40000}, "at most 32767 samples of a trace, got 4"),
        ({"size": (3e7, 150.0), "spacing": (1e5, 10.0)}, "a medium of at most 21475 km along each axis"),
    ],
)
def test_what_segy_does_not_hold_is_refused_before_the_run(changes: Mapping[str, Any], sentence: str) -> None:
    described = model("[medium]\nvelocity = 1500\n[output]\nsegy = true")
    changed = replace(described, grid=replace(described.grid, **changes))
    with pytest.raises(UsageError, match=re.escape(f"output.segy needs {sentence}")):
        changed.check_results()
    replace(changed, output=replace(changed.output, segy=False)).check_results()


@pytest.mark.parametrize("head", [PLANE, CUBE], ids=["plane", "cube"])
def test_a_medium_is_drawn_before_it_runs(head: Mapping[str, Any], tmp_path: Path) -> None:
    """In metres, with a colour bar, sources and receivers; of a cube the section of its source."""
    layer = "[[layer]]\ntop = 50.0\nvelocity = 2500.0\n"
    built = model(f"[medium]\nvelocity = 1500.0\n{'tilt = 10.0' if head is CUBE else ''}\n{layer}", head).build()
    assert isinstance(built, PicturedBuilt)
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        built.picture(tmp_path / "medium.svg")
    text = (tmp_path / "medium.svg").read_text()
    for words in ("x (m)", "depth (m)", "velocity (m/s)", "sources", "receivers"):
        assert words in text
    assert ("section at y = 40 m" in text) == (head is CUBE)


@pytest.mark.parametrize(("gain", "label"), [("agc", "pressure, automatic gain control"), ("none", ">pressure<")])
def test_sections_of_surveys_have_gain_or_none(gain: Any, label: str, tmp_path: Path) -> None:
    places = np.array([[[10.0 * k, 5.0]] for k in range(3)])
    with h5py.File(tmp_path / "gathers.h5", "w") as file, matplotlib.rc_context({"svg.fonttype": "none"}):
        file["traces"], file["sources"], file["receivers"] = np.ones((3, 1, 24), np.float32), places, places + 50.0
        file.attrs["dt"] = 1e-3
        picture_survey(tmp_path / "section.svg", file, "", gain)
    assert label in (tmp_path / "section.svg").read_text()


def test_resampled_traces_are_those_of_the_same_wave() -> None:
    times, interval = np.arange(400) * 1.31e-3, 1e-3
    wave = np.exp(-(((times - 0.25) / 0.03) ** 2)) * np.cos(2 * np.pi * 40 * times)
    found = sampled(wave[np.newaxis], 1.31e-3, interval)[0]
    exact = np.arange(len(found)) * interval
    expected = np.exp(-(((exact - 0.25) / 0.03) ** 2)) * np.cos(2 * np.pi * 40 * exact)
    np.testing.assert_allclose(found, expected, atol=1e-3)


@pytest.mark.parametrize("count", [200, 500, 1234])
def test_resampled_traces_may_end_within_a_wave(count: int) -> None:
    step, interval = 1.5005e-3, 1.5e-3

    def wave(times: Any) -> Any:
        return np.cos(2 * np.pi * 20 * (times - (count - 1) * step) + 0.3) * np.clip(times / 0.1, 0, 1) ** 2

    found = sampled(wave(np.arange(count) * step)[np.newaxis], step, interval)[0]
    np.testing.assert_allclose(found, wave(np.arange(len(found)) * interval), atol=2e-3)


def test_the_example_of_a_streamer_is_a_model() -> None:
    found = read(ROOT / "examples" / "marine.toml")
    assert isinstance(found, WaveModel)
    assert found.shape == found.build().problem.grid.shape
    assert len(found.places) == 400
    assert found.memory(computing=True, writing=True).steps == found.steps == found.build().steps


MISTAKES: Mapping[str, tuple[str, Mapping[str, Any], str]] = {
    "kind": ("[medium]\nvelocity=1500", {**PLANE, "kind": "acustic2d"}, "did you mean 'acoustic2d'"),
    "key": ("[medium]\nvelocty=1500", PLANE, "medium.velocty is no known key; did you mean 'velocity'"),
    "file key": ('[medium]\nvelocity={ fil="v" }', PLANE, "medium.velocity.fil is no known key; did you mean 'file'"),
    "size": (
        "[medium]\nvelocity=1500", {**PLANE, "size": [204.0, 150.0]},
        r"grid.size along x is expected to be a whole number of cells of 10 m, got 204 m; use 200\.",
    ),
    "thin": ("[medium]\nvelocity=1500", {**PLANE, "size": [200.0, 1.0]}, r"along z is .*, got 1 m; use 10\."),
    "axes": ("[medium]\nvelocity=1500", {**PLANE, "kind": "acoustic3d"}, "grid.size is expected to have 3 numbers"),
    "receiver": ("[medium]\nvelocity=1500", {**PLANE, "last": [1, 2, 3]}, r"receiver_array\[1\].last is expected to"),
    "other": ("[medium]\nvelocity=1500\nepsilon=0.1", PLANE, "medium.epsilon is no parameter of a model of kind 'aco"),
    "azimuth": ("[medium]\nvelocity=1500\ntilt=1\nazimuth=1", {**PLANE, "kind": "tti2d"}, "medium.azimuth is no para"),
    "tilt": ("[medium]\nvelocity=1500\n", {**PLANE, "kind": "tti2d"}, "medium.tilt is expected"),
    "time order": (
        "[medium]\nvelocity=1500", {**PLANE, "kind": "vti2d", "absorber": "cpml\"\ntime_order = 4 #"},
        "grid.time_order is expected to be 2 in a medium with epsilon",
    ),
    "layer": (
        "[medium]\nvelocity=1500\n[[layer]]\ntop=1.0\ndensity=2.0", PLANE, r"layer\[1\].density is expected beside",
    ),
    "deep layer": (
        "[medium]\nvelocity=1500\n[[layer]]\ntop=1500.0\nvelocity=2000.0", PLANE,
        r"layer\[1\].top is expected to be a depth from 0 to 150 m, got 1500; correct it, or grid.size\.",
    ),
    "dense": (
        "[medium]\nvelocity=1500\n[[receiver_array]]\nfirst=[10.0, 71.0]\nlast=[170.0, 71.0]\ncount=2000", PLANE,
        r"receiver_array\[2\].count is expected to be at most 100 receivers to a cell, 1,601 on 16 cells, got 2,000",
    ),
    "missing": ('[medium]\nvelocity={ file = "none.npy" }', PLANE, "medium.velocity is expected in 'none.npy'"),
    "angle": (
        "[medium]\nvelocity=1500\ntilt=7000", {**PLANE, "kind": "tti2d"},
        r"^medium\.tilt is expected to be an angle from -100 to 100 radians, got 122\.173 \(7000 degrees\)\.$",
    ),
    "layer's angle": (
        "[medium]\nvelocity=1500\ntilt=7\n[[layer]]\ntop=9.0\n[[layer]]\ntop=50.0\ntilt=7000",
        {**PLANE, "kind": "tti2d"},
        r"^layer\[2\]\.tilt is expected to be an angle from -100 to 100 radians, got 122\.173 \(7000 degrees\)\.$",
    ),
    "slow": ("[medium]\nvelocity=-5.0", PLANE, r"^medium\.velocity is expected to be m/s, from .* to .*, got -5\.$"),
    "ending": ('[medium]\nvelocity={ file = "v.mat" }', PLANE, "a file that ends in .npy, .h5"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_answered_with_a_sentence(mistake: str) -> None:
    medium, head, sentence = MISTAKES[mistake]
    with pytest.raises(UsageError, match=sentence):
        model(medium, head).build()


def test_files_of_another_shape_and_without_a_name_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", VELOCITY[1:])
    with pytest.raises(UsageError, match=r"a value for each node, shape \(21, 16\), got \(20, 16\) in 'v.npy'"):
        model('[medium]\nvelocity = { file = "v.npy" }', folder=tmp_path).build()
    np.save(tmp_path / "v.npy", VELOCITY.T)
    with pytest.raises(UsageError, match=r"shape \(21, 16\), got \(16, 21\) in 'v.npy'; transpose it, or correct grid"):
        model('[medium]\nvelocity = { file = "v.npy" }', folder=tmp_path).build()
    with pytest.raises(UsageError, match=r"medium.velocity.dataset is for HDF5 and Zarr, .*, got 'v' with 'v.npy'"):
        model('[medium]\nvelocity = { file = "v.npy", dataset = "v" }', folder=tmp_path).build()
    np.save(tmp_path / "v.npy", np.where(VELOCITY > 2000, np.nan, VELOCITY))
    with pytest.raises(UsageError, match=r"medium.velocity is expected to be finite at every node, .* in 'v.npy'"):
        model('[medium]\nvelocity = { file = "v.npy" }', folder=tmp_path).build()
    np.save(tmp_path / "v.npy", -VELOCITY)
    with pytest.raises(UsageError, match=r"^medium\.velocity is expected to be m/s, .*, got -\d+ in 'v\.npy'\.$"):
        model('[medium]\nvelocity = { file = "v.npy" }', folder=tmp_path).build()
    as_hdf5(tmp_path)
    with pytest.raises(UsageError, match=r"it has model/velocity, other; name one of them as dataset"):
        model('[medium]\nvelocity = { file = "v.h5" }', folder=tmp_path).build()
    zarr.create_group(tmp_path / "v.zarr").create_array("vp", data=VELOCITY)
    for file, has in (("v.h5", "model/velocity, other"), ("v.zarr", "vp")):
        with pytest.raises(UsageError, match=f"with an array 'v'; it cannot be read: it has {has}; name one"):
            model(f'[medium]\nvelocity = {{ file = "{file}", dataset = "v" }}', folder=tmp_path).build()
