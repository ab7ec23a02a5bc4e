"""What makes Python comfortable: calls on the way, progress, other values, boxes, arrays of others, short texts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from restored_runs import waves

import peergrid
import user_types
from peergrid import Box, Grid, Options, Problem, Simulation, UsageError
from peergrid.grid.partition import Partition
from peergrid.io.checkpoint import read_state, write_state
from peergrid.schedule import ResolvedOptions


@peergrid.stencil
def heat(u: peergrid.Cell, k: peergrid.Expr) -> None:
    u.next[0, 0] = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@peergrid.stencil
def swing(u: peergrid.Cell, k: peergrid.Expr) -> None:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next[0, 0] = 2 * u[0, 0] - u.prev[0, 0] + k * around


RANDOM = np.random.default_rng(5).random((24, 20)).astype(np.float32)


def warm(boundary: Any = "periodic") -> peergrid.Field:
    return Grid((24, 20), boundary).field("u", np.random.default_rng(2).random((24, 20)))


def test_a_function_is_called_every_so_many_steps() -> None:
    seen: list[tuple[int, bytes]] = []
    step, options = heat(warm(), k=0.2), Options("overlap", 4)
    result = peergrid.run(
        step, 25, devices="cpu:2", options=options, every=7, call=lambda s: seen.append((s.step, s.sha256()))
    )
    assert [at for at, _ in seen] == [7, 14, 21]
    assert seen[1][1] == peergrid.run(step, 14, devices="cpu:1").sha256
    assert result.sha256 == peergrid.run(step, 25, devices="cpu:1").sha256


def test_a_call_that_raises_ends_the_run() -> None:
    def cancel(simulation: Simulation) -> None:
        raise InterruptedError(simulation.step)

    before = threading.active_count()
    with pytest.raises(InterruptedError, match=r"^7$"):
        peergrid.run(heat(warm(), k=0.2), 25, devices="cpu:2", every=7, call=cancel)
    assert threading.active_count() == before


@pytest.mark.parametrize(
    "given",
    [
        {"every": 5},
        {"call": print},
        {"every": -1, "call": print},
        {"every": 1.5, "call": print},
        {"every": 5, "call": 3},
    ],
)
def test_a_period_and_a_function_come_together(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="takes 'every' and 'call' together"):
        peergrid.run(heat(warm(), k=0.2), 5, devices="cpu:1", **given)


def test_progress_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    from peergrid import progress

    class Impatient(progress.Reporter):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            self._said -= 1000.0

    with Impatient(10, 100, quiet=False, first=4) as reporter:
        reporter.update(7)
    found = capsys.readouterr()
    assert found.out == ""
    assert found.err.startswith("step 7 of 10, ")
    peergrid.run(heat(warm(), k=0.2), 5, devices="cpu:1", progress=True)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:3"])
def test_other_values_from_a_step_on(devices: str) -> None:
    """As a run has them that begins with these values."""
    other = np.random.default_rng(8).random((24, 20))
    expected = peergrid.run(heat(Grid((24, 20), "periodic").field("u", other), k=0.2), 9, devices="cpu:1")
    with Simulation(heat(warm(), k=0.2), 14, devices=devices, options=Options("peer", 2)) as simulation:
        simulation.run(5)
        simulation.set("u", other)
        assert np.array_equal(simulation.gather("u"), other.astype(np.float32))
        simulation.run(9)
        assert np.array_equal(simulation.gather("u"), expected.fields["u"])
        simulation.set("u", 0.5)
        assert (simulation.gather("u") == 0.5).all()


@peergrid.stencil
def spread(u: peergrid.Cell, c: peergrid.Cell) -> None:
    around = u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0]
    u.next[0, 0] = u[0, 0] + c[0, 0] * around


@pytest.mark.parametrize(("boundary", "by"), [("periodic", "array"), ("fixed", "array"), ("reflecting", "function")])
def test_a_wave_begins_with_two_fields(boundary: Any, by: str) -> None:
    """As one that began earlier goes on; at fixed edges, which no update writes, the two may differ."""
    whole = peergrid.run(swing(Grid((24, 20), boundary).field("u", RANDOM), k=0.2), 20, devices="cpu:1")
    half = peergrid.run(swing(Grid((24, 20), boundary).field("u", RANDOM), k=0.2), 9, devices="cpu:1").fields
    now, before = half["u"], half["u.prev"]
    given: Any = (
        (now, before) if by == "array" else tuple(lambda box, a=a: a[box.slices((0, 0))] for a in (now, before))
    )
    u = Grid((24, 20), boundary).field("u", given[0], prev=given[1])
    rest = peergrid.run(swing(u, k=0.2), 11, devices="cpu:3", options=Options("overlap", 2))
    assert np.array_equal(rest.fields["u"], whole.fields["u"])
    other = before.copy()
    other[0] += 1.0  # an edge
    changed = peergrid.run(swing(Grid((24, 20), boundary).field("u", now, prev=other), k=0.2), 1, devices="cpu:2")
    assert np.array_equal(changed.fields["u.prev"][1:-1], now[1:-1])
    assert np.array_equal(changed.fields["u.prev"][0], other[0] if boundary == "fixed" else now[0])


def test_values_before_the_first_step_that_nobody_reads() -> None:
    with pytest.raises(UsageError, match=r"no stencil reads 'u\.prev'; leave out 'prev'"):
        Problem.of(heat(Grid((8, 8)).field("u", 1.0, prev=0.0), k=0.2))


def test_a_wave_goes_on_from_two_fields() -> None:
    whole = peergrid.run(Problem.of(waves().stages), 20, devices="cpu:1")
    with Simulation(waves(), 20, devices="cpu:1") as one, Simulation(waves(), 20, devices="cpu:2") as two:
        one.run(9)
        two.run(9)
        two.set("u", one.gather("u"))
        two.set("u.prev", one.gather("u.prev"))
        two.run(11)
        assert np.array_equal(two.gather("u"), whole.fields["u"])


@pytest.mark.parametrize("kind", ["field", "profile"])
def test_other_coefficients_from_a_step_on(kind: str, tmp_path: Path) -> None:
    """A run that goes on from its state has them, too; one that goes on from an earlier state has the first ones."""
    grid = Grid((24, 20), "periodic")
    one, two = (np.random.default_rng(n).random((24, 20) if kind == "field" else 20) / 9 for n in (1, 2))

    def problem(values: Any, init: Any) -> Problem:
        named = grid.field("c", values) if kind == "field" else grid.profile("c", 1, values)
        return Problem.of(spread(grid.field("u", init), named))

    half = peergrid.run(problem(one, RANDOM), 8, devices="cpu:1").fields["u"]
    whole = peergrid.run(problem(two, half), 9, devices="cpu:1")
    unchanged = peergrid.run(problem(one, half), 9, devices="cpu:1")
    with Simulation(problem(one, RANDOM), 20, devices="cpu:3", options=Options("peer", 2)) as simulation:
        simulation.run(8)
        before = simulation.state()
        simulation.set("c", two)
        write_state(tmp_path / "state.h5", simulation.state())
        simulation.run(9)
        assert simulation.sha256() == whole.sha256
        simulation.restore(before)
        simulation.run(9)
        assert simulation.sha256() == unchanged.sha256
    with Simulation(problem(one, RANDOM), 20, devices="cpu:2") as simulation:
        simulation.restore(read_state(tmp_path / "state.h5"))
        simulation.run(9)
        assert simulation.sha256() == whole.sha256


def test_what_cannot_be_set() -> None:
    with Simulation(waves(), 5, devices="cpu:1") as simulation:
        with pytest.raises(UsageError, match=r"A field is one of u, u\.prev, c, got 'd'\."):
            simulation.set("d", 1.0)
        with (
            Simulation(heat(warm(), k=0.2), 5, devices="cpu:1") as other,
            pytest.raises(UsageError, match=r"of u, got 'k', whose values are fixed; make it a profile or a field\.$"),
        ):
            other.set("k", 0.1)
        with pytest.raises(UsageError, match="takes a number or an array of shape"):
            simulation.set("u", np.zeros(5))
        with pytest.raises(UsageError, match=r"'u' is expected to keep its values in .*, which no update writes"):
            simulation.set("u", 0.0)
        values = simulation.gather("u")
        values[1:-1] = 0.0
        simulation.set("u", values)


def test_cells_that_nobody_updates_keep_the_bits_of_their_values() -> None:
    first = np.zeros((24, 20), np.float32)
    first[0] = np.nan
    u = Grid((24, 20)).field("u", first)
    with Simulation(swing(u, k=0.2), 4, devices="cpu:1", options=Options(depth=1)) as simulation:
        simulation.set("u", first)
        with pytest.raises(UsageError, match="is expected to keep"):
            simulation.set("u", np.where(np.isnan(first), first, -0.0))


def test_cells_that_nobody_updates_keep_their_values_where_a_reduction_reads_those_before_the_step() -> None:
    @peergrid.reduction("max")
    def change(u):  # type: ignore[no-untyped-def]
        return abs(u[0, 0] - u.prev[0, 0])

    u = warm()
    left, right = swing(u, k=0.2).within(Box((0, 0), (24, 5))), swing(u, k=0.2).within(Box((0, 15), (24, 20)))
    step = Problem.of(peergrid.Stage((left, right)), reductions=change(u).within(Box((0, 7), (24, 12))))
    with Simulation(step, 4, devices="cpu:1") as simulation:
        simulation.run(1)
        with pytest.raises(UsageError, match="is expected to keep"):
            simulation.set("u", 0.0)


@pytest.mark.parametrize("box", [Box((0, 0), (24, 20)), Box((5, 3), (17, 4)), Box((7, 0), (9, 20)), Box.cell((23, 19))])
def test_a_box_of_a_field(box: Box) -> None:
    with Simulation(heat(warm(), k=0.2), 6, devices="cpu:6", split=(3, 2)) as simulation:
        simulation.run(6)
        assert np.array_equal(simulation.gather("u", box), simulation.gather("u")[box.slices((0, 0))])


def test_boxes_that_were_chosen_with_options_are_those_of_the_run() -> None:
    problem = Problem.of(heat(warm(), k=0.2))
    chosen = ResolvedOptions(Options("async"), split=Partition(problem.grid, (3, 2)))
    with Simulation(problem, 6, devices="cpu:6", options=chosen) as simulation:
        assert simulation.partition.parts == (3, 2)
    with Simulation(problem, 6, devices="cpu:6", options=chosen, split=(6, 1)) as simulation:
        assert simulation.partition.parts == (6, 1)


@pytest.mark.parametrize("box", [Box((0, 0), (25, 20)), Box((3, 3), (3, 5)), Box((-1, 0), (2, 2))])
def test_a_box_beside_the_field(box: Box) -> None:
    with (
        Simulation(heat(warm(), k=0.2), 6, devices="cpu:1") as simulation,
        pytest.raises(UsageError, match="A box within"),
    ):
        simulation.gather("u", box)


@pytest.mark.parametrize("block", [1, 3])
def test_values_where_they_lie(block: int) -> None:
    options = Options("overlap", depth=3, block=block)
    problem = swing(Grid((24, 20), "periodic").field("u", RANDOM), k=0.2)
    with Simulation(problem, 14, devices="cpu:6", options=options, split=(3, 2)) as simulation:
        for steps in (0, 5, 9):
            simulation.run(steps)
            for name in ("u", "u.prev"):
                whole = simulation.gather(name)
                views = simulation.views(name)
                assert sum(box.size for box, _ in views) == whole.size
                for box, values in views:
                    assert np.array_equal(values, whole[box.slices((0, 0))])
                    assert np.shares_memory(values, dict(simulation.views(name))[box])
                    assert not values.flags.writeable
    with pytest.raises(UsageError, match="closed"):
        simulation.views("u")


class OfDlpack:
    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        if self.array is None:
            raise BufferError("the data are on a device")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OfInterface:
    def __init__(self, array: Any) -> None:
        self.__array_interface__ = array.__array_interface__
        self.array = array


@pytest.mark.parametrize("kind", [OfDlpack, OfInterface])
def test_first_values_from_other_libraries(kind: Any) -> None:
    values = np.random.default_rng(3).random((6, 5)).astype(np.float32)
    field = Grid((6, 5)).field("u", kind(values))
    assert np.array_equal(field.first_values(), values)


def test_masked_values_are_no_first_values() -> None:
    """Their mask would be lost; an array without a masked value is as any other."""
    values = np.ma.masked_greater(np.arange(30.0).reshape(6, 5), 28)
    with pytest.raises(UsageError, match=r"'u' takes a value for each cell, got an array with masked ones; fill them"):
        Grid((6, 5)).field("u", values)
    assert Grid((6, 5)).field("u", values.filled(0)).first_values()[5, 4] == 0
    assert Grid((6, 5)).field("u", np.ma.array(np.ones((6, 5)))).first_values()[5, 4] == 1


def test_functions_of_coordinates_are_no_first_values() -> None:
    with pytest.raises(UsageError, match=r"'u' takes a function of one box, such as .*, got one of \(x, y\)\."):
        Grid((6, 5)).field("u", lambda x, y: x + y)  # type: ignore[misc, arg-type]


@pytest.mark.parametrize("step", [heat(warm(), k=0.2), [heat(warm(), k=0.2)], Problem.of(heat(warm(), k=0.2))])
def test_proofs_and_sources_take_what_a_run_takes(step: Any) -> None:
    assert peergrid.verify(step).holds
    assert "; stage 0, heat" in peergrid.source_of(step)


def test_what_is_no_step_has_neither_proof_nor_source() -> None:
    for asked in (peergrid.verify, peergrid.source_of):
        with pytest.raises(UsageError, match="A step is a list of updates and stages, got a int in it"):
            asked(3)  # type: ignore[operator]


def test_values_elsewhere_are_refused() -> None:
    with pytest.raises(
        UsageError, match="'u' takes values in the host's memory, got a OfDlpack that NumPy cannot take: th"
    ):
        Grid((6, 5)).field("u", OfDlpack(None))  # type: ignore[arg-type]


def test_texts_are_short() -> None:
    grid = Grid((8, 6))
    assert repr(grid.field("u")) == "Field('u', 8×6 float32)"
    assert repr(grid.profile("c", 1, 0.0)) == "Field('c', 6 float32)"
    assert repr(heat) == "Stencil(heat)"
    problem = waves()
    assert repr(problem) == "Problem(u.prev, u on 60×40 float32; 1 stage, 2 receivers, 2 reductions)"
    assert repr(heat(warm(), k=0.2)) == "Update(heat: u in (0, 0) to (24, 20))"
    result = peergrid.run(heat(warm(), k=0.2), 5, devices="cpu:1")
    assert repr(result).startswith("Result: u 24×20 float32; 5 steps, ")
    with Simulation(heat(warm(), k=0.2), 5, devices="cpu:1") as started:
        assert repr(started.state()) == "State after step 0: u 24×20 float32"
    with Simulation(problem, 5, devices="cpu:2") as simulation:
        simulation.run(3)
        assert repr(simulation) == f"Simulation of {problem!r} on cpu:2: step 3 of 5"


def test_a_program_with_type_hints_runs() -> None:
    """That the hints are right is for the type checker, which reads it with the package."""
    assert user_types.main() > 3


def test_what_needs_more_packages_is_there_on_first_use() -> None:
    for name in peergrid.__all__:
        assert callable(getattr(peergrid, name))
    with pytest.raises(AttributeError, match="module 'peergrid' has no attribute 'radar'"):
        peergrid.radar  # noqa: B018
