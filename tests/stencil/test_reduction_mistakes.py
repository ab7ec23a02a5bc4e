"""What a user may get wrong about reductions is refused with one sentence, before anything runs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from peergrid import Box, Grid, Problem, Receiver, UsageError, reduction, stencil

GRID = Grid((20, 16))
U = GRID.field("u")
NO_KIND = "A reduction is one of sum, mean, max, min, l2, got none; write @reduction('sum') above its function."
SMALL = GRID.field("small", within=Box((0, 0), (4, 4)))


@stencil
def decay(u):  # type: ignore[no-untyped-def]
    u.next[0, 0] = 0.5 * u[0, 0]


def of(function: Callable[..., object], *given: object, kind: str = "sum") -> object:
    """A reduction of a function of these arguments."""
    return reduction(kind, name="total")(function)(*given)  # type: ignore[arg-type]


def with_(function: Callable[..., object], *given: object) -> Problem:
    return Problem.of(decay(U), reductions=of(function, *given))  # type: ignore[arg-type]


def assigning(u):  # type: ignore[no-untyped-def]
    u.next[0, 0] = 1.0
    return u[0, 0]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: of(abs, U, kind="median"), "A reduction is one of sum, mean, max, min, l2, got 'median'."),
        (lambda: reduction(), NO_KIND),
        (lambda: reduction(every=2), NO_KIND),
        (lambda: reduction(lambda u: u[0, 0]), NO_KIND),  # type: ignore[arg-type]
        (
            lambda: reduction("sum", every=0),
            "A reduction is made after every so many whole steps, at least 1, got every = 0.",
        ),
        (
            lambda: reduction("sum", every=2.5),  # type: ignore[arg-type]
            "A reduction is made after every so many whole steps, at least 1, got every = 2.5.",
        ),
        (lambda: of(lambda u: None, U), "Reduction 'total' returns the value of a cell such as 'u[0, 0]', got None."),
        (
            lambda: of(lambda u: u[0, 0] > 0, U),
            "Reduction 'total' returns a number, got a condition; use peergrid.where(condition, 1, 0).",
        ),
        (
            lambda: of(lambda: 1.0),
            "Reduction 'total' reads no field; return an expression of at least one, such as 'u[0, 0]'.",
        ),
        (
            lambda: of(assigning, U),
            "A reduction returns the value of a cell and assigns nothing, got 'u.next[...] = ...'.",
        ),
        (
            lambda: of(lambda u, s: u[0, 0] * s.now, U, GRID.signal("pulse", [1.0])),
            "Reduction 'total' reads the signal 'pulse', whose samples you have; use fields.",
        ),
        (
            lambda: of(lambda u: u[0, 0], "u"),
            "Reduction 'total' takes fields, signals, tables and finite numbers; 'u' is 'u'.",
        ),
        (
            lambda: of(lambda u: u[0, 0], U).within(Box((30, 0), (40, 4))),  # type: ignore[attr-defined]
            "Reduction 'total' is confined to [30,40)×[0,4), which has no cell of [0,20)×[0,16): there would be "
            "nothing to reduce.",
        ),
        (
            lambda: of(lambda u: u[0, 0], U).within((3, 4)),  # type: ignore[attr-defined]
            "A reduction is confined to a peergrid.Box such as Box((0, 0), (8, 8)), got (3, 4).",
        ),
        (
            lambda: with_(lambda u: u.prev[0, 1], U),
            "Reduction 'total' reads 'u.prev' at offset (0, 1), but the value before the step is kept at the cell "
            "itself alone; read it at offset (0, 0), or keep it in a field of its own.",
        ),
        (
            lambda: with_(lambda u: u[20, 0], U),
            "Reduction 'total' reads 0 below and 20 above its cell along the fixed axis 0, which has 20: there would "
            "be nothing to reduce; use a larger grid or another boundary.",
        ),
        (
            lambda: with_(lambda s: s[0, 0], SMALL),
            "Reduction 'total' reads 'small' at offset (0, 0) from [0,20)×[0,16), outside the field's box "
            "[0,4)×[0,4); confine the reduction with .within(box).",
        ),
        (
            lambda: Problem.of(decay(U), reductions=of(lambda u: u[1, 0], U).within(Box((19, 0), (20, 4)))),
            "Reduction 'total' is confined to [19,20)×[0,4), where no cell finds all that it reads.",
        ),
        (
            lambda: with_(lambda u: u[0, 0] - u.prev.prev[0, 0], U),
            "Reduction 'total' reads 'u.prev.prev', but no stencil has 'u.prev'; let one keep the value.",
        ),
        (
            lambda: with_(lambda v: v.prev[0, 0], GRID.field("v")),
            "Reduction 'total' reads 'v.prev', but no stencil has 'v'; let one keep the value.",
        ),
        (
            lambda: with_(lambda v: v[0, 0], Grid((3, 3)).field("v")),
            f"All fields, signals and tables of a problem share one grid; 'v' is on {Grid((3, 3))}.",
        ),
        (
            lambda: Problem.of(decay(U), reductions=[of(lambda u: u[0, 0], U)] * 2),  # type: ignore[list-item]
            "Two reductions are called 'total'; give each its own name.",
        ),
        (
            lambda: Problem.of(decay(U), reductions=[Receiver("r", "u", (1, 1))]),  # type: ignore[list-item]
            "Reductions are given as a function of fields marked with peergrid.reduction, called with its fields, got "
            "Receiver(name='r', field='u', cell=(1, 1)).",
        ),
    ],
)
def test_one_sentence_each(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        call()
    assert str(refused.value) == sentence


def test_a_reduction_brings_its_coefficients_and_cells_where_its_reads_find_values() -> None:
    weight = GRID.field("weight", 2.0)
    one = Problem.of(decay(U), reductions=of(lambda u, w: w[0, 0] * u[-1, 2], U, weight))  # type: ignore[arg-type]
    assert one.coefficients == ("weight",)
    assert one.reductions[0].box == Box((1, 0), (20, 14))
