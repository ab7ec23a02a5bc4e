"""The 3D problems that are measured."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from peergrid.grid import Box, Dtype, Field, Grid, Index
from peergrid.stencil import Problem, Receiver, Stage, Update, stencil
from peergrid.stencil.trace import Stencil

AXES = "xyz"
LAYERS = 10


@stencil
def heat(u: Any, k: float) -> None:
    around = u[-1, 0, 0] + u[1, 0, 0] + u[0, -1, 0] + u[0, 1, 0] + u[0, 0, -1] + u[0, 0, 1]
    u.next[0, 0, 0] = u[0, 0, 0] + k * (around - 6 * u[0, 0, 0])


@stencil
def damp(u: Any, w: Any) -> None:
    u.next[0, 0, 0] = u[0, 0, 0] * w[0, 0, 0]


@stencil
def magnetic(ex: Any, ey: Any, ez: Any, hx: Any, hy: Any, hz: Any, c: float) -> None:
    hx.next[0, 0, 0] = hx[0, 0, 0] + c * ((ey[0, 0, 1] - ey[0, 0, 0]) - (ez[0, 1, 0] - ez[0, 0, 0]))
    hy.next[0, 0, 0] = hy[0, 0, 0] + c * ((ez[1, 0, 0] - ez[0, 0, 0]) - (ex[0, 0, 1] - ex[0, 0, 0]))
    hz.next[0, 0, 0] = hz[0, 0, 0] + c * ((ex[0, 1, 0] - ex[0, 0, 0]) - (ey[1, 0, 0] - ey[0, 0, 0]))


@stencil
def electric(ex: Any, ey: Any, ez: Any, hx: Any, hy: Any, hz: Any, cb: Any) -> None:
    b = cb[0, 0, 0]
    ex.next[0, 0, 0] = ex[0, 0, 0] + b * ((hz[0, 0, 0] - hz[0, -1, 0]) - (hy[0, 0, 0] - hy[0, 0, -1]))
    ey.next[0, 0, 0] = ey[0, 0, 0] + b * ((hx[0, 0, 0] - hx[0, 0, -1]) - (hz[0, 0, 0] - hz[-1, 0, 0]))
    ez.next[0, 0, 0] = ez[0, 0, 0] + b * ((hy[0, 0, 0] - hy[-1, 0, 0]) - (hx[0, 0, 0] - hx[0, -1, 0]))


@stencil
def add(u: Any, s: Any) -> None:
    u.next[0, 0, 0] = u[0, 0, 0] + s.now


def heat_problem(n: int, dtype: Dtype = "float32") -> Problem:
    return Problem.of(heat(Grid((n, n, n), "fixed", dtype).field("u"), 0.1))


def layers_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """Heat with damping in layers on all sides."""
    grid = Grid((n, n, n), "fixed", dtype)
    u, w = grid.field("u"), grid.profile("w", 0, np.full(n, 0.99))
    inside = Box((LAYERS,) * 3, (n - LAYERS,) * 3)
    return Problem.of([heat(u, 0.1), Stage(tuple(damp(u, w).within(box) for box in grid.box - inside))])


def yee_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """Yee's scheme with one coefficient field."""
    grid = Grid((n, n, n), "fixed", dtype)
    fields = [grid.field(name) for name in ("ex", "ey", "ez", "hx", "hy", "hz")]
    return Problem.of([magnetic(*fields, 0.3), electric(*fields, grid.field("cb"))])


@stencil
def electric_uniform(ex: Any, ey: Any, ez: Any, hx: Any, hy: Any, hz: Any, c: float) -> None:
    ex.next[0, 0, 0] = ex[0, 0, 0] + c * ((hz[0, 0, 0] - hz[0, -1, 0]) - (hy[0, 0, 0] - hy[0, 0, -1]))
    ey.next[0, 0, 0] = ey[0, 0, 0] + c * ((hx[0, 0, 0] - hx[0, 0, -1]) - (hz[0, 0, 0] - hz[-1, 0, 0]))
    ez.next[0, 0, 0] = ez[0, 0, 0] + c * ((hy[0, 0, 0] - hy[-1, 0, 0]) - (hx[0, 0, 0] - hx[0, -1, 0]))


def yee_periodic_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """Yee's scheme in one medium, periodic: six fields, 48 bytes a cell in float32."""
    return _yee_uniform(Grid((n, n, n), "periodic", dtype))


def yee_uniform_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """The same with fixed edges."""
    return _yee_uniform(Grid((n, n, n), "fixed", dtype))


def _yee_uniform(grid: Grid) -> Problem:
    fields = [grid.field(name) for name in ("ex", "ey", "ez", "hx", "hy", "hz")]
    return Problem.of([magnetic(*fields, 0.3), electric_uniform(*fields, 0.3)])


def maxwell_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """Yee's scheme with losses, an absorber (CPML) on all sides, a source and receivers: a radar model in 3D."""
    grid = Grid((n, n, n), "fixed", dtype)
    names = ("ex", "ey", "ez", "hx", "hy", "hz")
    fields = {name: grid.field(name) for name in (*names, "ca", "cb")}
    stages = [
        Stage(tuple(_absorbed(grid, fields, "h", 0, n - 1))),
        Stage(tuple(_absorbed(grid, fields, "e", 1, n))),
        add(fields["ez"], grid.signal("pulse", np.sin(np.arange(4096) / 9))).within(Box.cell((n // 2,) * 3)),
    ]
    return Problem.of(stages, _receivers(n))


def maxwell_open_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """The same without the absorber: the updates of its interior on the whole grid."""
    grid = Grid((n, n, n), "fixed", dtype)
    names = ("ex", "ey", "ez", "hx", "hy", "hz", "ca", "cb")
    fields = {name: grid.field(name) for name in names}
    halves = [_curl(half, frozenset(), names)(**fields) for half in "he"]
    pulse = add(fields["ez"], grid.signal("pulse", np.sin(np.arange(4096) / 9))).within(Box.cell((n // 2,) * 3))
    return Problem.of([*halves, pulse], _receivers(n))


def _receivers(n: int) -> list[Receiver]:
    return [Receiver(f"r{k}", "ez", (n // 3, n // 3, n // 4 + n // 20 * k)) for k in range(8)]


def _absorbed(grid: Grid, fields: dict[str, Field], half: str, lo: int, hi: int) -> list[Update]:
    """The updates of H or E in the interior and, with memory for stretched axes, in the layers around it."""
    n, made = grid.shape[0], list[Update]()
    spans = (("lo", lo, LAYERS), ("", LAYERS, n - LAYERS), ("hi", n - LAYERS, hi))
    curves = {axis: _curves(grid, half, axis) for axis in range(3)}
    memory = {
        (axis, end): _memory(grid, half, axis, end, grid.box.with_axis(axis, first, last)) | curves[axis]
        for axis in range(3)
        for end, first, last in spans
        if end
    }
    for parts in product(spans, repeat=3):
        cells = {axis: memory[axis, end] for axis, (end, _, _) in enumerate(parts) if end}
        given = fields | {name: field for more in cells.values() for name, field in more.items()}
        box = Box(tuple(first for _, first, _ in parts), tuple(last for _, _, last in parts))
        made.append(_curl(half, frozenset(cells), tuple(given))(**given).within(box))
    return made


def _memory(grid: Grid, half: str, axis: int, end: str, box: Box) -> dict[str, Field]:
    """The absorber's memory of the two components normal to an axis, at one of its ends."""
    return {
        f"psi_{half}{component}{AXES[axis]}": grid.field(f"psi.{half}{component}.{AXES[axis]}.{end}", within=box)
        for component in AXES
        if component != AXES[axis]
    }


def _curves(grid: Grid, half: str, axis: int) -> dict[str, Field]:
    """The absorber's profiles along an axis."""
    curves, n, name = (("k", 0.9), ("b", 0.5), ("c", -0.1)), grid.shape[0], AXES[axis]
    return {f"{k}{name}": grid.profile(f"{k}.{half}.{name}", axis, np.full(n, v)) for k, v in curves}


def _curl(half: str, stretched: frozenset[int], names: tuple[str, ...]) -> Stencil:
    """The update of H or E; derivatives along stretched axes have memory."""

    def difference(cells: dict[str, Any], component: int, of: int, axis: int) -> Any:
        u = cells[f"{'e' if half == 'h' else 'h'}{AXES[of]}"]
        step = tuple(int(k == axis) for k in range(3))
        back = tuple(-s for s in step)
        found = u[step] - u[0, 0, 0] if half == "h" else u[0, 0, 0] - u[back]
        if axis not in stretched:
            return found
        psi = cells[f"psi_{half}{AXES[component]}{AXES[axis]}"]
        k, b, c = (cells[f"{name}{AXES[axis]}"] for name in "kbc")
        moved = b[0, 0, 0] * psi[0, 0, 0] + c[0, 0, 0] * found
        psi.next[0, 0, 0] = moved
        return k[0, 0, 0] * found + moved

    def update(**cells: Any) -> None:
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            curl = difference(cells, a, c, b) - difference(cells, a, b, c)
            u = cells[f"{half}{AXES[a]}"]
            if half == "h":
                u.next[0, 0, 0] = u[0, 0, 0] - 0.3 * curl
            else:
                u.next[0, 0, 0] = cells["ca"][0, 0, 0] * u[0, 0, 0] + cells["cb"][0, 0, 0] * curl

    kind = inspect.Parameter.KEYWORD_ONLY
    update.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    return stencil(update)


# -- waves of 8th order in space, and the box of 27 points ---------------------------------------------------------
# The language keeps a former value by copying it (`u.prev` is a state field of its own, written every step: 20 bytes a
# cell for the acoustic wave). Two stages whose fields change places do without the copy, at 16 bytes a cell and time
# step: each writes the newest value over the oldest, which it reads at its own cell alone. One step of such a problem
# is `TIME_STEPS` time steps.

SECOND = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)
FIRST = (4 / 5, -1 / 5, 4 / 105, -1 / 280)
TIME_STEPS = {"acoustic": 2, "acoustic_prev": 1, "tti": 2, "tti_one_stage": 2, "box27": 1}
"""How many time steps one step of a problem makes, where this is said."""


def moved(at: Index, axis: int, by: int) -> Index:
    return tuple(o + by * (k == axis) for k, o in enumerate(at))


def first(f: Any, axis: int, at: Index = (0, 0, 0)) -> Any:
    """The first derivative along an axis, 8th order."""
    return sum(c * (f[moved(at, axis, k)] - f[moved(at, axis, -k)]) for k, c in enumerate(FIRST, 1))


def second(f: Any, axis: int) -> Any:
    """The second derivative along an axis, 8th order."""
    around = (c * (f[moved((0, 0, 0), axis, k)] + f[moved((0, 0, 0), axis, -k)]) for k, c in enumerate(SECOND[1:], 1))
    return sum(around, SECOND[0] * f[0, 0, 0])


def mixed(f: Any, one: int, two: int) -> Any:
    """The first derivative along axis `one` of the first derivative along axis `two`."""
    parts = (
        c * (first(f, two, moved((0, 0, 0), one, k)) - first(f, two, moved((0, 0, 0), one, -k)))
        for k, c in enumerate(FIRST, 1)
    )
    return sum(parts)


def laplacian(f: Any) -> Any:
    return second(f, 0) + second(f, 1) + second(f, 2)


@stencil
def acoustic(u: Any, former: Any, v2: Any) -> None:
    former.next[0, 0, 0] = 2 * u[0, 0, 0] - former[0, 0, 0] + v2[0, 0, 0] * laplacian(u)


@stencil
def acoustic_prev(u: Any, v2: Any) -> None:
    u.next[0, 0, 0] = 2 * u[0, 0, 0] - u.prev[0, 0, 0] + v2[0, 0, 0] * laplacian(u)


@stencil
def along_axis(p: Any, q: Any, gp: Any, gq: Any, n: Any) -> None:
    """The derivatives of p and q along the tilted axis `n`."""
    for f, g in ((p, gp), (q, gq)):
        g.next[0, 0, 0] = sum(n[axis][0, 0, 0] * first(f, axis) for axis in range(3))


@stencil
def tti_from_stored(p: Any, q: Any, p0: Any, q0: Any, gp: Any, gq: Any, n: Any, m: Any, a: Any, b: Any) -> None:
    """The second stage of TTI: derivatives of the stored derivatives; the newest values replace the oldest."""
    hp, hq = (sum(n[axis][0, 0, 0] * first(g, axis) for axis in range(3)) for g in (gp, gq))
    _tti(p, q, p0, q0, laplacian(p) - hp, hq, m, a, b)


@stencil
def tti_at_once(p: Any, q: Any, p0: Any, q0: Any, n: Any, m: Any, a: Any, b: Any) -> None:
    """TTI whose second derivatives along the tilted axis are products of first ones, written out in place."""
    _tti(p, q, p0, q0, laplacian(p) - _tilted(p, n), _tilted(q, n), m, a, b)


def _tti(p: Any, q: Any, p0: Any, q0: Any, hp: Any, hq: Any, m: Any, a: Any, b: Any) -> None:
    c = (0, 0, 0)
    p0.next[c] = 2 * p[c] - p0[c] + m[c] * (a[c] * hp + b[c] * hq)
    q0.next[c] = 2 * q[c] - q0[c] + m[c] * (b[c] * hp + hq)


def _tilted(f: Any, n: Any) -> Any:
    """The second derivative along the axis `n`, where this changes slowly."""
    n0, n1, n2 = (one[0, 0, 0] for one in n)
    straight = n0 * n0 * second(f, 0) + n1 * n1 * second(f, 1) + n2 * n2 * second(f, 2)
    return straight + 2 * (n0 * n1 * mixed(f, 0, 1) + n0 * n2 * mixed(f, 0, 2) + n1 * n2 * mixed(f, 1, 2))


@stencil
def box27(u: Any) -> None:
    """The mean of 27 cells, weighted by how many axes lead to each."""
    rings: list[Any] = [0, 0, 0, 0]
    for at in product((-1, 0, 1), repeat=3):
        rings[sum(map(abs, at))] += u[at]
    u.next[0, 0, 0] = 0.4 * rings[0] + 0.05 * rings[1] + 0.02 * rings[2] + 0.0075 * rings[3]


def acoustic_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """Two time steps of the acoustic wave, variable velocity: 16 bytes a cell and time step in float32."""
    grid = Grid((n, n, n), "fixed", dtype)
    u, former, v2 = grid.field("u"), grid.field("former"), grid.field("v2", init=0.1)
    return Problem.of([acoustic(u, former, v2), acoustic(former, u, v2)])


def acoustic_prev_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """One time step of the acoustic wave with `u.prev`, which is copied: 20 bytes a cell in float32."""
    grid = Grid((n, n, n), "fixed", dtype)
    return Problem.of(acoustic_prev(grid.field("u"), grid.field("v2", init=0.1)))


def tti_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """Two time steps of TTI, first derivatives stored: two stages a time step, 28 + 56 bytes a cell in float32."""
    new, old, stored, given = _tti_fields(Grid((n, n, n), "fixed", dtype))
    axis, rest = given[:3], given[3:]
    return Problem.of(
        [
            along_axis(*new, *stored, axis),
            tti_from_stored(*new, *old, *stored, axis, *rest),
            along_axis(*old, *stored, axis),
            tti_from_stored(*old, *new, *stored, axis, *rest),
        ]
    )


def tti_one_stage_problem(n: int, dtype: Dtype = "float32") -> Problem:
    """Two time steps of TTI as products of derivatives: one stage a time step, 48 bytes a cell in float32."""
    new, old, _, given = _tti_fields(Grid((n, n, n), "fixed", dtype))
    axis, rest = given[:3], given[3:]
    return Problem.of([tti_at_once(*new, *old, axis, *rest), tti_at_once(*old, *new, axis, *rest)])


def box27_problem(n: int, dtype: Dtype = "float32") -> Problem:
    return Problem.of(box27(Grid((n, n, n), "fixed", dtype).field("u")))


def _tti_fields(grid: Grid) -> tuple[list[Field], list[Field], list[Field], list[Field]]:
    """The newest and the former values, the stored derivatives, the coefficients."""
    new, old, stored = ([grid.field(name) for name in names] for names in (("p", "q"), ("p0", "q0"), ("gp", "gq")))
    values = {"n0": 0.6, "n1": 0.48, "n2": 0.64, "m": 0.05, "a": 1.2, "b": 1.05}
    return new, old, stored, [grid.field(name, init=value) for name, value in values.items()]


CASES: dict[str, tuple[Callable[[int, Dtype], Problem], Dtype]] = {
    "heat": (heat_problem, "float32"),
    "heat64": (heat_problem, "float64"),
    "yee": (yee_problem, "float32"),
    "yee_periodic": (yee_periodic_problem, "float32"),
    "yee_uniform": (yee_uniform_problem, "float32"),
    "layers": (layers_problem, "float32"),
    "maxwell": (maxwell_problem, "float32"),
    "maxwell_open": (maxwell_open_problem, "float32"),
    "acoustic": (acoustic_problem, "float32"),
    "acoustic_prev": (acoustic_prev_problem, "float32"),
    "tti": (tti_problem, "float32"),
    "tti_one_stage": (tti_one_stage_problem, "float32"),
    "box27": (box27_problem, "float32"),
}
