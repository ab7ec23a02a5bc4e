"""A sample of what tools/fuzz does: every reader answers mutated files with a result or with one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fuzzing.drive import attempt, companions
from fuzzing.targets import TARGETS, Target

from peergrid.errors import UsageError

FILES = {
    "model": 120,
    "gprmax": 300,
    "gprmax cells": 40,
    "gprmax media": 60,
    "npy": 80,
    "hdf5": 60,
    "samples": 60,
    "checkpoint": 40,
    "profile": 8,
    "run": 4,
    "command line": 8,
}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_result_or_one_sentence(target: Target) -> None:
    found = [finding for seed in range(10**6, 10**6 + FILES[target.name]) if (finding := attempt(target, seed))]
    assert not found, found[0].told


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_it_begins_with_is_read(target: Target, tmp_path: Path) -> None:
    for contents in target.seeds():
        companions(tmp_path)
        (tmp_path / target.file).write_bytes(contents)
        target.take(tmp_path / target.file)


def fails(_: Path) -> None:
    raise OverflowError("planted")


def is_refused_in_two_lines(_: Path) -> None:
    raise UsageError("one\ntwo")


def is_refused_with_escapes(_: Path) -> None:
    raise UsageError("\x1b[31m")


@pytest.mark.parametrize("take", [fails, is_refused_in_two_lines, is_refused_with_escapes])
def test_what_is_to_be_found_is_found(take) -> None:  # type: ignore[no-untyped-def]
    assert attempt(replace(TARGETS[0], take=take), 1) is not None
