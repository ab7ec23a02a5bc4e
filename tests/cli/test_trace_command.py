"""`peergrid trace`: the timeline of a model on virtual devices."""

from __future__ import annotations

import json
from pathlib import Path

from cli_call import Call


def test_every_device_computes_every_pass(call: Call, model: Path, tmp_path: Path) -> None:
    answer = call("trace", model, "-o", "t.json", "--devices", "cpu:3", "--strategy", "overlap", "--depth", 2, "--json")
    assert answer.code == 0, answer.err
    found = answer.json
    assert found["steps"] == 8
    assert 0 <= found["exposed_communication"] <= 1
    assert all(0 < found[part] * 8 <= found["seconds"] for part in ("boundary", "interior", "exchange"))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    bars = [event for event in events if event["ph"] == "X" and event["pid"] < 3]
    assert len(bars) == found["operations"]
    assert {(bar["pid"], bar["name"]) for bar in bars if bar["cat"] == "compute"} == {
        (device, f"steps {n}→{n + 2}") for device in range(3) for n in range(0, 8, 2)
    }
    assert {event["args"]["name"] for event in events if event["name"] == "thread_name"} == {"boundary", "interior"}
    assert {bar["cat"] for bar in bars} >= {"compute", "copy", "wait"}
    assert all(bar["dur"] >= 0 and bar["ts"] >= 0 for bar in bars)


def test_what_is_predicted_stands_beside_what_was_measured(call: Call, model: Path, tmp_path: Path) -> None:
    found = call(
        "trace", model, "-o", "t.json", "--devices", "cpu:2", "--strategy", "overlap", "--depth", 2, "--json"
    ).json
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    named = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert named == {0: "device 0", 1: "device 1", 2: "device 0, predicted", 3: "device 1, predicted"}
    bars = [event for event in events if event["ph"] == "X"]
    measured, predicted = (
        sorted((bar["pid"] % 2, bar["name"]) for bar in bars if bar["cat"] == "compute" and (bar["pid"] > 1) is beside)
        for beside in (False, True)
    )
    assert measured == predicted
    assert found["predicted_seconds"] > 0


def test_steps_are_positive(call: Call, model: Path) -> None:
    answer = call("trace", model, "--steps", 0)
    assert answer.code == 2
    assert answer.err == "'--steps' takes a whole number above 0, got 0.\n"


def test_a_timeline_of_too_many_steps_is_refused(call: Call, model: Path) -> None:
    answer = call("trace", model, "--steps", "65536")
    assert answer.code == 2
    assert answer.err == "A timeline has at most 5,000 steps, as viewers show no more, got 65,536.\n"
