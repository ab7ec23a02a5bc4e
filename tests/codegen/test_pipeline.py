"""Lags and kept rows of pipelines, against what follows from offsets by hand."""

from __future__ import annotations

from peergrid.codegen.pipeline import Pipeline, StageAccess, pipeline, span_of

JACOBI = StageAccess(0, {"u": (-1, 1)}, ("u",))
YEE = (StageAccess(0, {"h": (0, 0), "e": (0, 1)}, ("h",)), StageAccess(1, {"e": (0, 0), "h": (-1, 0)}, ("e",)))
FAR = StageAccess(0, {"u": (-4, 2), "c": (0, 0)}, ("u",))


def lags(made: Pipeline) -> list[int]:
    return [node.lag for node in made.nodes]


def depths(made: Pipeline, name: str) -> list[int]:
    """Kept rows of a field's values in the order in which they are made, without the last."""
    found = [start[name].depth for start in made.starts]
    return found[:-1]


def test_each_step_lags_as_far_as_it_reads_ahead() -> None:
    assert lags(pipeline(["u"], [JACOBI], 4)) == [1, 2, 3, 4]
    assert lags(pipeline(["u", "c"], [FAR], 3)) == [2, 4, 6]


def test_a_whole_step_of_yee_lags_one_row() -> None:
    assert lags(pipeline(["e", "h"], YEE, 3)) == [1, 1, 2, 2, 3, 3]


def test_rows_are_kept_from_the_first_reader_to_the_last() -> None:
    assert depths(pipeline(["u"], [JACOBI], 3), "u") == [3, 3, 3]
    assert depths(pipeline(["u", "c"], [FAR], 2), "u") == [7, 7]
    assert depths(pipeline(["u", "c"], [FAR], 2), "c") == [5, 5]  # one value, which the last step reads, too
    assert depths(pipeline(["e", "h"], YEE, 2), "e") == [2, 2]


def test_finals_keep_one_row_and_inputs_that_nobody_writes_are_their_own_finals() -> None:
    made = pipeline(["u", "c"], [FAR], 2)
    assert made.finals["u"].depth == 1
    assert made.finals["c"] is made.inputs[1]
    assert [value.source for value in made.finals.values()] == [False, True]


def test_inputs_that_come_late() -> None:
    made = pipeline(["e", "h"], YEE, 1, after_inputs=1)
    assert lags(made) == [2, 2]  # what the step made itself is there at once
    assert depths(made, "e") == [3]


def test_former_values_are_kept_where_they_may_be_carried_over_or_are_asked_for() -> None:
    shift = StageAccess(0, {"v": (1, 1)}, ("u",))
    assert depths(pipeline(["u", "v"], [shift], 1), "u") == [1]
    assert depths(pipeline(["u", "v"], [shift], 1, carry=True), "u") == [2]
    assert depths(pipeline(["u", "v"], [shift], 1, kept="u"), "u") == [2]


def test_rows_are_replaced_in_place_within_a_step_alone() -> None:
    first = StageAccess(0, {"u": (-1, 1)}, ("u",))
    then = StageAccess(1, {"u": (0, 0)}, ("u",), frozenset("u"))
    made = pipeline(["u"], [first, then], 2)
    one, two, three, four = made.nodes
    assert two.after["u"] is one.after["u"]
    assert three.after["u"] is not two.after["u"]
    assert four.after["u"] is three.after["u"]
    assert len({value.number for node in made.nodes for value in node.after.values()}) == 2


def test_rows_of_another_step_or_of_another_lag_are_not_replaced() -> None:
    alone = StageAccess(0, {"u": (0, 0)}, ("u",), frozenset("u"))
    one, two = pipeline(["u"], [alone], 2).nodes
    assert two.after["u"] is not one.after["u"]
    ahead = StageAccess(1, {"u": (0, 0), "v": (0, 2)}, ("u",), frozenset("u"))
    one, two = pipeline(["u", "v"], [alone, ahead], 1).nodes
    assert two.lag > one.lag
    assert two.after["u"] is not one.after["u"]


def test_rows_that_another_stage_has_still_to_read_are_not_replaced() -> None:
    first = StageAccess(0, {"u": (0, 0)}, ("u",))
    reader = StageAccess(1, {"u": (-1, 0)}, ("v",))
    then = StageAccess(2, {"u": (0, 0)}, ("u",), frozenset("u"))
    one, _, three = pipeline(["u", "v"], [first, reader, then], 1).nodes
    assert three.after["u"] is not one.after["u"]


def test_spans() -> None:
    assert span_of([("b", 2), ("a", 0), ("b", -1), ("b", 1)]) == {"b": (-1, 2), "a": (0, 0)}
