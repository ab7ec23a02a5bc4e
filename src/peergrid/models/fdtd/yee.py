"""Yee's scheme for 2D TMz fields as stencils: plain, and with an absorber normal to x, to y, or both.

Ez lies on nodes (i, j), Hx half a cell further along y, Hy half a cell further along x. H is kept scaled, so that one
factor serves the whole curl and a grid without losses reads a single coefficient field:

    Hy' = η₀ Hy,  Hx' = η₀ Hx dx/dy,  Ez ← ca Ez + cb (∂x Hy' - ∂y Hx'),  cb = c dt / (dx ε_r (1 + σ dt / 2ε))

Method: Yee, IEEE Trans. Antennas Propag. 14 (1966) 302; for the absorber see `cpml`.
"""

from __future__ import annotations

from typing import Any

from peergrid.stencil import stencil
from peergrid.stencil.expr import Expr

# Inside a stencil its arguments are stand-ins of fields and numbers; `Any` names them.


def _at_cell(coefficient: Any) -> Any:
    """A coefficient at this cell, from a field or a number."""
    return coefficient if isinstance(coefficient, Expr) else coefficient[0, 0]


def _ahead_x(u: Any) -> Any:
    return u[1, 0] - u[0, 0]


def _ahead_y(u: Any) -> Any:
    return u[0, 1] - u[0, 0]


def _behind_x(u: Any) -> Any:
    return u[0, 0] - u[-1, 0]


def _behind_y(u: Any) -> Any:
    return u[0, 0] - u[0, -1]


def _stretched(difference: Any, psi: Any, inverse_kappa: Any, b: Any, c: Any) -> Any:
    """The derivative inside the absorber; also advances the absorber's memory."""
    memory = b[0, 0] * psi[0, 0] + c[0, 0] * difference
    psi.next[0, 0] = memory
    return inverse_kappa[0, 0] * difference + memory


@stencil
def magnetic(ez: Any, hx: Any, hy: Any, ch_x: Any, ch_y: Any) -> None:
    hx.next[0, 0] = hx[0, 0] - _at_cell(ch_x) * _ahead_y(ez)
    hy.next[0, 0] = hy[0, 0] + _at_cell(ch_y) * _ahead_x(ez)


@stencil
def magnetic_x(ez: Any, hx: Any, hy: Any, ch_x: Any, ch_y: Any, psi_x: Any, kx: Any, bx: Any, cx: Any) -> None:
    hx.next[0, 0] = hx[0, 0] - _at_cell(ch_x) * _ahead_y(ez)
    hy.next[0, 0] = hy[0, 0] + _at_cell(ch_y) * _stretched(_ahead_x(ez), psi_x, kx, bx, cx)


@stencil
def magnetic_y(ez: Any, hx: Any, hy: Any, ch_x: Any, ch_y: Any, psi_y: Any, ky: Any, by: Any, cy: Any) -> None:
    hx.next[0, 0] = hx[0, 0] - _at_cell(ch_x) * _stretched(_ahead_y(ez), psi_y, ky, by, cy)
    hy.next[0, 0] = hy[0, 0] + _at_cell(ch_y) * _ahead_x(ez)


@stencil
def magnetic_xy(
    ez: Any, hx: Any, hy: Any, ch_x: Any, ch_y: Any,
    psi_x: Any, kx: Any, bx: Any, cx: Any, psi_y: Any, ky: Any, by: Any, cy: Any,
) -> None:  # fmt: skip
    hx.next[0, 0] = hx[0, 0] - _at_cell(ch_x) * _stretched(_ahead_y(ez), psi_y, ky, by, cy)
    hy.next[0, 0] = hy[0, 0] + _at_cell(ch_y) * _stretched(_ahead_x(ez), psi_x, kx, bx, cx)


@stencil
def electric_lossless(ez: Any, hx: Any, hy: Any, cb: Any) -> None:
    ez.next[0, 0] = ez[0, 0] + _at_cell(cb) * (_behind_x(hy) - _behind_y(hx))


@stencil
def electric(ez: Any, hx: Any, hy: Any, ca: Any, cb: Any) -> None:
    ez.next[0, 0] = _at_cell(ca) * ez[0, 0] + _at_cell(cb) * (_behind_x(hy) - _behind_y(hx))


@stencil
def electric_x(ez: Any, hx: Any, hy: Any, ca: Any, cb: Any, psi_x: Any, kx: Any, bx: Any, cx: Any) -> None:
    curl = _stretched(_behind_x(hy), psi_x, kx, bx, cx) - _behind_y(hx)
    ez.next[0, 0] = _at_cell(ca) * ez[0, 0] + _at_cell(cb) * curl


@stencil
def electric_y(ez: Any, hx: Any, hy: Any, ca: Any, cb: Any, psi_y: Any, ky: Any, by: Any, cy: Any) -> None:
    curl = _behind_x(hy) - _stretched(_behind_y(hx), psi_y, ky, by, cy)
    ez.next[0, 0] = _at_cell(ca) * ez[0, 0] + _at_cell(cb) * curl


@stencil
def electric_xy(
    ez: Any, hx: Any, hy: Any, ca: Any, cb: Any,
    psi_x: Any, kx: Any, bx: Any, cx: Any, psi_y: Any, ky: Any, by: Any, cy: Any,
) -> None:  # fmt: skip
    curl = _stretched(_behind_x(hy), psi_x, kx, bx, cx) - _stretched(_behind_y(hx), psi_y, ky, by, cy)
    ez.next[0, 0] = _at_cell(ca) * ez[0, 0] + _at_cell(cb) * curl
