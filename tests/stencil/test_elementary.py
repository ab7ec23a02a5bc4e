"""exp, log, sin, cos, tanh and powers: at most one unit in the last place from the truth, whatever the argument."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import mpmath
import numpy as np
import pytest

import peergrid
from peergrid import Grid, Problem, Simulation, stencil
from peergrid.grid import Array, Dtype
from peergrid.runtime.executors import KernelKind
from peergrid.stencil.elementary import HALF_PI, LN_2, SHIFT, largest_angle
from peergrid.stencil.expr import Function, ordered
from peergrid.stencil.pairs import FORMATS

DTYPES: tuple[Dtype, ...] = ("float32", "float64")
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda x, y: peergrid.exp(x),
    "log": lambda x, y: peergrid.log(x),
    "sin": lambda x, y: peergrid.sin(x),
    "cos": lambda x, y: peergrid.cos(x),
    "tanh": lambda x, y: peergrid.tanh(x),
    "power": lambda x, y: x**y,
}
CELLS = 500


def values(name: str, dtype: Dtype, x: Array, y: Array | None = None, kernel: KernelKind = "reference") -> Array:
    """A function of many values, by the kernel that defines what is right."""
    grid = Grid(len(x), dtype=dtype)
    with np.errstate(all="ignore"):
        fields = grid.field("x", x), grid.field("y", x if y is None else y), grid.field("found")

    @stencil
    def apply(x: Any, y: Any, found: Any) -> None:
        found.next[0] = FUNCTIONS[name](x[0], y[0])

    with Simulation(Problem.of(apply(*fields)), 1, devices="cpu:1", kernel=kernel) as simulation:
        simulation.run(1)
        return simulation.gather("found")


def arguments(name: str, dtype: Dtype) -> tuple[Array, Array]:
    """Arguments whose results are normal and subnormal numbers; for powers both."""
    rng, kind = np.random.default_rng(3), FORMATS[dtype]
    top, low = kind.largest * np.log(2), (kind.largest + kind.fraction - 2) * np.log(2)
    near_zero, any_size = rng.normal(0, 1, CELLS), np.exp(rng.uniform(-low, top, CELLS))
    angle = largest_angle(kind)
    tiny = np.ldexp(1.0, 2 - kind.largest - kind.fraction)  # from the smallest subnormal number up
    small = rng.choice([-1.0, 1.0], CELLS) * np.exp(rng.uniform(np.log(tiny), 0, CELLS))
    x = {
        "exp": [rng.uniform(-low, top, CELLS), small, near_zero, near_zero * 1e-4],
        "log": [any_size, rng.uniform(0.5, 2, CELLS), 1 + near_zero * 1e-4],
        "tanh": [small, near_zero, near_zero * 1e-3, near_zero * 1e-6, 5 * near_zero],
        "power": [any_size, np.exp(rng.uniform(-3, 3, CELLS))],
    }.get(name, [rng.uniform(-angle, angle, CELLS), small, 4 * near_zero, np.arange(1, CELLS) * np.pi / 2])
    taken = np.concatenate(x).astype(dtype)
    with np.errstate(divide="ignore"):
        y = np.clip(rng.uniform(-0.95 * top, 0.95 * top, len(taken)) / np.log(np.abs(taken, dtype=float)), -1e4, 1e4)
    return taken, y.astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_is_at_most_one_unit(name: str, dtype: Dtype) -> None:
    x, y = arguments(name, dtype)
    found, kind, worst = values(name, dtype, x, y), FORMATS[dtype], 0.0
    with mpmath.workprec(200):
        function = mpmath.power if name == "power" else getattr(mpmath, name)
        for place, value in enumerate(found):
            given = [mpmath.mpf(float(x[place])), *([mpmath.mpf(float(y[place]))] if name == "power" else [])]
            truth = function(*given)
            exponent = max(mpmath.frexp(truth)[1] - 1, 1 - kind.largest)
            worst = max(
                worst, float(abs(mpmath.mpf(float(value)) - truth) * mpmath.mpf(2) ** (kind.fraction - exponent))
            )
    assert worst <= 1


def test_numbers_are_those_of_mpmath() -> None:
    with mpmath.workprec(300):
        assert int(mpmath.nint(mpmath.ldexp(mpmath.log(2), SHIFT))) == LN_2
        assert int(mpmath.nint(mpmath.ldexp(mpmath.pi / 2, SHIFT))) == HALF_PI


SPECIAL = {
    "exp": [(0.0, 1.0), (inf, inf), (-inf, 0.0), (nan, nan), (1e30, inf), (-1e30, 0.0)],
    "log": [(1.0, 0.0), (0.0, -inf), (-0.0, -inf), (inf, inf), (-1.0, nan), (-inf, nan), (nan, nan)],
    "sin": [(0.0, 0.0), (inf, nan), (nan, nan), (1e7, nan)],
    "cos": [(0.0, 1.0), (-inf, nan), (nan, nan), (-1e7, nan)],
    "tanh": [(0.0, 0.0), (inf, 1.0), (-inf, -1.0), (nan, nan), (40.0, 1.0)],
}
POWERS = [
    (2.0, 10.0, 1024.0), (-2.0, 3.0, -8.0), (-2.0, -2.0, 0.25), (-2.0, 0.5, nan), (0.0, 2.5, 0.0), (0.0, -1.0, inf),
    (0.0, 0.0, 1.0), (nan, 0.0, 1.0), (nan, 1.0, nan), (3.0, nan, nan), (inf, 0.3, inf), (inf, -0.3, 0.0),
    (-inf, 3.0, -inf), (1.0, inf, 1.0), (2.0, inf, inf), (0.5, inf, 0.0), (0.5, -inf, inf), (-1.0, 1e30, 1.0),
    (10.0, 60.0, inf), (10.0, -70.0, 0.0), (1.0, nan, nan), (-inf, 1.5, nan),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str, dtype: Dtype) -> None:
    given, expected = np.transpose(SPECIAL[name])
    np.testing.assert_array_equal(values(name, dtype, given), expected.astype(dtype))


def test_special_powers() -> None:
    x, y, expected = np.transpose(POWERS)
    np.testing.assert_array_equal(values("power", "float32", x, y), np.float32(expected))


def test_small_whole_powers_are_products_and_halves_roots() -> None:
    x = np.linspace(0, 1.7, 20).astype("float32")
    grid = Grid(20)

    @stencil
    def apply(x: Any, cube: Any, root: Any) -> None:
        cube.next[0] = x[0] ** 3
        root.next[0] = x[0] ** 0.5

    update = apply(grid.field("x", x), grid.field("cube"), grid.field("root"))
    result = peergrid.run(update, 1, devices="cpu:1")
    np.testing.assert_array_equal(result.fields["cube"], x * x * x)
    np.testing.assert_array_equal(result.fields["root"], np.sqrt(x))


@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_code_has_the_bits_of_the_reference(dtype: Dtype) -> None:
    for name in ("exp", "log"):
        x = np.abs(arguments(name, dtype)[0])
        np.testing.assert_array_equal(values(name, dtype, x, kernel="compiled"), values(name, dtype, x))


def test_functions_of_numpy_and_python_operators_become_expressions_of_basic_operations() -> None:
    @stencil
    def apply(x: Any, k: Any) -> None:
        x.next[0] = np.exp(x[0]) + np.tanh(k) * 2 ** x[0] + np.power(x[0], k) + np.sin(np.cos(np.log(x[0])))

    (assignment,) = apply(Grid(9).field("x"), 0.3).assignments
    assert not any(isinstance(part, Function) for part in ordered((assignment.value,)))
