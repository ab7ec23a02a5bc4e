"""From a function of one cell to expressions: what is noted, and what is refused."""

from __future__ import annotations

import math
import operator
import pickle
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from math import nan
from typing import Any

import numpy as np
import pytest

from peergrid.errors import PeergridError, UsageError
from peergrid.grid import Box, Grid
from peergrid.stencil import Problem, Receiver, Stage, equal, maximum, minimum, reduction, sqrt, stencil, where
from peergrid.stencil.expr import Binary, Const, Now, Param, Read, Unary, Where

GRID = Grid(9)
U, V = GRID.field("u"), GRID.field("v")
MIRRORED = Grid(9, "reflecting").field("mirrored")
WIDE = Grid((9, 9)).signal("s", [[1.0]], (0, 0))


@stencil
def smooth(u, k):  # type: ignore[no-untyped-def]
    u.next[0] = u[0] + k * (u[-1] - 2 * u[0] + u[1])


@stencil
def history(u):  # type: ignore[no-untyped-def]
    u.next[0] = 2 * u[0] - u.prev[0]


@stencil
def follow(u, v):  # type: ignore[no-untyped-def]
    u.next[0] = v[3]


def test_an_expression_is_kept_exactly_as_written() -> None:
    (assignment,) = smooth(U, 0.5).assignments
    u = {i: Read("u", (i,)) for i in (-1, 0, 1)}
    inner = Binary("add", Binary("sub", u[-1], Binary("mul", Const(2.0), u[0])), u[1])
    assert assignment.value == Binary("add", u[0], Binary("mul", Param("k=0.5"), inner))
    assert smooth(U, 0.5).params == (("k=0.5", 0.5),)


def test_every_operator_has_its_node() -> None:
    a, b = Read("u", (0,)), Read("v", (0,))
    assert -a == Unary("neg", a)
    assert abs(a) == Unary("abs", a)
    assert sqrt(a) == Unary("sqrt", a)
    assert a**3 == Binary("mul", Binary("mul", a, a), a)
    assert 1 / a == Binary("div", Const(1.0), a)
    assert 1 - a == Binary("sub", Const(1.0), a)
    assert minimum(a, b) == Binary("min", a, b)
    assert maximum(a, 2) == Binary("max", a, Const(2.0))
    condition = (a < b) & ~(a >= 1) | equal(a, b)
    assert where(condition, a, 0) == Where(condition, a, Const(0.0))


def test_what_can_be_called_is_a_stencil() -> None:
    def scaled(u, k):  # type: ignore[no-untyped-def]
        u.next[0] = k * u[0]

    update = stencil(partial(scaled, k=0.5))(U)
    assert (update.name, update.params) == ("partial", (("k=0.5", 0.5),))


def test_places_may_come_from_numpy_and_lists() -> None:
    (cell,) = Problem.of(smooth(U, 0.1), Receiver("r", "u", np.array([3]))).receivers  # type: ignore[arg-type]
    assert cell == Receiver("r", "u", [3]) == Receiver("r", "u", (3,))  # type: ignore[arg-type]
    confined = smooth(U, 0.1).within(Box.cell(np.array([3]))).box
    assert (repr(confined), confined) == (repr(Box.cell((3,))), Box.cell((3,)))


def test_a_problem_can_be_pickled_and_copied() -> None:
    clock = GRID.signal("clock", [1.0, 2.0])

    @stencil
    def driven(u, v, s, k):  # type: ignore[no-untyped-def]
        u.next[0] = where(u[0] > 0, u[1], k * v[0]) + s.now

    problem = Problem.of(driven(U, V, clock, 0.5), [Receiver("r", "u", (2,))])
    assert problem.state == ("u",)
    for again in (pickle.loads(pickle.dumps(problem)), deepcopy(problem)):
        assert (again.grid, again.stages, again.receivers) == (problem.grid, problem.stages, problem.receivers)
        assert (dict(again.fields), dict(again.params)) == (dict(problem.fields), dict(problem.params))
        assert again.signals["clock"].samples.tolist() == [1.0, 2.0]


def test_the_value_one_step_before_is_a_field_of_its_own() -> None:
    update = history(U)
    assert update.targets == ("u.prev", "u")
    assert update.assignments[0].value == Read("u", (0,))


def raised(u) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = u[0] + 1


def summed(u, v) -> None:  # type: ignore[no-untyped-def]
    v.next[0] = u.prev[1] + u.prev[-1]


def test_the_value_one_step_before_is_refused_where_it_would_be_of_another_step() -> None:
    grow, part = stencil(raised), stencil(summed)(U, V).within(Box((2,), (4,)))
    with pytest.raises(UsageError) as refused:
        Problem.of([grow(U), part])
    assert str(refused.value) == (
        "Update 'summed' reads 'u.prev' at offset (-1,) from [2,4), beyond the cells in which it keeps it, but 'u' "
        "changes there; let it run in all cells that change, or keep the value in a field of your own."
    )
    with pytest.raises(UsageError) as refused:
        Problem.of([part, grow(U), history(U)])
    assert str(refused.value) == (
        "Update 'summed' reads 'u.prev' in cells where another stage reads it, too, so that it would be the value "
        "before that stage; read it in one stage, or keep the value in a field of your own."
    )
    Problem.of([grow(U).within(Box((2,), (4,))), part])
    Problem.of(Stage((history(U).within(Box((1,), (2,))), history(U).within(Box((4,), (5,))), part)))
    for edge in ("periodic", "reflecting"):
        u, v = Grid(9, edge).field("u"), Grid(9, edge).field("v")
        Problem.of([grow(u), stencil(summed)(u, v)])
        with pytest.raises(UsageError, match="beyond the cells in which it keeps it"):
            Problem.of([grow(u).within(Box((8,), (9,))), stencil(summed)(u, v).within(Box((0,), (8,)))])


def test_arguments_may_be_lists() -> None:
    @stencil
    def mix(weights, *fields):  # type: ignore[no-untyped-def]
        first, second = fields
        first.next[0] = weights[0] * first[0] + weights[1] * second[0]

    update = mix([0.25, 0.5], U, V)
    left, right = (
        Binary("mul", Param(f"weights[{i}]={w}"), Read(n, (0,))) for i, w, n in ((0, 0.25, "u"), (1, 0.5, "v"))
    )
    assert update.assignments[0].value == Binary("add", left, right)
    assert dict(update.params) == {"weights[0]=0.25": 0.25, "weights[1]=0.5": 0.5}
    with pytest.raises(UsageError, match=r"'weights\[1\]' is None"):
        mix([0.25, None], U, V)


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize(
    ("use", "given", "sentence"),
    [
        (
            lambda w: w[0],
            [],
            r"The list 'w' of length 0 is indexed by whole numbers below its length, .*, got 0; give a",
        ),
        (
            lambda w: w[0][2],
            [[1.0]],
            r"The list 'w\[0\]' of length 1 is indexed by whole numbers .*, got 2; give a longer list",
        ),
        (
            lambda w: w[Read("u", (0,))],
            [1.0],
            "The list 'w' of length 1 is indexed by .*, got a value of the stencil; ",
        ),
        (
            lambda w: w[0],
            [[1.0]],
            r"got the list 'w\[0\]' of length 1 without the place of an entry; write w\[0\]\[...\]",
        ),
        (lambda w: -w[0], [[1.0]], r"A stencil combines values, got the list 'w\[0\]' of length 1 without"),
        (
            lambda w: w[0] - w[1],
            [[1.0], [2.0]],
            r"A stencil combines values, got the list 'w\[0\]' of length 1 without",
        ),
        (lambda w: 1 / w, [1.0], "A stencil combines values, got the list 'w' of length 1 without"),
        (lambda w: w[0] / 2, [[]], r"A stencil combines values, got the list 'w\[0\]' of length 0 without"),
        (lambda w: w[0], ENDLESS, "takes lists of a few levels; 'w' has more, or contains itself"),
    ],
)
def test_lists_of_another_length_or_depth_are_refused(
    use: Callable[[Any], Any], given: list[Any], sentence: str
) -> None:
    def weighted(u, w) -> None:  # type: ignore[no-untyped-def]
        u.next[0] = use(w)

    with pytest.raises(UsageError, match=sentence):
        stencil(weighted)(U, given)


def test_a_signal_is_read_as_now() -> None:
    @stencil
    def drive(u, wave):  # type: ignore[no-untyped-def]
        u.next[0] = wave.now

    assert drive(U, GRID.signal("w", [1.0])).assignments[0].value == Now("w")


def test_an_update_is_cut_to_the_cells_whose_reads_can_be_answered() -> None:
    assert Problem.of(follow(U, V)).stages[0].updates[0].box == Box((0,), (6,))
    ring = Grid(9, "periodic")
    assert Problem.of(follow(ring.field("u"), ring.field("v"))).stages[0].updates[0].box == ring.box


def test_state_and_coefficients_are_told_apart() -> None:
    problem = Problem.of([follow(U, V)])
    assert problem.state == ("u",)
    assert problem.coefficients == ("v",)


def nothing(u) -> None:  # type: ignore[no-untyped-def]
    pass


def aside(u):  # type: ignore[no-untyped-def]
    u.next[1] = u[0]


def twice(u):  # type: ignore[no-untyped-def]
    u.next[0] = u[0]
    u.next[0] = u[1]


def truth(u):  # type: ignore[no-untyped-def]
    u.next[0] = u[0] > 1


def flat(u):  # type: ignore[no-untyped-def]
    u.next[0] = u[0, 0]


def written(u) -> None:  # type: ignore[no-untyped-def]
    u[0] = u[1]


def whole(u) -> None:  # type: ignore[no-untyped-def]
    u.next = u[1]


def set_before(u) -> None:  # type: ignore[no-untyped-def]
    u.prev = 3


def after(u) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = u.next[1] + 1


def bare(u) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = u + 1


def timeless(u, s) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = u[0] + s


def added(u, v) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = u[0] + v[0]


def driven_by(u, s) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = s.now


def twofold(u, s, t) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = s.now + t.now


def earlier_and(u, before) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = u.prev[0] + before[0]


def earlier_set(u, before) -> None:  # type: ignore[no-untyped-def]
    before.next[0] = u[0]
    u.next[0] = u.prev[0]


def gathered(u) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = u[u[0]]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: stencil(nothing)(U),
            "Stencil 'nothing' assigns nothing: expected at least one 'field.next[...] = ...'.",
        ),
        (lambda: stencil(aside)(U), "A stencil writes its own cell: expected 'u.next' at offset 0, got 1."),
        (
            lambda: stencil(twice)(U),
            "'u.next' is assigned twice in one stencil; use one assignment, or two stages.",
        ),
        (
            lambda: stencil(truth)(U),
            "'u.next' takes a number, got a condition; use peergrid.where(condition, 1, 0).",
        ),
        (
            lambda: stencil(written)(U),
            "A stencil assigns to 'next', got an assignment to 'u[...]'; write u.next[...] = ..., offset 0.",
        ),
        (
            lambda: stencil(whole)(U),
            "A stencil assigns to 'u.next[0]', got an assignment to 'u.next'; add the offset.",
        ),
        (
            lambda: stencil(set_before)(U),
            "A stencil assigns to 'u.next[0]', got an assignment to 'u.prev'; the value before the step is kept by "
            "itself.",
        ),
        (
            lambda: stencil(after)(U),
            "'u.next' is written, not read: all reads of a stage see what was there before it; read 'u', or put what "
            "needs the new values into a stage of its own.",
        ),
        (lambda: stencil(bare)(U), "A stencil combines values, got 'u' without a cell; write u[0]."),
        (
            lambda: stencil(flat)(U),
            "'u' is indexed by 1 whole-number offsets from the cell, known before the run, got 0, 0.",
        ),
        (
            lambda: stencil(gathered)(U),
            "'u' is indexed by 1 whole-number offsets from the cell, known before the run, got a value of the stencil.",
        ),
        (lambda: smooth(U, "k"), "Stencil 'smooth' takes fields, signals, tables and finite numbers; 'k' is 'k'."),
        (lambda: smooth(U, nan), "Stencil 'smooth' takes fields, signals, tables and finite numbers; 'k' is nan."),
        (
            lambda: smooth(U, np.ones((9, 2))),
            "Stencil 'smooth' takes fields, signals, tables and finite numbers; 'k' is an array of shape (9, 2) (make "
            "it a field with grid.field, or a list of weights with .tolist()).",
        ),
        (
            lambda: smooth(U, 10**400),
            "Stencil 'smooth' takes fields, signals, tables and finite numbers; 'k' is a int.",
        ),
        (
            lambda: Problem.of(stencil(driven_by)(U, WIDE)),
            "All fields, signals and tables of a problem share one grid; 's' is on Grid(shape=(9, 9), "
            "boundary=('fixed', 'fixed'), dtype='float32').",
        ),
        (lambda: smooth(U), "Stencil 'smooth' takes (u, k): missing a required argument: 'k'."),
        (lambda: Problem.of([]), "A problem needs at least one update, got none."),
        (
            lambda: Problem.of(smooth),  # type: ignore[arg-type]
            "A step is a list of updates and stages, got a Stencil in it; call each stencil with its fields and "
            "numbers, as in heat(u, k=0.2).",
        ),
        (
            lambda: smooth(U, 0.1).within(((0,), (3,))),  # type: ignore[arg-type]
            "An update is confined to a peergrid.Box such as Box((0, 0), (8, 8)), got ((0,), (3,)).",
        ),
        (
            lambda: Stage((smooth(U, 0.1), history(U))),
            "Updates 'smooth' and 'history' of one stage both write 'u' in [0,9); put them into stages of their own, "
            "or on boxes that do not overlap.",
        ),
        (
            lambda: Problem.of(follow(U, GRID.field("v", within=Box((0,), (5,))))),
            "Update 'follow' reads 'v' at offset (3,) from [0,6), outside the field's box [0,5); confine the update "
            "with .within(box).",
        ),
        (
            lambda: Problem.of(
                follow(MIRRORED, MIRRORED.grid.field("v", within=Box((7,), (9,)))).within(Box((7,), (9,)))
            ),
            "Update 'follow' reads 'v' at offset (3,) from [7,9), outside the field's box [7,9); confine the update "
            "with .within(box).",
        ),
        (
            lambda: Problem.of(smooth(U, 0.1), [Receiver("r", "w", (1,))]),
            "Receiver 'r' records a field of the problem (u), got 'w'.",
        ),
        (
            lambda: smooth(U, 0.1).within(Box((1.0,), (3.0,))),  # type: ignore[arg-type]
            "Update 'smooth' takes a box with 1 whole numbers for each corner, got Box(lo=(1.0,), hi=(3.0,)).",
        ),
        (
            lambda: smooth(U, 0.1).within(Box((1, 1), (3, 3))),
            "Update 'smooth' takes a box with 1 whole numbers for each corner, got Box(lo=(1, 1), hi=(3, 3)).",
        ),
        (
            lambda: smooth(U, 0.1).within(Box.cell((40,))),
            "Update 'smooth' is confined to [40,41), which has no cell of [0,9): nothing would change.",
        ),
        (
            lambda: Receiver("r", "u", (1.5,)),  # type: ignore[arg-type]
            "Receiver 'r' takes a cell such as (8, 8), whole numbers, got (1.5,).",
        ),
        (
            lambda: Problem.of(smooth(U, 0.1), [Receiver("r", "u", (1, 1))]),
            "Receiver 'r' lies at (1, 1), outside 'u' on [0,9).",
        ),
        (
            lambda: Problem.of(smooth(U, 0.1), [("r", "u", (1,))]),  # type: ignore[list-item]
            "Receivers are given as peergrid.Receiver('r1', 'u', (8, 8)), got ('r', 'u', (1,)).",
        ),
        (
            lambda: Problem.of(smooth(U, 0.1), [Receiver("r", "u", (1,)), Receiver("r", "u", (2,))]),
            "Two receivers are called 'r'; give each its own name.",
        ),
        (
            lambda: Problem.of([follow(U, V), follow(GRID.field("u"), V)]),
            "Two different things are called 'u'; give each its own name.",
        ),
        (lambda: stencil(added)(U, GRID.field("u")), "Two different things are called 'u'; give each its own name."),
        (
            lambda: reduction("sum", name="r")(lambda u, v: u[0] + v[0])(U, GRID.field("u")),
            "Two different things are called 'u'; give each its own name.",
        ),
        (
            lambda: stencil(twofold)(U, GRID.signal("s", [1.0]), GRID.signal("s", [2.0])),
            "Two different things are called 's'; give each its own name.",
        ),
        (
            lambda: stencil(earlier_and)(U, GRID.field("u.prev")),
            "Two different things are called 'u.prev'; give each its own name.",
        ),
        (
            lambda: stencil(earlier_set)(U, GRID.field("u.prev")),
            "Two different things are called 'u.prev'; give each its own name.",
        ),
    ],
)
def test_what_cannot_be_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        make()
    assert str(refused.value) == sentence


@pytest.mark.parametrize("number", [np.float32(0.5), np.float16(0.5), np.longdouble(0.5)])
def test_numbers_of_numpy_are_taken_without_a_warning(number: Any) -> None:
    with warnings.catch_warnings(action="error"):
        assert scaled(U, number).params == (("factor=0.5", 0.5),)


def test_an_infinite_number_of_numpy_is_refused() -> None:
    with pytest.raises(UsageError, match="finite numbers; 'factor' is inf"):
        scaled(U, np.float32("inf"))


def test_python_conditions_are_refused_while_tracing() -> None:
    with pytest.raises(TypeError, match="known only when it runs"):
        bool(Read("u", (0,)) > 1)
    with pytest.raises(TypeError, match="combines values of fields, signals and numbers, got True"):
        Read("u", (0,)) ** True


def test_expressions_are_compared_as_such() -> None:
    a, b = Read("u", (0,)), Read("v", (0,))
    assert a == Read("u", (0,))
    assert a != b
    assert a != "u"
    assert {a: 1, b: 2}[Read("v", (0,))] == 2


def test_what_numpy_and_python_make_of_a_value() -> None:
    a, b, two = Read("u", (0,)), Read("v", (0,)), Const(2.0)
    assert np.float32(2) * a == Binary("mul", two, a)
    assert a * np.float32(2) == a * np.int64(2) == Binary("mul", a, two)
    assert np.sqrt(a) == sqrt(a)
    assert +a is a
    assert np.maximum(a, b) == maximum(a, b)
    assert where(np.float64(2) < a, a, b) == Where(Binary("lt", two, a), a, b)
    assert smooth(U, np.float64(0.5)).params == (("k=0.5", 0.5),)
    assert stencil(stepping)(U).assignments[0].value == Read("u", (1,))


@stencil
def scaled(u: Any, factor: Any) -> None:
    u.next[0] = factor * u[0]


def stepping(u) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = u[np.int64(1)]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda a: a % 2, "and no shifts. There are "),
        (lambda a: divmod(a, 2)[0], "divmod and no shifts. There are "),
        (lambda a: round(a), "known only when it runs"),
        (lambda a: round(a, 2), "known only when it runs"),
        (lambda a: math.trunc(a), "known only when it runs"),
        (lambda a: int(a), "known only when it runs"),
        (lambda a: complex(a), "known only when it runs"),
        (lambda a: 7 // a, "and no shifts. There are "),
        (lambda a: np.arcsin(a), "A stencil has no numpy.arcsin. There are "),
        (lambda a: np.ones(3) * a, r"got an array of shape \(3,\) \(make it a field"),
        (lambda a: np.where(a > 0, 1, 2), r"A stencil has no numpy.where. There are .* equal and where; compute"),
        (lambda a: a + 10**400, "A number of a stencil is below 1e308, got a larger one; use other units"),
        (lambda a: math.sin(a), "so no function of Python takes it. There are "),
        (lambda a: max(a, 1), "minimum and maximum in place of if, and, or, min and max"),
        (lambda a: where(a == 1, 1, 0), r"compare expressions: use peergrid.equal\(value, 1\), or ~ of it, in "),
        (lambda a: a != np.float32(2), r"compare expressions: use peergrid.equal\(value, np.float32\(2.0\)\)"),
        (lambda a: 0 if a == 0.5 else 1, r"compare expressions: use peergrid.equal\(value, 0.5\)"),
        (
            lambda a: where(a == 2 * a, 1, 0),
            r"\(in place of == peergrid.equal\), .*, got False",
        ),
        (lambda a: where(a > 0 & a < 1, 1, 0), r"in parentheses beside & and \|, got a value of the stencil"),
        (lambda a: where(a > 0 | a < 1, 1, 0), r"in parentheses beside & and \|, got a value of the stencil"),
        (lambda a: stencil(timeless)(U, GRID.signal("s", [1.0])), "got the signal 's' without a time; write s.now"),
    ],
)
def test_what_a_stencil_cannot_take_is_named(make: Callable[[Any], object], sentence: str) -> None:
    with pytest.raises(TypeError, match=sentence) as refused:
        make(Read("u", (0,)))
    assert isinstance(refused.value, PeergridError), "of the family that a program catches"


@pytest.mark.parametrize(
    "operation",
    [
        operator.invert,
        abs,
        operator.pos,
        lambda u: u % 2,
        lambda u: 2 % u,
        lambda u: u & 1,
        lambda u: 1 | u,
        lambda u: u == 0,
    ],
)
def test_a_field_without_a_cell_has_no_operations(operation: Callable[[Any], Any]) -> None:
    with pytest.raises(UsageError, match=r"A stencil combines values, got 'u' without a cell; write u\[0\]"):
        stencil(operation)(U)


def test_an_unknown_name_of_a_field_is_refused() -> None:
    with pytest.raises(AttributeError, match=r"'u.laplace' is unknown in a stencil: there are u\[0\], its 'next'"):
        stencil(lambda u: u.laplace)(U)


def reads(u, argument):  # type: ignore[no-untyped-def]
    u.next[0] = argument[0]


@pytest.mark.parametrize(
    "read",
    [
        lambda: V[0],
        lambda: V.prev[0],
        lambda: GRID.signal("v", [1.0]).now,  # type: ignore[attr-defined]
        lambda: GRID.table("v", [1.0])[0],
    ],
)
def test_what_a_stencil_is_not_called_with_has_no_values(read: Callable[[], Any]) -> None:
    @stencil
    def outside(u):  # type: ignore[no-untyped-def]
        u.next[0] = read()

    with pytest.raises(UsageError) as refused:
        outside(U)
    assert str(refused.value) == (
        "A stencil reads what it is called with, got 'v' from outside; make it an argument, as in heat(u, k)."
    )


def test_a_signal_has_no_cells() -> None:
    with pytest.raises(UsageError, match=r"A stencil combines values, got the signal 's' without a time; write s.now"):
        stencil(reads)(U, GRID.signal("s", [1.0]))


def test_a_number_beyond_the_precision_is_refused() -> None:
    large = reduction("sum", name="r")(lambda u: 1e39 * u[0])
    for call in (lambda: stencil(scaled_by_a_large_number)(U), lambda: large(U)):
        with pytest.raises(UsageError, match=r"takes numbers of float32, got 1e\+39; use other units or a grid of"):
            call()
    precise = Grid(9, dtype="float64").field("u")
    stencil(scaled_by_a_large_number)(precise)


def scaled_by_a_large_number(u) -> None:  # type: ignore[no-untyped-def]
    u.next[0] = minimum(1e39 * u[0], math.inf)
