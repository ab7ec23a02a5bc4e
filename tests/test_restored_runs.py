"""A run that goes on from a state has the bits of one that was never cut: on other devices, arranged otherwise."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from restored_runs import STEPS, bits, onward, through, waves
from runtime_problems import PROBLEMS

import peergrid
from peergrid import Options, Simulation, UsageError
from peergrid.io.checkpoint import read_state
from peergrid.schedule.strategies import STRATEGIES


@pytest.mark.parametrize("norm", [None, "u"])
@pytest.mark.parametrize("first", [0, 1, 7, 20, STEPS])
def test_records_go_on_with_the_fields(tmp_path: Path, first: int, norm: str | None) -> None:
    problem = waves()
    undisturbed = peergrid.run(problem, STEPS, devices="cpu:1", norm=norm)
    state = through(problem, first, tmp_path / "state.h5", devices="cpu:3", options=Options("peer", 3), norm=norm)
    result = onward(problem, state, devices="cpu:2", options=Options("overlap", 4), norm=norm)
    assert bits(result) == bits(undisturbed)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(PROBLEMS)), st.sampled_from(sorted(STRATEGIES)), st.integers(1, 5), st.data())
def test_any_problem_on_any_devices_cut_anywhere(name: str, strategy: str, depth: int, data: st.DataObject) -> None:
    problem = PROBLEMS[name]()
    undisturbed = peergrid.run(problem, STEPS, devices="cpu:1", options=Options("serial"))
    state = through(problem, data.draw(st.integers(0, STEPS)), devices="cpu:2", kernel="reference")
    other = Options(strategy, depth)  # type: ignore[arg-type]
    result = onward(PROBLEMS[name](), state, devices=f"cpu:{data.draw(st.integers(1, 4))}", options=other)
    assert bits(result) == bits(undisturbed)


def test_a_state_in_use_is_changed_for_another_one() -> None:
    problem = waves()
    with Simulation(problem, STEPS, devices="cpu:2", options=Options("async", 1)) as simulation:
        simulation.run(3)
        early = simulation.state()
        simulation.run(8)
        later = simulation.state()
        simulation.restore(early)
        assert simulation.step == 3
        simulation.run(8)
        assert np.array_equal(simulation.gather("u"), later.fields["u"])
        assert np.array_equal(simulation.traces()["far"], later.records.traces["far"])


def test_another_problem_is_refused_by_what_differs() -> None:
    state = through(waves(), 5, devices="cpu:1")
    with pytest.raises(UsageError, match=r"of the same problem, but differs in the numbers given to stencils, the"):
        onward(waves(k=0.1), state, devices="cpu:1")
    with pytest.raises(UsageError, match=r"but differs in field 'c', field 'u', field 'u.prev' and 1 more"):
        onward(waves(seed=4), state, devices="cpu:1")
    with pytest.raises(UsageError, match="but differs in the norm asked for; continue with the unchanged problem"):
        onward(waves(), state, devices="cpu:1", norm="u")


def test_a_shorter_run_is_refused() -> None:
    state = through(waves(), 20, devices="cpu:1")
    with (
        Simulation(waves(), 10, devices="cpu:1") as simulation,
        pytest.raises(UsageError, match=r"A state up to step 10, .* is expected, got one after step 20"),
    ):
        simulation.restore(state)


def test_a_state_of_another_version_is_said() -> None:
    state = dataclasses.replace(through(waves(), 5, devices="cpu:1"), version="0.0.7")
    assert any("written by peergrid 0.0.7; this is" in note for note in onward(waves(), state, devices="cpu:1").notes)


def test_a_file_with_one_bit_changed_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.h5"
    through(waves(), 5, path, devices="cpu:1")
    with h5py.File(path, "r+") as file:
        file["fields/u"][3, 4] = np.nextafter(file["fields/u"][3, 4], 9, dtype=np.float32)
    with pytest.raises(UsageError, match=r"expected to be a checkpoint, got contents that do not agree with its"):
        read_state(path)


@pytest.mark.parametrize("length", [0, 10, 2000, 9000])
def test_a_file_that_is_cut_is_refused(tmp_path: Path, length: int) -> None:
    path = tmp_path / "state.h5"
    through(waves(), 5, path, devices="cpu:1")
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(UsageError, match=r"expected to be a checkpoint, got .*; use another, or start anew"):
        read_state(path)
