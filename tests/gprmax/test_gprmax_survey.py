"""Surveys of input files of gprMax: traces by steps or by a table, each that of a run of its own."""

from __future__ import annotations

import re
from pathlib import Path

import h5py
import numpy as np
import pytest

from peergrid.errors import UsageError
from peergrid.gprmax import read
from peergrid.grid import Index
from peergrid.jobs import run_model, run_survey
from peergrid.jobs.folder import Folder
from peergrid.jobs.requested import RequestedOptions
from peergrid.jobs.survey import survey_of
from peergrid.models.survey import surveyed
from peergrid.runtime.devices import parse_devices

pytestmark = pytest.mark.filterwarnings("ignore:Source . is at its strongest:UserWarning")  # runs end early here
MODEL = """\
#domain: 0.04 0.036 0.032
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 41
#pml_cells: 4
#material: 6 0.01 1 0 soil
#box: 0 0 0 0.04 0.036 0.014 soil
#waveform: ricker 1 1.5e9 pulse
#hertzian_dipole: y {} pulse
#transmission_line: z 0.02 0.018 0.018 73 pulse
#rx: {}
"""
PLACES = ("0.012 0.016 0.018", "0.016 0.018 0.018"), ("0.014 0.016 0.02", "0.018 0.014 0.018")
STEPS = "#src_steps: 0.002 0 0.0021\n#rx_steps: 0.002 -0.004 0\n"
CASES = """case_id,object_id,x_m,y_m,z_m,active
a,hertzian_dipole_1,0.012,0.016,0.018,
a,rx_1,0.016,0.018,0.018,
b,hertzian_dipole_1,0.014,0.016,0.02,
b,rx_1,0.018,0.014,0.018,
"""


def _file(folder: Path, text: str, cases: str = CASES) -> Path:
    (folder / "cases.csv").write_text(cases)
    path = folder / "model.in"
    path.write_text(text)
    return path


def _contents(path: Path) -> dict[str, object]:
    """All values and attributes of a file, but which survey it is of."""
    with h5py.File(path) as file:
        found: dict[str, object] = {name: repr(value) for name, value in file.attrs.items() if name != "survey"}
        file.visititems(lambda name, item: found.update({name: _described(item)}))
    return found


def _described(item: h5py.Group | h5py.Dataset) -> tuple[object, ...]:
    values = (item.dtype, item.shape, item[...].tobytes()) if isinstance(item, h5py.Dataset) else ()
    return (*values, {name: repr(value) for name, value in item.attrs.items()})


def test_each_trace_is_that_of_a_run_of_its_own(tmp_path: Path) -> None:
    """Dipole and receiver move along all three axes, the line stays; its voltages are merged too."""
    model = read(_file(tmp_path, MODEL.format(*PLACES[0]) + STEPS)).with_traces(2).without_pictures()
    run_survey(model, tmp_path / "survey", devices="cpu:1")
    for column, places in enumerate(PLACES):
        alone = read(_file(tmp_path, MODEL.format(*places))).without_pictures()
        run_model(alone, tmp_path / "alone", devices="cpu:1")
        with h5py.File(tmp_path / "survey/results.h5") as merged, h5py.File(tmp_path / "alone/results.h5") as single:
            for name in ("rxs/rx1/Ex", "rxs/rx1/Ez", "rxs/rx1/Hy", "tls/tl1/Vtotal", "tls/tl1/Itotal"):
                np.testing.assert_allclose(merged[name][:, column], single[name][:], rtol=1e-6, atol=0)
                assert merged[name].shape == (41, 2)
            for name in ("tls/tl1/Vinc", "tls/tl1/Iinc", "tls/tl1/frequency", "srcs/src1/excitation/samples"):
                np.testing.assert_array_equal(merged[name], single[name])
            np.testing.assert_allclose(merged["tls/tl1/S11"][:, column], single["tls/tl1/S11"], rtol=1e-4)
            assert np.abs(merged["rxs/rx1/Ey"][:]).max() > 0
            assert merged["rxs/rx1/Hy"].attrs["TimeSampleOffset"] == -0.5 * merged.attrs["dt"]
            assert merged.attrs["srcsteps"].tolist() == [1, 0, 1]
            assert merged.attrs["rxsteps"].tolist() == [1, -2, 0]


def test_a_table_of_cases_gives_the_traces_of_steps_and_goes_on_after_an_end(tmp_path: Path) -> None:
    stepped = read(_file(tmp_path, MODEL.format(*PLACES[0]) + STEPS)).with_traces(2).without_pictures()
    whole = run_survey(stepped, tmp_path / "steps", devices="cpu:1")
    study = surveyed(read(_file(tmp_path, MODEL.format(*PLACES[1]) + "#study: gpr cases.csv\n")).without_pictures())
    assert study is not None
    job = survey_of(study, Folder(tmp_path / "cases"), RequestedOptions(parse_devices("cpu:1")))
    assert [number for number, _ in job.make_traces([1], lambda: False)] == [1]
    found = run_survey(study, tmp_path / "cases", devices="cpu:2", resume=True)
    assert (found.traces, found.sha256) == (2, whole.sha256)
    stepped_file, cases_file = (_contents(tmp_path / name / "results.h5") for name in ("steps", "cases"))
    assert stepped_file == cases_file


@pytest.mark.parametrize(
    ("text", "cases", "sentence"),
    [
        ("#study: gpr cases.csv", CASES.replace("b,rx_1,0.018", "b,rx_1,0.18"), "cases.csv, line 5: #study is"),
        ("#study: gpr cases.csv", CASES.replace("0.018,\nb", "0.018,false\nb"), "alone, got active = 'false'"),
        ("#study: gpr cases.csv", CASES.replace("b,rx_1", "b,rx_2"), "one of hertzian_dipole_1, rx_1, got 'rx_2'"),
        ("#study: gpr cases.csv", CASES.replace("b,rx_1", "a,rx_1"), "line 5: 'rx_1' is expected once in a case"),
        ("#study: gpr cases.csv", CASES.replace("0.02,", "inf,"), "finite numbers, got '0.014, 0.016, inf'"),
        ("#study: gpr cases.csv", "case_id,object_id\n", "columns case_id, object_id, x_m, y_m, z_m, got case_"),
        ("#study: gpr cases.csv", CASES[: CASES.index("\n")], "to name a table with cases, got none"),
        ("#study: gpr none.csv", CASES, "a table that can be read, got No such file"),
        ("#study: gpr ../cases.csv", CASES, "a file inside the model's folder, got '../cases.csv'"),
        ("#study: port cases.csv", CASES, "of the kind 'gpr', got 'port'"),
        ("#rx: 0.02 0.02 0.02\n#study: gpr cases.csv", CASES, "receivers are expected to move together, got 2 ways"),
    ],
)  # fmt: skip
def test_a_table_that_means_nothing_is_refused(tmp_path: Path, text: str, cases: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence.replace("(", r"\(")) as raised:
        surveyed(read(_file(tmp_path, f"{MODEL.format(*PLACES[1])}{text}\n", cases)))
    assert "\n" not in str(raised.value)


def test_traces_are_refused_that_are_alike_or_leave_the_domain(tmp_path: Path) -> None:
    for text, traces, sentence in (
        ("", 2, "A survey of 2 traces is expected to have a line '#src_steps: …'"),
        (STEPS, 9, "line 10, trace 6: #rx is expected to lie within the domain"),
        ("#study: gpr cases.csv\n", 2, "are those of its table; leave out '-n'"),
    ):
        with pytest.raises(UsageError, match=sentence):
            read(_file(tmp_path, MODEL.format(*PLACES[0]) + text)).with_traces(traces)
    assert surveyed(read(_file(tmp_path, MODEL.format(*PLACES[0]))).with_traces(1)) is None


@pytest.mark.parametrize(
    ("dipole", "component", "last"),
    [("hertzian_dipole: x", "Ex", (19, 18, 16)), ("magnetic_dipole: y", "Hy", (19, 18, 15))],
)
def test_dipoles_that_leave_the_nodes_of_their_component_are_refused(
    dipole: str, component: str, last: Index, tmp_path: Path
) -> None:
    """Before the first trace runs: by steps, and where a table has them on the last node of the domain."""
    at = f"{dipole} 0.034 0.016 0.018 pulse"
    text = MODEL.format("0 0 0", PLACES[0][1]).replace("hertzian_dipole: y 0 0 0 pulse", at)
    sentence = f"#{dipole[:-3]} is expected on nodes from 0 to {last}, which have {component}, got (20, 8, 9); move it."
    with pytest.raises(UsageError, match=re.escape(f"model.in, line 8, trace 4: {sentence}")):
        read(_file(tmp_path, f"{text}#src_steps: 0.002 0 0\n")).with_traces(9)
    cases = CASES.replace("hertzian_dipole", dipole[:-3]).replace("0.014,0.016,0.02,", "0.04,0.016,0.018,")
    with pytest.raises(UsageError, match=re.escape(f"model.in, line 8, trace 2: {sentence}")):
        surveyed(read(_file(tmp_path, f"{text}#study: gpr cases.csv\n", cases)))


def test_steps_that_move_nothing_are_refused_or_said(tmp_path: Path) -> None:
    """Lines stay where they are."""
    fixed = "".join(line for line in MODEL.splitlines(keepends=True) if "dipole" not in line).format(PLACES[0][1])
    with pytest.raises(UsageError, match="that moves its dipoles or receivers, got none"):
        read(_file(tmp_path, fixed + "#src_steps: 0.002 0 0\n")).with_traces(2)
    notes = read(_file(tmp_path, fixed + STEPS)).with_traces(2).build().warnings
    assert "#src_steps has no effect on a model without dipoles, which alone it moves." in notes


FAR = """\
#ntff_surface: 0.01 0.01 0.01 0.03 0.026 0.022 box
#ntff_frequency: box band 2e9 4e9 rectangular
#ntff_far_field_array: 0 180 90 0 90 90 band
"""


def test_fields_far_away_are_those_of_each_trace(tmp_path: Path) -> None:
    bare = "".join(line for line in MODEL.splitlines(keepends=True) if "soil" not in line and "line" not in line) + FAR
    survey = bare.format("0.014 0.016 0.016", "0.016 0.018 0.016") + "#src_steps: 0.004 0 0\n"
    run_survey(read(_file(tmp_path, survey)).with_traces(2).without_pictures(), tmp_path / "survey", devices="cpu:1")
    places = "0.014 0.016 0.016", "0.018 0.016 0.016"
    with h5py.File(tmp_path / "survey/results.h5") as merged:
        group = merged["far_fields/far1"]
        assert group["theta"][:].tolist() == [0, 90, 180]
        for column, place in enumerate(places):
            alone = read(_file(tmp_path, bare.format(place, "0.016 0.018 0.016"))).without_pictures()
            run_model(alone, tmp_path / "alone", devices="cpu:1")
            with h5py.File(tmp_path / "alone/results.h5") as single:
                for name in ("Etheta", "Ephi", "directivity", "power"):
                    expected = single[f"far_fields/far1/{name}"]
                    np.testing.assert_array_equal(group[name][column], expected[:])
                    assert group[name].attrs["units"] == expected.attrs["units"]
        assert np.abs(group["Etheta"][0] - group["Etheta"][1]).max() > 0
