"""Spans as a Chrome trace, and the communication that no computation hides."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from peergrid.grid import Box
from peergrid.schedule.ops import Compute, Copy, Event, Queue, Wait
from peergrid.schedule.timeline import Span, Split, chrome, exposed_communication, split

MAIN, BOUNDARY, OTHER = Queue(0, "main"), Queue(0, "boundary", -1), Queue(1, "main")
BOX = Box((0,), (4,))
COMPUTE = Compute(0, 0, MAIN, BOX, 0, 2, 0, 1)
COPY = Copy(0, BOUNDARY, "u", 1, 2, 0, BOX, 1, BOX)


def test_a_process_per_device_and_a_thread_per_queue() -> None:
    found = chrome((COMPUTE, COPY), [Span(1, BOUNDARY, 2e-6, 5e-6), Span(0, MAIN, 0.0, 3e-6)])
    json.dumps(found)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in found["traceEvents"] if e["name"] == "thread_name"}
    assert names == {(0, 0): "boundary", (0, 1): "main"}
    bars = [e for e in found["traceEvents"] if e["ph"] == "X"]
    assert [(e["name"], e["tid"], e["ts"], e["dur"]) for e in bars] == [
        ("steps 0→2", 1, 0.0, pytest.approx(3.0)),
        ("u 0→1", 0, pytest.approx(2.0), pytest.approx(3.0)),
    ]
    assert bars[1]["args"]["what"].startswith("Copy 'u' 0:[0,4)→1:[0,4)")


def test_what_overlaps_is_hidden() -> None:
    spans = [Span(0, MAIN, 0.0, 8.0), Span(0, BOUNDARY, 6.0, 9.0), Span(1, BOUNDARY, 9.0, 10.0)]
    assert exposed_communication((COMPUTE, COPY), spans) == pytest.approx(0.1)


def test_parts_are_those_of_the_device_where_each_takes_longest() -> None:
    wait = Wait(0, MAIN, Event(0, "sent"))
    ops = (COMPUTE, COPY, replace(COMPUTE, queue=BOUNDARY), wait)
    spans = [Span(0, MAIN, 0, 5), Span(0, OTHER, 0, 3), Span(0, OTHER, 3, 7), Span(2, BOUNDARY, 0, 2)]
    spans.append(Span(1, BOUNDARY, 2, 3))
    assert split(ops, [*spans, Span(3, MAIN, 5, 50)]) == Split(boundary=2, interior=7, exchange=1)
    assert split(ops, []) == Split(0, 0, 0)


def test_the_busiest_device_counts() -> None:
    spans = [Span(0, MAIN, 0.0, 5.0), Span(0, OTHER, 0.0, 8.0), Span(1, MAIN, 8.0, 10.0)]
    assert exposed_communication((COMPUTE, COPY), spans) == pytest.approx(0.2)


def test_nothing_computed_is_nothing_exposed() -> None:
    assert exposed_communication((COPY,), [Span(0, BOUNDARY, 0.0, 1.0)]) == 0.0
