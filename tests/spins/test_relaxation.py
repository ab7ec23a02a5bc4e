"""Relaxation on virtual devices: known random numbers, the reference's bits however arranged, known energies."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.errors import UsageError
from peergrid.schedule import Options
from peergrid.schedule.mutate import mutants
from peergrid.schedule.ops import Copy
from peergrid.schedule.strategies import STRATEGIES
from peergrid.schedule.verify import program, prove
from peergrid.spins import BipartiteGraph, Relaxation, random_graph
from peergrid.spins.exact import CRITICAL, bethe_energy
from peergrid.spins.philox import philox
from peergrid.spins.rule import energy, first_words, half_step, thresholds

ROOT = Path(__file__).parents[2]
GRAPH = random_graph(37 * 32, 5)
KNOWN = [  # of Random123, the authors' own implementation
    ((0, 0, 0, 0), 0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, 2**64 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), 0x299F31D0A4093822,
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
]  # fmt: skip


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_random_numbers_are_those_of_their_authors(counter: tuple[int, ...], key: int, words: tuple[int, ...]) -> None:
    found = philox((np.array([counter[0]], np.uint32), *counter[1:]), key)  # type: ignore[arg-type]
    assert tuple(int(word[0]) for word in found) == words


def test_neighbours_are_mutual() -> None:
    red, blue = (np.sort(side, axis=None) for side in (GRAPH.red, GRAPH.blue))
    assert np.array_equal(red, np.repeat(np.arange(GRAPH.per_colour), 4))
    assert np.array_equal(red, blue)
    forth = {(i, int(j)) for i, row in enumerate(GRAPH.red) for j in row}
    back = {(int(i), j) for j, row in enumerate(GRAPH.blue) for i in row}
    assert forth == back


def reference(steps: int, coupling: float, seed: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    colours = [first_words(GRAPH.words, seed)] * 2
    for step in range(steps):
        target = 1 - step % 2
        sides = (GRAPH.red, GRAPH.blue)
        whole = (0, GRAPH.words)
        colours[target] = half_step(sides[target], colours[1 - target], whole, step, seed, thresholds(coupling))
    return colours[0], colours[1]


@pytest.mark.parametrize(("strategy", "devices"), [*product(STRATEGIES, (3,)), ("async", 1), ("overlap", 5)])
def test_the_bits_are_those_of_the_reference(strategy: str, devices: int) -> None:
    with Relaxation(GRAPH, 0.4, 11, f"cpu:{devices}", Options(strategy)) as found:  # type: ignore[arg-type]
        found.advance(4)
        found.advance(3)
        for have, want in zip(found.words(), reference(7, 0.4, 11), strict=True):
            assert np.array_equal(have, want)


def test_the_exchange_is_an_all_gather_that_is_proved() -> None:
    with Relaxation(GRAPH, 0.4, devices="cpu:3") as found:
        schedule, layout = found.schedule(2), found.layout
    assert len(layout.exchanged) == 3 * 2
    copied = sum(32 * op.target_box.size for op in schedule.ops if isinstance(op, Copy))
    assert copied == 2 * (3 - 1) * GRAPH.per_colour  # bits, in two half steps
    assert all(layout.local(device, "variables") == layout.problem.grid.box for device in range(3))
    assert prove(layout, program(layout, schedule)).holds
    dropped = [
        mutant.schedule for mutant in mutants(schedule, 2) if mutant.kind in ("drop Copy", "shrink Copy", "drop Wait")
    ]
    assert dropped
    assert not any(prove(layout, program(layout, mutant)).holds for mutant in dropped)


@given(coupling=st.floats(-3, 3))
def test_thresholds_keep_detailed_balance(coupling: float) -> None:
    """Up over down is exp(2 K h), as the energies of the two states ask for, up to the last of 31 bits."""
    limits = thresholds(coupling).astype(np.float64)
    for up, h in enumerate((-4, -2, 0, 2, 4)):
        assert abs(limits[up] - 2.0**31 / (1 + np.exp(-2 * coupling * h))) <= 0.5001
    assert np.all(np.abs(limits + limits[::-1] - 2.0**31) <= 1)


def test_draws_have_the_probabilities_of_their_thresholds() -> None:
    """Of variables with so many neighbours up, the share that is drawn up: within five standard deviations."""
    graph, limits = random_graph(1 << 17, 2), thresholds(0.3)
    red = first_words(graph.words, 1)
    blue = half_step(graph.blue, red, (0, graph.words), 0, 1, limits)
    up = (red[graph.blue >> 5] >> (graph.blue & 31) & 1).sum(axis=1)
    drawn = (blue[:, None] >> np.arange(32, dtype=np.uint32) & 1).ravel()
    for neighbours in range(5):
        here, p = drawn[up == neighbours], limits[neighbours] / 2.0**31
        assert abs(here.mean() - p) < 5 * np.sqrt(p * (1 - p) / len(here))


@pytest.mark.parametrize("coupling", [0.1, 0.3])
def test_the_energy_is_that_of_the_bethe_lattice(coupling: float) -> None:
    """The mean of 20 states of 2¹⁷ variables: its deviation is about 0.0008."""
    with Relaxation(random_graph(1 << 16, 1), coupling, 7, "cpu:2") as found:
        found.advance(40)
        seen = []
        for _ in range(20):
            found.advance(4)
            seen.append(found.energy())
    assert abs(np.mean(seen) - bethe_energy(coupling)) < 0.003


def test_without_temperature_the_energy_only_falls() -> None:
    with Relaxation(GRAPH, float("inf"), 3, "cpu:1") as found:
        found.advance(2)
        energies = [found.energy()]
        for _ in range(20):
            found.advance(1)
            energies.append(found.energy())
    assert all(later <= earlier for earlier, later in pairwise(energies))
    assert energies[-1] < -1.2


def test_energies_that_are_plain() -> None:
    ones = np.full(GRAPH.words, 2**32 - 1, np.uint32)
    assert energy(GRAPH.red, ones, ones) == -2.0
    assert energy(GRAPH.red, ones, ~ones) == 2.0
    assert bethe_energy(CRITICAL) == pytest.approx(-2 / 3)


WRONG = [
    (lambda: random_graph(33, 1), "A colour has a multiple of 32 variables, at most"),
    (lambda: BipartiteGraph(np.zeros((32, 3), np.uint32), np.zeros((32, 3), np.uint32)), "each with 4 neighbours; got"),
    (lambda: thresholds(float("nan")), "is a number, or infinite; got nan"),
    (lambda: Relaxation(GRAPH, 0.1).advance(-1), "A run takes zero or more whole steps, got -1"),
    (lambda: Relaxation(GRAPH, 0.1, devices="cpu:90"), "use fewer devices or a larger grid"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "sentence"), WRONG, ids=[sentence for _, sentence in WRONG])
def test_what_cannot_mean_anything(call, sentence: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match=sentence):
        call()


def test_two_processes_leave_the_bits_of_one() -> None:
    mpiexec = Path(sys.executable).with_name("mpiexec")
    if not mpiexec.exists():
        pytest.skip("no MPI beside this Python: pip install mpi4py mpich")
    paths = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    command = [str(mpiexec), "-n", "2", sys.executable, str(ROOT / "examples" / "spins_ranks.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=paths, timeout=120)
    with Relaxation(GRAPH, 0.4, 11, "cpu:1") as alone:
        alone.advance(5)
        assert done.stdout.split() == [alone.sha256()], done.stderr


def test_a_closed_relaxation_is_refused() -> None:
    with Relaxation(GRAPH, coupling=0.3) as run:
        run.advance(1)
    for call in (run.energy, run.sha256, lambda: run.advance(1)):
        with pytest.raises(UsageError, match="The run is closed and its memory freed; use it inside its 'with' block"):
            call()


def test_an_interrupted_run_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with Relaxation(GRAPH, 0.5, devices="cpu:1") as run:
        monkeypatch.setattr(run._executor, "execute", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.advance(3)
        for call in (run.words, lambda: run.advance(1)):
            with pytest.raises(
                UsageError, match=r"^The run failed or was interrupted while stepping; make a new one\.$"
            ):
                call()
