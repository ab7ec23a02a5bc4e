"""Model files of the kind fdtd3d: what they say, and that input files of gprMax become such files, bit by bit."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from peergrid.cli import app
from peergrid.errors import UsageError
from peergrid.gprmax import InputModel
from peergrid.gprmax.assemble import Plan
from peergrid.gprmax.items import Setting
from peergrid.gprmax.objects import Placed
from peergrid.gprmax.text import Command
from peergrid.jobs import run_model, run_survey
from peergrid.models import modelfile, parse
from peergrid.models.fdtd3d import Domain
from peergrid.models.registry import reader
from peergrid.models.survey import Positions, Steps, shifts, surveyed

pytestmark = pytest.mark.filterwarnings("ignore:Source . is at its strongest:UserWarning")  # runs end early here
HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
PLANE = """\
#domain: 0.06 0.05 0.002
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 41
#pml_cells: 4
#material: 6 0.01 1 0 soil
#waveform: gaussiandotnorm 2 1.5e9 pulse
#hertzian_dipole: z 0.031 0.04 0 pulse
#rx: 0.024 0.036 0
#box: 0 0 0 0.06 0.03 0.002 soil
"""
SPACE = """\
#title: "quotes", \\ and ü
#domain: 0.04 0.036 0.032
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 1.2e-10
#time_step_stability_factor: 0.9
#pml_cells: 4 3 4 2 4 5
#symmetry_boundary: y0 pec
#pml_formulation: MRIPML
#pml_cfs: constant forward 0 0.1 linear reverse 1 3 quartic forward 0 none
#pml_cfs: quadratic forward 0.05 0 constant forward 1 1 cubic forward 0 2
#magnetic_averaging: arithmetic
#material: 6 0.01 1 0.5 soil
#material: 4 0 1 0 wet
#add_dispersion_debye: 2 3 9e-12 1.7 3e-11 wet soil
#material: 3 0 1 0 resonant
#material: 2 0 1 0 plasma
#add_dispersion_lorentz: 1 0.7 4e9 2e8 resonant
#add_dispersion_drude: 1 1e9 3e8 plasma
#box: 0 0 0 0.04 0.036 0.014 soil n
#box: 0.02 0.01 0.01 0.03 0.02 0.02 wet pec soil
#box: 0.03 0.01 0.01 0.034 0.02 0.02 resonant plasma soil
#excitation_file: pulse.txt linear 0
#waveform: contsine 1 1.5e9 wave
#rx_array: 0.014 0.014 0.018 0.018 0.018 0.018 0.002 0.004 0.002
#rx: 0.016 0.018 0.018 last Ez Ix
#magnetic_dipole: y 0.012 0.016 0.02 pulse 1e-11 1e-10
#transmission_line: z 0.02 0.018 0.018 73 wave
#voltage_source: x 0.024 0.018 0.018 0 wave
#plane_wave_vector: 0.012 0.012 0.012 0.028 0.024 0.022 1 0 -2 30 wave
#thin_wire: 0.016 0.018 0.01 0.016 0.018 0.014 0.0003
#ntff_surface: 0.01 0.01 0.01 0.03 0.026 0.024 box
#ntff_frequency: box band 1e9 2e9 rectangular
#ntff_far_field_array: 0 90 30 0 0 1 band
#snapshot: 0.008 0.008 0.008 0.032 0.028 0.024 0.004 0.004 0.002 10 early
#snapshot: 0.008 0.008 0.008 0.032 0.028 0.024 0.002 0.002 0.002 1e-10 late.h5
"""


def _file(folder: Path, text: str) -> Path:
    (folder / "pulse.txt").write_text("pulse\n0\n1\n-0.7\n0.3\n0\n")
    path = folder / "model.in"
    path.write_text(text)
    return path


def _both(path: Path, traces: int | None = None) -> tuple[InputModel, InputModel]:
    """An input file's model, and that of the file that it is converted into."""
    model = modelfile.read(path)
    assert isinstance(model, InputModel)
    model = model if traces is None else model.with_traces(traces)
    again = parse(model.written(path.parent)[0], path.parent)
    assert isinstance(again, InputModel)
    return model, again


def _assert_same(one: Domain, two: Domain) -> None:
    for field in (field.name for field in fields(Domain) if field.name not in ("ids", "sources")):
        assert getattr(one, field) == getattr(two, field), field
    np.testing.assert_array_equal(one.ids, two.ids)
    for a, b in zip(one.sources, two.sources, strict=True):
        assert replace(a, drive=b.drive) == b
        for half in (False, True):
            given, found = (source.drive.samples(one.steps, one.dt, half) for source in (a, b))
            np.testing.assert_array_equal(given, found)
            assert np.abs(found).max() > 0


@pytest.mark.parametrize("name", ["objects.in", "soils.in", "cells.in", "part.in"])
def test_converted_files_have_the_same_medium_everywhere(name: str) -> None:
    one, two = _both(HERE / name)
    _assert_same(one.domain, two.domain)


@pytest.mark.parametrize("text", [SPACE, PLANE.replace("dipole: z", "dipole: x") + "#domain_mode: TE\n"])
def test_converted_files_are_of_the_same_domain(text: str, tmp_path: Path) -> None:
    one, two = _both(_file(tmp_path, text))
    _assert_same(one.domain, two.domain)
    assert one.build().regions == two.build().regions


def test_converted_files_give_the_same_bits(tmp_path: Path) -> None:
    one, two = _both(_file(tmp_path, PLANE))
    given, found = (run_model(model, devices="cpu:1") for model in (one, two))
    assert given.sha256 == found.sha256
    assert given.traces.keys() == found.traces.keys()
    for name, values in given.traces.items():
        np.testing.assert_array_equal(values, found.traces[name])
        assert np.abs(values).max() > 0 or name.split(".")[1] not in ("Ez", "Hx", "Hy")


def test_a_survey_by_steps_is_a_table(tmp_path: Path) -> None:
    steps = PLANE + "#src_steps: 0.002 0 0\n#rx_steps: 0.004 0 0\n"
    one, two = _both(_file(tmp_path, steps), traces=3)
    assert one.survey == two.survey == Steps(3, (0.002, 0.0), (0.004, 0.0))
    digests = {run_survey(model, tmp_path / str(n), devices="cpu:1").sha256 for n, model in enumerate((one, two))}
    assert len(digests) == 1
    with pytest.raises(UsageError, match="set the table"):
        two.with_traces(2)


def test_a_study_is_a_table_of_positions(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("case_id,object_id,x_m,y_m,z_m\na,rx_1,0.02,0.03,0\nb,rx_1,0.03,0.03,0\n")
    one, two = _both(_file(tmp_path, PLANE + "#study: gpr cases.csv\n"))
    assert isinstance(one.survey, Positions)
    assert one.survey == two.survey


def test_what_a_model_file_cannot_say_is_refused_by_command_and_line(tmp_path: Path) -> None:
    for line, said in (
        (
            "#add_dispersion_debye: 1 3 9e-12 free_space",
            "line 10: #add_dispersion_debye is expected to be of a material",
        ),
        (f"#material: 6 0.01 1 0 {'x' * 101}", "line 10: #material is expected to be what a model file can say"),
    ):
        model = modelfile.read(_file(tmp_path, f"{PLANE}{line}\n"))
        assert isinstance(model, InputModel)
        with pytest.raises(UsageError, match=said):
            model.written(tmp_path)


def test_what_has_no_table_is_refused(tmp_path: Path) -> None:
    model, _ = _both(_file(tmp_path, PLANE))
    for item, said in (
        (Placed(Command("wire", "", "line 3")), "line 3: #wire is expected to have a table in model files, got none; "),
        (Setting("wiring", 1), "#wiring is expected to have a key in model files, got none; "),
    ):
        with pytest.raises(UsageError, match=said):
            replace(model, plan=Plan((*model.plan.items, item))).written(tmp_path)


def test_the_command_writes_a_file_that_runs_from_another_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "there").mkdir()
    output = tmp_path / "there" / "model.toml"
    given = _file(tmp_path, SPACE + "#src_steps: 0.002 0 0\n#output_dir: there\n")
    for _ in range(2):  # it may be written again
        app(["convert", str(given), str(output)], standalone_mode=False)
    said = capsys.readouterr()
    assert said.out == 2 * f"wrote {output}\n"
    assert "#src_steps has no effect" in said.err
    assert "#output_dir is ignored" in said.err
    model = modelfile.read(output)
    assert isinstance(model, InputModel)
    _assert_same(_both(given)[0].domain, model.domain)
    other = tmp_path / "mine.toml"
    other.write_text("[model]\n")
    for words, match in (
        ((given, other), "a model file of 'peergrid convert' to replace"),
        ((given, tmp_path / "x.txt"), "are expected, got"),
        ((output, other), "are expected, got"),
    ):
        with pytest.raises(UsageError, match=match):
            app(["convert", *map(str, words)], standalone_mode=False)
    assert other.read_text() == "[model]\n"


def test_the_example_hears_the_pipe() -> None:
    model = modelfile.read(EXAMPLES / "pipe3d.toml")
    without = tomllib.loads((EXAMPLES / "pipe3d.toml").read_text())
    without["shape"] = without["shape"][:1]
    bare = reader("fdtd3d")(without)
    with_pipe, alone = (run_model(one, devices="cpu:2").traces["rx1.Ex"] for one in (model, bare))
    assert 0.01 < np.abs(with_pipe - alone).max() / np.abs(with_pipe).max() < 0.1


JUNK: list[Any] = [10**400, []]


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value, tables and lists included."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield (*path, key)
        yield from _places(part, (*path, key))


def test_junk_anywhere_is_refused_in_one_sentence_or_means_something(tmp_path: Path) -> None:
    model, _ = _both(_file(tmp_path, SPACE))
    whole = tomllib.loads(model.written(tmp_path)[0])
    sentences = []
    for path in _places(whole):
        for junk in JUNK:
            table = copy.deepcopy(whole)
            spot: Any = table
            for key in path[:-1]:
                spot = spot[key]
            spot[path[-1]] = junk
            try:
                reader("fdtd3d")(table).memory(computing=True, writing=True)
            except UsageError as error:
                sentences.append(str(error))
    assert len(sentences) > 300
    assert all(sentence.endswith((".", "?")) and "\n" not in sentence for sentence in sentences)


SMALL = """
[model]
kind = "fdtd3d"
[grid]
size = [0.04, 0.036, 0.032]
spacing = 0.002
steps = 10
{grid}
[absorber]
cells = 4
[[material]]
name = "soil"
permittivity = 4
{material}
[[shape]]
kind = "box"
material = "soil"
lower = [0, 0, 0]
upper = [0.04, 0.036, 0.01]
{shape}
[[source]]
kind = "electric_dipole"
axis = "z"
position = [0.02, 0.018, 0.02]
waveform = {{ kind = "ricker", frequency = 1e9 }}
{source}
[[receiver]]
position = [0.024, 0.018, 0.02]
{more}
"""


@pytest.mark.parametrize(
    ("where", "line", "sentence"),
    [
        ("grid", "time_window = 1e-9", "grid is expected to have a time_window or a number of steps, got both; give "),
        ("grid", "spacings = 1", "grid.spacings is no known key; did you mean 'spacing'?"),
        ("shape", "smoth = false", "shape[1].smoth is no known key; did you mean 'smooth'?"),
        ("shape", '[[shape]]\nkind = "bx"', "shape[2].kind is expected to be 'box', "),
        ("shape", '[[shape]]\nkind = "sphere"\nmaterial = "soil"\ncentre = [1, 1, 1]\nradius = 0.01',
         "shape[2] is expected to have at least one cell of the grid in it, got none; enlarge or move it."),
        ("shape", '[[shape]]\nkind = "plate"\nmaterial = "sol"\nlower = [0, 0, 0]\nupper = [0.01, 0.01, 0]',
         "shape[2] is expected to name a material, got 'sol'; did you mean 'soil'?"),
        ("material", 'poles = [{ kind = "lorentz", strength = 1, frequency = 1e6, damping = 1e9 }]',
         "material[1] is expected to have a damping below the pole's angular frequency, got 1e+09 per second; lower "),
        ("source", "start = 2e-9\nstop = 1e-9", "source[1] is expected to stop after it starts, got 2e-09 and 1e-09"),
        ("source", "resistance = 50", "source[1].resistance is no known key; known are axis, position, waveform, "),
        ("more", "[[receiver]]\nposition = [1, 1, 1]", "receiver[2] is expected to lie within the domain, nodes 0 to "),
        ("more", '[[snapshot]]\nlower = [0, 0, 0]\nupper = [0.01, 0.01, 0.01]\nname = "x"',
         "snapshot[1] is expected to have a time, or steps that it is after, got neither; give one of them."),
        ("more", '[[view]]\nlower = [0, 0, 0]\nupper = [0.01, 0.01, 0.01]\nname = "../x"',
         "view[1].name is expected to be a name of letters, digits, '_' and '-', without folders, got '../x'"),
        ("more", '[survey]\nkind = "common_offset"\ntraces = 10\nstep = [0.004, 0, 0]',
         "survey, trace 6: receiver[1] is expected to lie within the domain, nodes 0 to (20, 18, 16), got node (22"),
        ("more", 'fields = ["Ez", "Ez"]', "receiver[1].fields is expected to name each entry once, got 'Ez' twice; re"),
        ("more", "fields = []", "receiver[1].fields is expected to be at least one field, got []; correct it."),
        ("more", "[output]\nsnapshots = 9\nfields = []", "output.fields is expected to be at least one field, got []"),
        ("more", '[output]\nsnapshots = 9\nfields = ["Ez", "Hx", "Ez"]',
         "output.fields is expected to name each entry once, got 'Ez' twice; remove one."),
        ("more", '[output]\nanimation = "gif"',
         "output.snapshots is expected to be above 0 for output.animation = 'gif', got 0; set the number of steps be"),
        ("more", "[output]\nsurfaces = 0.4",
         "output.snapshots is expected to be above 0 for output.surfaces = 0.4, got 0; set the number of steps betw"),
        ("more", "[output]\nthrough = [0.01, 0.01, 0.1]",
         "output.through is expected to lie within the domain, nodes 0 to (20, 18, 16), got node (5, 5, 50); move it"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused_in_a_sentence(where: str, line: str, sentence: str) -> None:
    parts = dict.fromkeys(("grid", "material", "shape", "source", "more"), "")
    with pytest.raises(UsageError) as raised:
        parse(SMALL.format(**(parts | {where: line}))).build()
    found = str(raised.value)
    assert found.startswith(sentence)
    assert "\n" not in found
    assert found.endswith((".", "?"))


BRIEF = """
[model]
kind = "fdtd3d"
[grid]
size = [0.1, 0.08, 0.08]
spacing = 0.005
steps = 9
[[source]]
kind = "electric_dipole"
axis = "y"
position = [0.05, 0.04, 0.04]
waveform = {{ kind = "ricker", frequency = 2e9 }}
[[receiver]]
position = [0.065, 0.04, 0.04]
{more}
"""


def test_faults_found_after_reading_begin_with_the_files_name(tmp_path: Path) -> None:
    (tmp_path / "thick.toml").write_text(BRIEF.format(more="[absorber]\ncells = 40"))
    with pytest.raises(UsageError, match=r"^thick.toml: The absorber is expected to leave cells"):
        modelfile.read(tmp_path / "thick.toml").build()
    outside = BRIEF.replace("position = [0.05,", "position = [0.5,").format(more="")
    (tmp_path / "outside.toml").write_text(outside)
    with pytest.raises(UsageError, match=r"^outside.toml: source\[1\] is expected to lie within the domain"):
        modelfile.read(tmp_path / "outside.toml").memory(computing=True, writing=True)
    cells = '[[shape]]\nkind = "voxels"\norigin = [0, 0, 0]\nfile = "none.h5"\nmaterials = { file = "none.json" }'
    (tmp_path / "cells.toml").write_text(BRIEF.format(more=cells))
    with pytest.raises(UsageError, match=r"^cells.toml: shape\[1\] is expected to name an HDF5 file of cells"):
        modelfile.read(tmp_path / "cells.toml").build()


def test_traces_on_the_same_nodes_are_refused() -> None:
    survey = '[survey]\nkind = "common_offset"\ntraces = 3\nstep = [{step}, 0.0, 0.0]'
    parse(BRIEF.format(more=survey.format(step=0.005)))
    with pytest.raises(UsageError, match=r"traces 1 and 2 are expected to have .* on different nodes"):
        parse(BRIEF.format(more=survey.format(step=1e-5)))
    fixed = BRIEF.replace("electric_dipole", "voltage_source")
    steps = '[survey]\nkind = "steps"\ntraces = 3\nsource_step = [0.005, 0.0, 0.0]\nreceiver_step = [0.0, 0.0, 0.0]'
    with pytest.raises(UsageError, match=r"traces 1 and 2 are expected to have .* on different nodes"):
        parse(fixed.format(more=steps))


def test_vectors_of_a_survey_in_a_plane_may_have_three_numbers() -> None:
    plane = BRIEF.replace("0.08, 0.08]", "0.005, 0.08]").replace("0.04, 0.04]", "0.0, 0.04]")
    steps = '[survey]\nkind = "steps"\ntraces = 3\nsource_step = {}\nreceiver_step = {}'
    places = '[survey]\nkind = "positions"\nsources = [[0.04, {0}0.04], [0.05, {0}0.05]]'
    for pair in (
        (steps.format([0.01, 0.005], [0.0, -0.005]), steps.format([0.01, 0.0, 0.005], [0.0, 0.0, -0.005])),
        (places.format(""), places.format("0.0, ")),
    ):
        one, two = (surveyed(parse(plane.format(more=more))) for more in pair)
        assert one is not None
        assert two is not None
        assert shifts(one) == shifts(two)
    with pytest.raises(UsageError, match="a number for each of the 2 axes, got 0"):
        parse(plane.format(more=steps.format([], [0.0, 0.0])))


def test_traces_whose_dipole_has_no_node_are_refused() -> None:
    """The last of five lies on the last node along its axis, which has no Ey."""
    survey = '[survey]\nkind = "steps"\ntraces = 9\nsource_step = [0.0, 0.01, 0.0]\nreceiver_step = [0.0, 0.0, 0.0]'
    with pytest.raises(UsageError) as raised:
        parse(BRIEF.format(more=survey))
    assert str(raised.value) == (
        "survey, trace 5: source[1] is expected on nodes from 0 to (20, 15, 16), which have Ey, got (10, 16, 8); "
        "move it."
    )


def test_a_plane_wave_has_a_medium_or_layers() -> None:
    wave = """
[[source]]
kind = "plane_wave"
lower = [0.03, 0.02, 0.02]
upper = [0.07, 0.06, 0.06]
direction = [0, 0, -1]
polarisation = 90.0
waveform = {{ kind = "ricker", frequency = 2e9 }}
{around}
"""
    material = '[[material]]\nname = "clay"\npermittivity = 4.0\n'
    for around in ("layered = true", 'medium = "clay"', 'medium = "clay"\nlayered = false'):
        parse(BRIEF.format(more=material + wave.format(around=around)))
    with pytest.raises(UsageError, match="a medium or layers, got 'clay' and layers; leave out one"):
        parse(BRIEF.format(more=material + wave.format(around='medium = "clay"\nlayered = true')))
