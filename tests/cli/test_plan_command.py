"""`peergrid plan` of machines that are not here."""

from __future__ import annotations

import json
import re
from pathlib import Path

import h5py
import numpy as np
import pytest
from cli_call import MODEL, Call

from peergrid.schedule.strategies import STRATEGIES


def test_a_plan_for_another_machine_needs_no_device(call: Call, model: Path) -> None:
    found = call("plan", model, "--machine", "h200-x2", "--json").json
    assert (found["machine"], found["devices"], found["measured"]) == ("h200-x2", "2 × NVIDIA H200", True)
    assert found["fits"] is True
    assert found["gpus_needed"] == 1
    assert len(found["best"]) == 5
    times = [way["seconds_per_step"] for way in found["best"]]
    assert times == sorted(times)
    assert found["seconds"] == pytest.approx(times[0] * found["steps"])
    assert (found["strategy"], found["depth"]) == (found["best"][0]["strategy"], found["best"][0]["depth"])
    assert found["scaling"][0]["gpus"] == 1
    assert {(way["order"], tuple(way["split"])) for way in found["best"]} == {("all", (2, 1))}


def test_a_named_order_and_route_are_those_of_all_arrangements(call: Call, model: Path) -> None:
    model.write_text(MODEL + "\n[run]\nexchange = 'pairwise'\nroute = 'copy'\n")
    found = call("plan", model, "--machine", "h200-x2", "--json").json
    assert {(way["order"], way["route"]) for way in found["best"]} == {("pairwise", "copy")}


def test_snapshots_are_counted(call: Call, model: Path) -> None:
    model.write_text(MODEL.replace("snapshots = 10", "snapshots = 7\nstride = 2\nfields = ['Ez', 'Hx']"))
    assert call("plan", model, "--json", "--devices", "cpu:1").json["snapshots"] == 30 // 7 * 2 * 31 * 21 * 4


def test_a_survey_has_its_traces_and_the_time_of_their_steps(call: Call, model: Path) -> None:
    model.write_text(f"{MODEL}\n[survey]\nkind = 'common_offset'\ntraces = 3\nstep = [0.005, 0.0]\n")
    assert call("plan", model, "--json", "--devices", "cpu:1").json["traces"] == 3
    assert re.search(r"^survey +3 traces, .* of steps one after another$", call("plan", model).out, re.MULTILINE)


def test_what_is_named_stays(call: Call, model: Path) -> None:
    found = call("plan", model, "--machine", "h200-x2", "--strategy", "serial", "--depth", "2", "--json").json
    assert {(way["strategy"], way["depth"]) for way in found["best"]} == {("serial", 2)}


def test_figures_from_data_sheets_are_marked(call: Call, model: Path) -> None:
    answer = call("plan", model, "--machine", "b200-x8", "--gpus", "1")
    assert "from data sheets, not measured" in answer.out
    assert "was not measured" in answer.err


def test_several_nodes_are_a_chain_over_their_network(call: Call, model: Path) -> None:
    options = "plan", model, "--machine", "h200-x2", "--nodes", "2", "--network"
    near, far = (call(*options, network, "--json").json for network in ("5e-6,50e9", "5e-3,50e9"))
    assert near["devices"] == "4 × NVIDIA H200"
    assert any("no run on several hosts was measured" in note for note in near["notes"])
    assert far["seconds"] > 10 * near["seconds"]
    assert far["depth"] == far["chain"]["depths"][0]["depth"] >= near["depth"]
    assert far["seconds"] == pytest.approx(far["chain"]["depths"][0]["seconds_per_step"] * far["steps"])
    assert far["chain"]["rows"] is None
    assert "the network makes a step" in far["why"]
    said = call(*options, "5e-3,50e9").out
    assert "over that on links of a host" in said
    assert f"With depth {far['depth']} the network is not hidden on this grid, on any number of GPUs." in said
    assert f"By '{far['strategy']}', depth {far['depth']}, on any number of GPUs" in said
    assert "\n\nOn 2 GPUs of one host:\nstrategy " in said


def test_slabs_of_many_gpus_are_as_deep_as_they_have_rows(call: Call, model: Path) -> None:
    model.write_text(MODEL.replace("[0.06, 0.04]", "[0.6, 0.04]"))
    assert call("plan", model, "--machine", "h200-x8", "--gpus", "100", "--json").json["depth"] == 1
    assert "use at most" in call("plan", model, "--machine", "h200-x8", "--gpus", "1000").err


def test_the_predicted_timeline_is_written_for_perfetto(call: Call, model: Path, tmp_path: Path) -> None:
    call("plan", model, "--machine", "h200-x2", "--strategy", "overlap", "--timeline", tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}


@pytest.mark.parametrize("strategy", ["peer", "persistent"])
def test_the_predicted_timeline_of_a_fused_exchange_has_its_operations_apart(
    call: Call, model: Path, tmp_path: Path, strategy: str
) -> None:
    asked = "plan", model, "--machine", "h200-x2", "--strategy", strategy
    answer = call(*asked, "--timeline", tmp_path / "t.json")
    assert answer.out.endswith(f"{tmp_path / 't.json'}: open it in https://ui.perfetto.dev or chrome://tracing\n")
    assert f"'{strategy}' fuses the halo exchange into its kernels" in answer.err
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {0, 1}
    assert "fuses" not in call(*asked).err


def test_the_predicted_timeline_of_several_hosts_is_one_of_a_host(call: Call, model: Path, tmp_path: Path) -> None:
    network = "--nodes", "2", "--network", "5e-6,50e9"
    asked = "plan", model, "--machine", "h200-x2", *network, "--timeline", tmp_path / "t.json", "--json"
    assert any("on 2 GPUs of one host" in note for note in call(*asked).json["notes"])


def test_a_model_too_large_to_describe_here_is_refused_before_it_is_made(call: Call, model: Path) -> None:
    model.write_text(MODEL.replace("[0.06, 0.04]", "[600.0, 400.0]"))
    answer = call("plan", model, "--machine", "h200-x8")
    assert answer.code == 3
    assert "Describing the model takes" in answer.err
    assert re.search(r"its fields take at least \d[\d,.]* [GT]iB of the GPUs': use a host with more", answer.err)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--machine", "cray-1"), "neither a file nor a machine"),
        (("--gpus", "0"), "'--gpus' takes"),
        (("--gpus", "2", "--devices", "cpu:2"), "A plan for another machine uses no devices of this one; leave out"),
        (("--nodes", "2"), "'--nodes' needs '--network"),
        (("--network", "5e-6,50e9"), "'--network' joins the hosts of '--nodes N', got one host"),
        (("--machine", ""), "'' is neither a file nor a machine that is known"),
        (("--nodes", "0"), "'--nodes' takes a whole number above 0, got 0."),
        (("--nodes", "2", "--network", "fast"), "'--network' takes LATENCY,BANDWIDTH"),
        (("--gpus", "2000"), "at most 1,024 GPUs"),
        (("--machine", "h200-x2", "--split", "3x1"), "makes 3 parts for 2 GPUs"),
        (("--machine", "h200-x8", "--gpus", "16", "--split", "4x4"), "takes slabs along the first axis"),
    ],
)
def test_what_cannot_be_meant_is_said_in_one_sentence(
    call: Call, model: Path, options: tuple[str, ...], said: str
) -> None:
    answer = call("plan", model, *options)
    assert answer.code == 2
    assert said in answer.err


def test_every_strategy_of_virtual_devices_is_predicted(call: Call, model: Path) -> None:
    found = call("plan", model, "--devices", "cpu:2", "--json").json["predicted"]
    assert set(found) == set(STRATEGIES)
    assert list(found.values()) == sorted(found.values())


def test_the_geometry_is_drawn_before_a_long_run(call: Call, model: Path, tmp_path: Path) -> None:
    assert call("plan", model, "--picture", tmp_path / "new" / "model.svg").code == 0
    assert "<svg" in (tmp_path / "new" / "model.svg").read_text()
    refused = call("plan", model, "--picture", tmp_path / "model.bmp")
    assert refused.code == 2
    assert "--picture is expected to end in .png, .pdf, .svg, got 'model.bmp'" in refused.err


INPUT = """\
#domain: 0.04 0.03 0.002
#dx_dy_dz: 0.002 0.002 0.002
#time_window: 250
#pml_cells: 4
#waveform: ricker 1 1.5e9 pulse
#hertzian_dipole: z 0.02 0.016 0 pulse
#rx: 0.004 0.016 0
#rx_steps: 0.002 0 0
"""


def test_input_files_of_gprmax_are_warned_of_as_by_a_run_and_have_a_precision(call: Call, tmp_path: Path) -> None:
    (tmp_path / "model.in").write_text(INPUT)
    planned = call("plan", "model.in", "--devices", "cpu:1", "--dtype", "float64", "--json")
    ran = call("run", "model.in", "--devices", "cpu:1", "--dtype", "float64", "--json")
    assert planned.json["dtype"] == ran.json["dtype"] == "float64"
    said = [line for line in planned.err.splitlines() if line.startswith("warning")]
    assert "warning: Receiver 1 lies inside the absorber, where fields mean nothing; move it inwards." in said
    assert said == [line for line in ran.err.splitlines() if line.startswith("warning")]
    assert call("plan", "model.in", "-n", "3", "--machine", "h200-x2").err.splitlines() == said[:1]
    with h5py.File(tmp_path / "results/model/results.h5") as file:
        assert file["rxs/rx1/Ez"].dtype == np.float64


def test_what_a_file_says_itself_is_not_said_again(call: Call, model: Path, tmp_path: Path) -> None:
    given = {"-n": (3, "the table [survey]"), "--dtype": ("float64", "grid.dtype")}
    for option, (value, key) in {**given, "--no-pictures": (None, "the table [output]")}.items():
        answer = call("run", model, option, *filter(None, [value]))
        sentence = f"'{option}' is for input files of gprMax, got a model file; set {key} there.\n"
        assert (answer.code, answer.err) == (2, sentence)
    (tmp_path / "model.in").write_text(INPUT)
    assert call("run", "model.in", "--dtype", "double").err == "'--dtype' takes float32 or float64, got 'double'.\n"
    assert call("run", "model.in", "-n", "0").err == "'-n' takes a whole number from 1 to 100000, got 0.\n"
