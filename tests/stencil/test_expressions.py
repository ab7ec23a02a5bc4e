"""Hash-consing: equal expressions are one object, and what is done with them takes time by their distinct parts."""

from __future__ import annotations

import gc
import math
import pickle
from copy import copy, deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.grid import Grid
from peergrid.stencil import Problem, Update, footprint, stencil, where
from peergrid.stencil import interned as table
from peergrid.stencil.cost import operations
from peergrid.stencil.expr import Binary, Const, Expr, Param, Read, Unary, Where, ordered
from peergrid.stencil.program import CellProgram, composed, counts

U, V = Read("u", (0,)), Read("v", (1,))


def squared(times: int) -> Update:
    @stencil
    def square(u):  # type: ignore[no-untyped-def]
        a = u[0]
        for _ in range(times):
            a = a * a + u[1]
        u.next[0] = a

    return square(Grid(100).field("u"))


def test_equal_expressions_are_one_object() -> None:
    assert Read("u", (0,)) is U
    assert U * 2 + V is Binary("add", Binary("mul", U, Const(2)), V)
    assert where(U < V, U, 1) is Where(Binary("lt", U, V), U, Const(1.0))
    assert -U is Unary("neg", U)
    assert U + V is not V + U
    assert Param("u") != Read("u", ())


@pytest.mark.parametrize(("one", "two"), [(0.0, -0.0), (math.nan, -math.nan), (1.0, 1.0 + 2**-52)])
def test_constants_of_other_bits_are_others(one: float, two: float) -> None:
    assert Const(one) is Const(one)
    assert Const(one) != Const(two)


def test_whole_numbers_are_numbers() -> None:
    assert Const(2) is Const(2.0)
    assert isinstance(Const(2).value, float)


def test_nobody_keeps_an_expression_that_nothing_refers_to() -> None:
    gc.collect()
    before = len(table._TABLE)
    made = [U * Const(float(n)) for n in range(1000, 1100)]
    assert len(table._TABLE) == before + 200
    del made
    gc.collect()
    assert len(table._TABLE) == before


@pytest.mark.parametrize("copied", [copy, deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_copy_is_the_same(copied) -> None:  # type: ignore[no-untyped-def]
    value = where((U < V) & ~(U >= 0), abs(U) * Const(-0.0), Param("k=1") / math.nan)
    assert copied(value) is value


@pytest.mark.parametrize("times", [16, 60])
def test_a_value_that_is_used_again_and_again_is_there_once(times: int) -> None:
    """As a tree it would have 2^60 parts."""
    update = squared(times)
    problem = Problem.of(update)
    (assignment,) = update.assignments
    program = CellProgram((assignment.value,))
    assert program.operations == 2 * times
    assert len(program.values) == 2 * times + 2
    assert operations(problem) == 2 * times * 99
    assert footprint(problem, 1).inputs["u"].above == (1,)
    assert deepcopy(assignment.value) is assignment.value
    assert len(pickle.dumps(problem)) < 100 * times + 2000
    assert hash(squared(times)) == hash(update)
    assert squared(times).assignments == update.assignments
    assert len(repr(problem)) < 10000


def test_expressions_as_deep_as_anyone_likes() -> None:
    value: Expr = U
    for n in range(20_000):
        value = value + float(n)
    assert len(ordered((value,))) == 40_001
    assert pickle.loads(pickle.dumps(value)) is value
    assert composed(value, {U: V}) is not value
    assert "40001 parts" in repr(value)


def test_small_expressions_are_shown_in_full() -> None:
    assert repr(U * 2) == "Binary('mul', Read('u', (0,)), Const(2.0))"


def test_operands_come_first_from_left_to_right() -> None:
    twice = U * V
    program = CellProgram((twice + Const(1), twice - U))
    assert program.values == (U, V, twice, Const(1), twice + Const(1), twice - U)
    assert [program.uses[value] for value in program.values] == [2, 1, 2, 1, 1, 1]


def test_parts_are_replaced_as_if_written_so() -> None:
    assert composed(U * U + V, {U: U + 1}) is (U + 1) * (U + 1) + V
    assert composed(U * V, {V: U * V}) is U * (U * V)
    assert composed(U * V, {}) is U * V


def test_conditions_count_where_numbers_are_asked_for() -> None:
    condition = U < V
    assert [counts(where(condition, condition, U), n) for n in range(3)] == [False, True, False]
    assert counts(condition + U, 0)
    assert not counts(condition & condition, 0)
    assert not counts(~condition, 0)


@given(st.lists(st.tuples(st.sampled_from(["add", "mul", "sub"]), st.integers(0, 9), st.integers(0, 9)), max_size=40))
def test_operations_are_the_distinct_ones(made: list[tuple[str, int, int]]) -> None:
    pool, distinct = [U, V], set[tuple[str, int, int]]()
    for op, a, b in made:
        one, two = pool[a % len(pool)], pool[b % len(pool)]
        distinct.add((op, id(one), id(two)))
        pool.append(Binary(op, one, two))  # type: ignore[arg-type]
    assert CellProgram(tuple(pool)).operations == len(distinct)
