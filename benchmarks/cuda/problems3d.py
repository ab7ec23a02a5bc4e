"""The 3D problems that are measured."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from peergrid.grid import Box, Dtype, Field, Grid
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
    receivers = [Receiver(f"r{k}", "ez", (n // 3, n // 3, n // 4 + n // 20 * k)) for k in range(8)]
    return Problem.of(stages, receivers)


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


CASES: dict[str, tuple[Callable[[int, Dtype], Problem], Dtype]] = {
    "heat": (heat_problem, "float32"),
    "heat64": (heat_problem, "float64"),
    "yee": (yee_problem, "float32"),
    "layers": (layers_problem, "float32"),
    "maxwell": (maxwell_problem, "float32"),
}
