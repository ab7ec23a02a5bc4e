"""Input files of gprMax: what is read, what is refused, and the same media on every node as gprMax 4.0.1 has."""

from __future__ import annotations

import random
from math import prod, sqrt
from pathlib import Path

import h5py
import numpy as np
import pytest

from peergrid.errors import UsageError
from peergrid.gprmax import directions, read
from peergrid.gprmax.modelfile import TableModel
from peergrid.gprmax.table import TABLE, Noted, Refused, markdown
from peergrid.gprmax.waves import Pulse
from peergrid.grid import Index
from peergrid.jobs import run_model, run_survey
from peergrid.models import modelfile
from peergrid.models.fdtd3d import COMPONENTS, CoaxialFeed, ElectricDipole, PlaneWave, Wire
from peergrid.models.fdtd3d.incident import way

pytestmark = pytest.mark.filterwarnings("ignore:Source . is at its strongest:UserWarning")  # runs end early here
HERE = Path(__file__).parent
EDGE = "#edge: 0.02 0.02 0 0.04 0.02 0 pec\n"
SMALL = """\
#title: two dimensions
#domain: 0.12 0.1 0.002
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 41
#material: 6 0.01 1 0 soil
#waveform: ricker 1 1.5e9 pulse
#hertzian_dipole: z 0.061 0.08 0 pulse
#rx: 0.05 0.08 0
#box: 0 0 0 0.12 0.06 0.002 soil
"""


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "model.in"
    path.write_text(text)
    return path


def _sentence(tmp_path: Path, text: str) -> str:
    with pytest.raises(UsageError) as raised:
        modelfile.read(_file(tmp_path, text)).build()
    found = str(raised.value)
    assert "\n" not in found
    assert found.endswith((".", "?"))
    return found


def test_objects_of_every_kind_give_each_component_the_medium_of_gprmax() -> None:
    domain = read(HERE / "objects.in").domain
    with np.load(HERE / "objects.npz") as recorded:
        theirs, properties = recorded["ids"], recorded["properties"]
    media = domain.media
    own = np.array([(m.permittivity, m.conductivity, m.permeability, m.magnetic_loss) for m in media])
    for place, component in enumerate(COMPONENTS):
        axis = "xyz".index(component[1])
        electric = component[0] == "E"
        live = tuple(slice(int((k == axis) != electric), -1) for k in range(3))  # the rest never changes
        columns = slice(0, 2) if electric else slice(2, 4)
        expected = properties[theirs[place][live]][..., columns]
        found = own[domain.ids[place][live]][..., columns]
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=component)


def test_a_file_runs_and_leaves_results_in_gprmax_layout(tmp_path: Path) -> None:
    model = modelfile.read(_file(tmp_path, SMALL))
    assert (model.title, model.shape) == ("two dimensions", (60, 50))
    found = run_model(model, tmp_path / "found", devices="cpu:1")
    assert [path.name for path in found.outputs] == ["results.h5", "model.png", "receiver-rx1.png"]
    with h5py.File(tmp_path / "found" / "results.h5") as file:
        trace = file["rxs/rx1/Ez"][:]
        assert (file.attrs["Iterations"], trace.shape, trace[0]) == (41, (41,), 0.0)
        assert np.abs(trace).max() > 0
        assert file["rxs/rx1"].attrs["GridPosition"].tolist() == [25, 40, 0]


def test_receivers_without_a_name_are_called_as_in_gprmax(tmp_path: Path) -> None:
    """By their nodes, in rows too, and in a survey by those of the first trace."""
    lines = (
        "#hertzian_dipole: z 0.03 0.03 0.03 pulse", "#rx: 0.01 0.02 0.028", "#rx: 0.02 0.02 0.02 mine Ez",
        "#rx_array: 0.02 0.02 0.02 0.022 0.02 0.02 0.002 0 0", "",
    )  # fmt: skip
    text = VOLUME + "\n".join(lines)
    expected = ["Rx(5,10,14)", "mine", "Rx(10,10,10)", "Rx(11,10,10)"]
    run_model(read(_file(tmp_path, text)).without_pictures(), tmp_path / "one", devices="cpu:1")
    survey = read(_file(tmp_path, text + "#rx_steps: 0.002 0 0\n")).with_traces(2)
    run_survey(survey.without_pictures(), tmp_path / "two", devices="cpu:1")
    for folder in ("one", "two"):
        with h5py.File(tmp_path / folder / "results.h5") as file:
            assert [file[f"rxs/rx{number}"].attrs["Name"] for number in range(1, 5)] == expected


def test_sources_and_receivers_are_numbered_as_in_gprmax(tmp_path: Path) -> None:
    # gprMax 4.0.1 numbers voltage sources, electric and magnetic dipoles, single receivers, arrays, whatever the order
    lines = "#rx_array: 0.02 0.08 0 0.022 0.08 0 0.002 0 0\n#magnetic_dipole: x 0.06 0.07 0 pulse\n"
    text = lines + SMALL + "#voltage_source: z 0.05 0.07 0 50 pulse\n"
    run_model(modelfile.read(_file(tmp_path, text)), tmp_path / "out", devices="cpu:1")
    with h5py.File(tmp_path / "out/results.h5") as file:
        kinds = [file[f"srcs/src{number}"].attrs["Type"] for number in (1, 2, 3)]
        assert kinds == ["VoltageSource", "HertzianDipole", "MagneticDipole"]
        names = [file[f"rxs/rx{number}"].attrs["Name"] for number in (1, 2, 3)]
    assert names == ["Rx(25,40,0)", "Rx(10,40,0)", "Rx(11,40,0)"]


def test_points_half_way_between_nodes_go_down(tmp_path: Path) -> None:
    domain = read(_file(tmp_path, SMALL.replace("0.061 0.08", "0.061 0.083"))).domain
    source = domain.sources[0]
    assert isinstance(source, ElectricDipole)
    assert source.node == (30, 41, 0)


@pytest.mark.parametrize(("extent", "layers"), [("0.0309 0.0471", (15, 23)), ("0.0311 0.0469", (16, 24))])
def test_a_sector_is_as_thick_as_its_extents_are_apart(tmp_path: Path, extent: str, layers: tuple[int, int]) -> None:
    """The first is rounded to a node, then the thickness to cells; the far end may miss its nearest node."""
    lines = f"#material: 6 0 1 0 soil\n#cylindrical_sector: z 0.03 0.03 {extent} 0.015 20 300 soil n\n"
    domain = read(_file(tmp_path, VOLUME + lines)).domain
    soil = [medium.name for medium in domain.media].index("soil")
    found = np.flatnonzero((domain.ids[2] == soil).any(axis=(0, 1)))
    assert (found[0], found[-1] + 1) == layers


BETWEEN = """\
#domain: 0.06 inf 0.04
#domain_mode: TE
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 11
#material: 6 0 1 0 soil
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#box: 0 0 0 0.06 0.002 0.04 soil", 3.5),
        ("#box: 0 0.002 0 0.06 0.004 0.04 soil", 3.5),
        ("#box: 0 0 0 0.06 inf 0.04 soil", 6.0),
        ("#edge: 0.02 inf 0.02 0.03 inf 0.02 soil", 6.0),
        ("#edge: 0.02 0.002 0.02 0.03 0.002 0.02 soil", 6.0),
        ("#edge: 0.02 0 0.02 0.03 0 0.02 soil", 1.0),
        ("#plate: 0.02 0.002 0.02 0.03 0.004 0.02 soil", 6.0),
        ("#triangle: 0.01 0.002 0.01 0.05 0.002 0.01 0.01 0.002 0.04 0 soil", 6.0),
    ],
)
def test_fields_of_a_te_plane_lie_between_two_cells(tmp_path: Path, line: str, expected: float) -> None:
    domain = read(_file(tmp_path, f"{BETWEEN}{line}\n")).domain
    assert (domain.shape, domain.ids.shape) == ((30, 1, 20), (6, 31, 1, 21))
    assert domain.media[domain.ids[0, 12, 0, 10]].permittivity == expected


def test_edges_without_a_field_along_them_are_refused(tmp_path: Path) -> None:
    for text, mode in ((BETWEEN + "#edge: 0.02 0 0.02 0.02 0.002 0.02 pec", "TEy"), (SMALL + EDGE, "TMz")):
        assert f"to run along an axis with an electric field in mode {mode}, got " in _sentence(tmp_path, text)


def test_a_time_window_is_in_seconds_or_in_samples(tmp_path: Path) -> None:
    assert read(_file(tmp_path, SMALL.replace("_window: 41", "_window: +41"))).steps == 40
    seconds = read(_file(tmp_path, SMALL.replace("_window: 41", "_window: 1e-9")))
    assert seconds.plan.dt == 4.7173086734993682e-12
    assert seconds.steps == 212


def test_cells_of_every_size_have_a_time_step_or_are_refused(tmp_path: Path) -> None:
    """A step that would be rounded to 0 is none."""
    text = "#domain: {0} {0} {0}\n#dx_dy_dz: {1} {1} {1}\n#time_window: 41\n"
    step = read(_file(tmp_path, text.format("1e14", "1e13"))).plan.dt
    assert step == pytest.approx(1e13 / sqrt(3) / 299792458, rel=1e-14)
    assert "line 2: #dx_dy_dz is expected to allow a time" in _sentence(tmp_path, text.format("1e-18", "1e-19"))


def test_included_files_are_read_inside_the_folder_alone(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "soil.in").write_text("## dry\n#material: 4 0 1 0 dry\n")
    (tmp_path / "secret.in").write_text("#title: secret\n")
    model = inner / "model.in"
    model.write_text(SMALL + "#include_file: soil.in\n")
    assert "dry" in [medium.name for medium in read(model).domain.media]
    (inner / "link.in").symlink_to(tmp_path / "secret.in")
    for name in ("../secret.in", str(tmp_path / "secret.in"), "link.in", "model.in", ""):
        model.write_text(SMALL + f"#include_file: {name}\n")
        with pytest.raises(UsageError, match="line 10: #include_file is expected to"):
            read(model)
    (inner / "bytes.in").write_bytes(b"\xff\xfe\x00")
    for name in ("nowhere.in", "bytes.in", "."):
        model.write_text(SMALL + f"#include_file: {name}\n")
        with pytest.raises(UsageError, match=r"^model.in, line 10: #include_file is expected to name a file of UTF-8"):
            read(model)


def test_sentences_about_a_domain_begin_with_the_file(tmp_path: Path) -> None:
    """One found where a line is read, one where objects are put in, and one of no line at all."""
    for line, told in (
        ("#boxx: 1", "model.in, line 10: a command"),
        ("#box: 0 0 0 0.1 0.05 0.002 sol", "model.in, line 10: #box"),
        ("#pml_cells: 60", "model.in, line 10: #pml_cells is"),
        ("#hertzian_dipole: z 0.05 0.05 0 w 0 0", "model.in, line 10: #hertzian_dipole is"),
    ):
        assert _sentence(tmp_path, f"{SMALL}{line}\n").startswith(told)


def test_passed_over_commands_are_said(tmp_path: Path) -> None:
    model = modelfile.read(_file(tmp_path, SMALL + "#output_dir: elsewhere\n"))
    assert any(note.startswith("model.in, line 10: #output_dir is ignored; ") for note in model.build().warnings)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("#voltage_source: z 0.05 0.05 0 50 w 0 1e-9 feed nyquist 75", "feed nyquist 75 of #voltage_source"),
        ("#voltage_source: z 0.05 0.05 0 50 w 0 1e-9", ""),
        ("#hertzian_dipole: z 0.05 0.05 0 w 0 1e-9", ""),
        ("#box: 0 0 0 0.1 0.05 0.002 soil y ground", "the tag ground of #box"),
        ("#box: 0 0 0 0.1 0.05 0.002 soil y", ""),
        ("pml_cells: 3", "'pml_cells' is ignored; a command has its # at the beginning of the line."),
        ("  #box: 0 0 0 1 1 1 soil", "'box' is ignored"),
        ("sand: as it was measured", ""),
    ],
)
def test_words_that_change_no_field_are_said(tmp_path: Path, line: str, words: str) -> None:
    """Names of ports with the limits of their spectra, tags, and commands that are comments."""
    notes = modelfile.read(_file(tmp_path, f"{SMALL}#waveform: ricker 1 1e9 w\n{line}\n")).build().warnings
    said = [note for note in notes if note.startswith("model.in, line 11: ")]
    assert (len(said), words in "".join(said)) == (int(words != ""), True)


def test_every_other_command_is_refused_by_name_and_line(tmp_path: Path) -> None:
    refused = [name for name, entry in TABLE.items() if isinstance(entry, Refused)]
    for name in refused:
        sentence = _sentence(tmp_path, f"{SMALL}#{name}: 1\n")
        assert f"line 10: #{name} is not supported; " in sentence
    for name in ("python", "end_python"):
        assert f"line 10: #{name} is not supported, " in _sentence(tmp_path, f"{SMALL}#{name}:\n")
    assert sum(isinstance(entry, Noted) for entry in TABLE.values()) + len(refused) < len(TABLE)


def test_the_documents_list_every_command() -> None:
    assert markdown() in (HERE.parents[1] / "docs" / "gprmax.md").read_text()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#boxx: 1", "did you mean '#box'?"),
        ("#box 1 2 3", "'#name: words'"),
        ("#python:", "expand them beforehand"),
        ("#box: 0 0 0 1 1 1 soil", "to lie within the domain"),
        ("#box: 0 0 0 0.1 0.05 0.002 sol", "did you mean 'soil'?"),
        ("#box: 0 0 0 0.1 0.05 0.002 PEC", "to name a material, got 'PEC'; did you mean 'pec'?"),
        ("#hertzian_dipole: z 0.05 0.05 0 my_Pulse", "to name a #waveform, got 'my_Pulse'; did you mean 'pulse'?"),
        ("#hertzian_dipole: z 0.05 0.05 0 other", "to name a #waveform, got 'other'; define it."),
        ("#sphere: 0.05 0.05 0 -1 soil", "as word 4, got '-1'"),
        ("#waveform: square 1 1e9 w", "'square'"),
        ("#domain: 1 1 1", "line 10: #domain is expected once in a model, got it again; keep this or that of model.in"),
        ("#include_file: a b", "line 10: #include_file"),
        ("#pml_cfs: " + "constant forward 0 1 " * 3 + "port", "line 10: #pml_cfs is expected to be for all absorbers"),
        ("#pml_formulation: HORIPML port", "got those of 'port'; take the name out"),
        ("#ntff_surface: 0.02 0.02 0 0.08 0.04 0 s z0", "#ntff_surface is expected to have all six faces"),
        ("#ntff_far_field: 30 40 f n Etheta Emany", "got 'Emany'"),
        ("#time_step_stability_factor: 1 2", "to have 1 word, got 2"),
        ("#waveform: ricker 1 1e9 pulse", "line 10: #waveform is expected to have a name of its own, got 'pulse'"),
        ("#add_dispersion_debye: 1 3 1e-11 pec", "to give poles to no perfect conductor, got 'pec'"),
        ("#add_dispersion_debye: 1 3 1e-11 soil pmc", "to give poles to no perfect conductor, got 'pmc'"),
        ("#add_dispersion_debye: 1 3 1e-11 soil\n#add_dispersion_lorentz: 1 3 1e9 1e8 soil",
         "line 11: #add_dispersion_lorentz is expected to give a medium all its poles, got 'soil' again"),
        ("#transmission_line: z 0.05 0.05 0 377 pulse", "a resistance above 0 and below 376.73 Ω as word 5, got '377'"),
        ("#rx: 0.05 0.05 9 name Ez", None),
        ("#rx: 0.05 0.05 0 name Q", "'Q'"),
    ],
)  # fmt: skip
def test_what_cannot_mean_anything_is_one_sentence(tmp_path: Path, line: str, expected: str | None) -> None:
    if expected is None:  # nothing varies along z
        modelfile.read(_file(tmp_path, f"{SMALL}{line}\n")).build()
    else:
        assert expected in _sentence(tmp_path, f"{SMALL}{line}\n")


MORE = """
#waveform: ricker 1 1.5e9 more
#thin_wire: 0.06 0.055 0.04 0.06 0.055 0.06 0.0005
#plane_wave_vector: 0.03 0.03 0.03 0.08 0.07 0.06 1 2 -1 30 more
#plane_wave_angles: 0.03 0.03 0.03 0.08 0.07 0.06 36.7 63.4 10 more
#plane_wave_axial: 0.03 0.03 0.03 0.08 0.07 0.06 30 z more
#plate: 0.03 0.03 0.04 0.08 0.07 0.04 pec
#magnetic_frill_source: z 0.06 0.055 0.04 50 more
"""


def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    chance, text = random.Random(7), (HERE / "objects.in").read_text() + MORE
    refused: list[str] = []
    for _ in range(300):
        try:
            model = read(_file(tmp_path, _mutated(text, chance)))
            if prod(model.shape) < 100_000:
                model.build()
        except UsageError as error:
            refused.append(str(error))
    assert len(refused) > 100
    assert not [sentence for sentence in refused if "\n" in sentence]


def _mutated(text: str, chance: random.Random) -> str:
    lines = text.splitlines()
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(lines))
        words = lines[at].split(" ")
        other = chance.choice(("nan", "1e400", "-1", "x", "", "\x00", "9" * 40, "inf", "../a", "é", "#box:", "0"))
        words[chance.randrange(len(words))] = other
        lines[at] = " ".join(words)
    return "\n".join(lines)


def test_waveforms_from_files_have_names_of_their_own(tmp_path: Path) -> None:
    for names in ("own own", "own pulse"):
        (tmp_path / "waves.txt").write_text(f"{names}\n0 1\n1 0\n")
        said = _sentence(tmp_path, f"{SMALL}#excitation_file: waves.txt\n")
        assert said.startswith("model.in, line 10: #excitation_file is expected to have a name of its own, got '")


def test_waveforms_are_those_of_gprmax() -> None:
    times = np.array([0.0, 0.7e-9, 1.3e-9])
    for kind, expected in {
        "contsine": [0.0, -0.16643489, 0.30909337],
        "impulse": [1.0, 0.0, 0.0],
        "sine": [0.0, -0.95105652, 0.0],
    }.items():
        np.testing.assert_allclose(Pulse(kind, 1.0, 1e9, 1e-11).sample(times), expected, atol=1e-8)


WAVE = "#plane_wave_vector: 0.02 0.02 0.02 0.04 0.042 0.044 0 -1 0 30 pulse"
VOLUME = """\
#domain: 0.06 0.06 0.06
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 11
#pml_cells: 3
#waveform: ricker 1 1.5e9 pulse
"""


@pytest.mark.parametrize(
    "line", [WAVE, "#plane_wave_angles: 0.02 0.02 0.02 0.04 0.042 0.044 90 270 30 pulse free_space 0 1e-9"]
)
def test_a_plane_wave_is_read(tmp_path: Path, line: str) -> None:
    model = read(_file(tmp_path, VOLUME + line))
    (wave,) = model.domain.sources
    assert model.build().problem.signals
    assert isinstance(wave, PlaneWave)
    assert (wave.lo, wave.hi, wave.origin) == ((10, 10, 10), (20, 21, 22), (0, 31, 0))
    assert wave.direction == (0, -1, 0)
    assert wave.polarisation == pytest.approx((-np.cos(np.pi / 6), 0, 0.5), abs=1e-12)
    assert wave.drive.stop == (1e-9 if "angles" in line else np.inf)


def test_a_plane_wave_onto_layers_is_read(tmp_path: Path) -> None:
    """It sets out 25 cells before the domain, in what is there; a model file says the same."""
    line = "#plane_wave_axial: 0.02 0.02 0.02 0.04 0.042 0.044 30 y pulse 0 1e-9"
    model = read(_file(tmp_path, VOLUME + line))
    (wave,) = model.domain.sources
    assert isinstance(wave, PlaneWave)
    assert (wave.direction, wave.medium, wave.origin, wave.drive.stop) == ((0, 1, 0), None, (0, -25, 0), 1e-9)
    again = modelfile.parse(model.written(tmp_path)[0], tmp_path)
    assert isinstance(again, TableModel)
    assert again.domain.sources == model.domain.sources
    assert "as word 8" in _sentence(tmp_path, VOLUME + line.replace(" y ", " w "))


def test_a_coaxial_feed_is_read(tmp_path: Path) -> None:
    """With a limit of its spectrum, which changes no field; a model file says the same."""
    text = VOLUME + "#plate: 0 0 0.02 0.06 0.06 0.02 pec\n#thin_wire: 0.03 0.03 0.02 0.03 0.03 0.04 0.0004\n"
    line = "#magnetic_frill_source: z 0.03 0.03 0.02 50 pulse 1e-10 1e-9 nyquist"
    model = read(_file(tmp_path, text + line))
    (feed,) = model.domain.sources
    assert isinstance(feed, CoaxialFeed)
    assert (feed.node, feed.resistance, feed.drive.start, feed.drive.stop) == ((15, 15, 10), 50.0, 1e-10, 1e-9)
    assert model.build().feeds
    again = modelfile.parse(model.written(tmp_path)[0], tmp_path)
    assert isinstance(again, TableModel)
    assert again.domain.sources == model.domain.sources
    assert "on an edge of a wire along x" in _sentence(tmp_path, text + line.replace(" z ", " x "))


@pytest.mark.parametrize(
    ("theta", "phi", "expected"),
    [
        (36.7, 63.4, (1, 2, 3)),
        (90, 45, (1, 1, 0)),
        (125.3, 315, (1, -1, -1)),
        (10, 200, (-19, -7, 115)),
        (0, 30, (0, 0, 1)),
    ],
)
def test_angles_become_whole_numbers(theta: float, phi: float, expected: Index) -> None:
    """The smallest; on cells of another shape the same angles have other numbers."""
    t, p = np.radians((theta, phi))
    towards = tuple(round(float(v), 13) for v in (np.sin(t) * np.cos(p), np.sin(t) * np.sin(p), np.cos(t)))
    assert directions.whole(towards, (0.002,) * 3) == expected
    flat = directions.whole(towards, (0.002, 0.004, 0.001))
    assert np.cos(np.radians(0.05)) < np.dot(way(flat, (0.002, 0.004, 0.001)), towards) <= 1 + 1e-12


def test_an_old_notation_of_plane_waves(tmp_path: Path) -> None:
    old = "#discrete_plane_wave: 0.02 0.02 0.02 0.04 0.042 0.044 90 63.4 36.7 pulse"
    (found,) = read(_file(tmp_path, VOLUME + old)).domain.sources
    new = old.replace("discrete_plane_wave", "plane_wave_angles").replace("90 63.4 36.7", "36.7 63.4 90")
    (wave,) = read(_file(tmp_path, VOLUME + new)).domain.sources
    assert (found, wave.direction) == (wave, (1, 2, 3))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (WAVE.replace("0 -1 0", "0 0 0"), "is expected to have a direction, got 0 0 0"),
        (WAVE + " mud", "is expected in a medium of the domain that is no perfect conductor, got 'mud'"),
        (WAVE.replace(" 30 ", " 400 "), "to have an angle from 0 to 360 degrees as word 10"),
    ],
)
def test_other_plane_waves_are_refused(tmp_path: Path, line: str, said: str) -> None:
    assert said in _sentence(tmp_path, VOLUME + line)


CFS = "#pml_cfs: constant forward 0 0 constant forward {0} {0} quartic forward 0 None"


@pytest.mark.parametrize(
    ("lines", "number", "said"),
    [
        (["#hertzian_dipole: z 0.03 0.03 0.06 pulse"], 6, "expected on nodes from 0 to (30, 30, 29), which have Ez"),
        (["#magnetic_dipole: y 0.06 0.03 0.03 pulse"], 6, "expected on nodes from 0 to (29, 30, 29), which have Hy"),
        (["#plate: 0.02 0.02 0.03 0.04 0.04 0.03 pec", "#voltage_source: x 0.03 0.03 0.03 50 pulse"], 7,
         "expected between conductors, got 'pec' at its edge"),
        (["#plane_wave_vector: 0 0.02 0.02 0.04 0.04 0.04 0 0 1 0 pulse"], 6, "expected in a box within nodes 1 to 29"),
        (["#thin_wire: 0.03 0.03 0.02 0.03 0.03 0.04 0.001"], 6, "expected to have a radius above 0 and below half"),
        (["#pml_cfs: " + 3 * "constant forward 1 1 "] * 3, 8, "expected to have one stretch or two, got 3"),
        ([CFS.format(0)], 6, "expected to have least values of κ that add up to at least 1, each above 0, got 0;"),
        ([CFS.format(1), CFS.format(0)], 7, "expected to have least values of κ that add up"),
    ],
)  # fmt: skip
def test_sentences_about_a_domain_begin_with_command_and_line(
    tmp_path: Path, lines: list[str], number: int, said: str
) -> None:
    found = _sentence(tmp_path, VOLUME + "\n".join(lines))
    assert found.startswith(f"model.in, line {number}: {lines[-1].partition(':')[0]}")
    assert said in found


def test_sentences_about_thick_absorbers_and_axes_begin_with_command_and_line(tmp_path: Path) -> None:
    thick = _sentence(tmp_path, VOLUME.replace("cells: 3", "cells: 15"))
    assert thick.startswith("model.in, line 4: #pml_cells is expected to leave cells between its sides along x, got 30")
    turned = _sentence(tmp_path, SMALL.replace("dipole: z", "dipole: x"))
    assert turned.startswith("model.in, line 7: #hertzian_dipole drives Ex, which mode TMz does not have")


FAR = """\
#hertzian_dipole: z 0.03 0.03 0.03 pulse
#ntff_surface: 0.014 0.016 0.018 0.044 0.046 0.042 around
#ntff_frequency: around band 1e9 2e9 rectangular
#ntff_far_field_array: 0 180 45 0 270 90 band sphere Etheta Ephi rcs
"""


WIRE = "#thin_wire: 0.03 0.03 0.02 0.03 0.03 0.04 0.0005"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (WIRE.replace("0.04", "0.02"), "is expected to reach from lower to higher nodes along one axis"),
        (WIRE.replace("0.02", "0.05"), "is expected to reach from lower to higher nodes along one axis"),
        (WIRE.replace("0.0005", "0.002"), "is expected to have a radius above 0 and below half a cell, 0.001 m"),
        (WIRE.replace("0.04", "0.056"), "is expected inside the domain and outside of absorbers"),
    ],
)
def test_wires_that_cannot_be_are_refused(tmp_path: Path, line: str, said: str) -> None:
    (wire,) = read(_file(tmp_path, VOLUME + WIRE)).domain.wires
    assert wire == Wire("z", (15, 15, 10), 10, 0.0005)
    assert said in _sentence(tmp_path, VOLUME + line)


def test_far_fields_by_kirchhoffs_integral_are_those_of_currents(tmp_path: Path) -> None:
    text = FAR.replace("ntff_frequency", "ksir_frequency").replace("ntff_far", "ksir_far")
    model, other = read(_file(tmp_path, VOLUME + text)), read(_file(tmp_path, VOLUME + FAR))
    assert model.domain.far_fields == other.domain.far_fields
    (told,) = set(model.build().warnings) - set(other.build().warnings)
    assert told.startswith("model.in, line 8: far fields come from the currents on the surface")


def test_fields_far_away_are_asked_for(tmp_path: Path) -> None:
    model = read(_file(tmp_path, VOLUME + FAR + "#ntff_far_field: 90 180 band"))
    sphere, back = model.domain.far_fields
    assert (sphere.lo, sphere.hi, sphere.frequencies) == ((7, 8, 9), (22, 23, 21), (1e9, 2e9))
    assert (sphere.theta, sphere.phi) == ((0, 45, 90, 135, 180), (0, 90, 180, 270))
    assert (back.theta, back.phi, back.name) == ((90,), (180,), "band")
    assert any("results have r E_theta and r E_phi, from which rcs follow" in note for note in model.build().warnings)
    with pytest.warns(UserWarning, match="rcs follow"):
        assert run_model(model, devices="cpu:1").sha256


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("rectangular", "hann", "is expected to have a rectangular window, got 'hann'"),
        ("180 45 0", "180 0 0", "to have a step from 0.001 to 360 degrees as word 3"),
        ("270 90 band", "270 90 bend", "is expected to name an #ntff_frequency, got 'bend'"),
        ("around band", "about band", "is expected to name an #ntff_surface, got 'about'"),
        ("0.014 0.016", "0 0.016", "is expected to have a box within nodes 1 to"),
        ("0 180 45", "90 0 45", "is expected to go from lower to higher angles, got 90 to 0"),
    ],
)
def test_fields_far_away_that_cannot_be_are_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert said in _sentence(tmp_path, VOLUME + FAR.replace(old, new))
