"""A schedule survives its JSON text; anything else is refused in one sentence."""

from __future__ import annotations

import json

import pytest
from drawn_problems import Case, cases
from hypothesis import given, settings
from verify_examples import compute, schedule

from peergrid.errors import UsageError
from peergrid.schedule import one_iteration
from peergrid.schedule.ops import Flag, Queue, SignalOp, SignalWait
from peergrid.schedule.serialise import KINDS, digest, from_json, to_json

ONE = schedule(compute(0), compute(1))


@settings(max_examples=30)
@given(case=cases())
def test_there_and_back(case: Case) -> None:
    original = one_iteration(case.plan, case.options)
    again = from_json(to_json(original))
    assert again == original
    assert digest(again) == digest(original)


def test_the_hash_tells_schedules_apart() -> None:
    assert digest(ONE) != digest(schedule(compute(1), compute(0)))
    assert digest(ONE) == "562d2081223068ed0afea6afe7664614ade069ca03047f5e69bade7500b2a50f"


def changed(**changes: object) -> str:
    """The text of `ONE` with entries of its first operation changed."""
    found = json.loads(to_json(ONE))
    found["schedule"]["ops"][0].update(changes)
    return json.dumps(found)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "not JSON",
            "A schedule is expected as JSON, got text that is none: Expecting value: line 1 column 1 (char 0).",
        ),
        ("[]", "A schedule file of version 2 is expected; write it anew with this peergrid."),
        ('{"version":2,"schedule":7}', "A schedule file holds a Schedule, got int."),
        (changed(**{"is": "os.system"}), f"A schedule file holds {', '.join(KINDS)}, got 'os.system'."),
        (changed(level="now"), "'level' of Compute in a schedule file is expected as <class 'int'>, got 'now'."),
        (changed(level=True), "'level' of Compute in a schedule file is expected as <class 'int'>, got True."),
        (
            changed(more=1),
            "Compute in a schedule file has host, device, queue, box, level, steps, source, target, "
            "got host, device, queue, box, level, steps, source, target, more.",
        ),
    ],
)
def test_other_text_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        from_json(text)
    assert str(refused.value) == sentence


def test_the_rules_of_ownership_hold_for_files_too() -> None:
    with pytest.raises(UsageError, match="make that device current first"):
        from_json(changed(device=1))


def test_files_with_former_names_of_operations_are_read() -> None:
    flag = Flag(0, "done")
    signalled = schedule(SignalOp(0, Queue(1, "main"), flag, 1), SignalWait(0, Queue(0, "main"), flag, 1))
    text = to_json(signalled)
    former = text.replace('"is":"SignalOp"', '"is":"Raise"').replace('"is":"SignalWait"', '"is":"Await"')
    assert former.count("Raise") == former.count("Await") == 1
    assert from_json(former) == signalled
