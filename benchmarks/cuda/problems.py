"""The problems that are measured, and plain sweeps of them by kernels written by hand: the bits to expect."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np
from gpu import Device, start

from peergrid.grid import Box, Grid
from peergrid.stencil import Problem, Receiver, Stage, stencil


@stencil
def relax(u: Any) -> None:
    u.next[0, 0] = 0.25 * ((u[0, -1] + u[0, 1]) + (u[-1, 0] + u[1, 0]))


@stencil
def h_step(ez: Any, hx: Any, hy: Any) -> None:
    hx.next[0, 0] = hx[0, 0] - 0.5 * (ez[0, 1] - ez[0, 0])
    hy.next[0, 0] = hy[0, 0] + 0.5 * (ez[1, 0] - ez[0, 0])


@stencil
def e_step(ez: Any, hx: Any, hy: Any, ca: Any, cb: Any) -> None:
    ez.next[0, 0] = ca[0, 0] * ez[0, 0] + cb[0, 0] * ((hy[0, 0] - hy[-1, 0]) - (hx[0, 0] - hx[0, -1]))


def jacobi_problem(shape: tuple[int, int]) -> Problem:
    return Problem.of(relax(Grid(shape).field("u")))


def yee_problem(shape: tuple[int, int]) -> Problem:
    grid = Grid(shape)
    ez, hx, hy, ca, cb = (grid.field(name) for name in ("Ez", "Hx", "Hy", "ca", "cb"))
    return Problem.of([h_step(ez, hx, hy), e_step(ez, hx, hy, ca, cb)])


def radar_problem(shape: tuple[int, int]) -> Problem:
    """Yee with coefficient fields, an absorber on all four sides, one source, receivers: as the radar models are."""
    from peergrid.models.fdtd import yee

    n, d = shape[0], 10
    grid = Grid((n, n))
    ez, hx, hy, ca, cb = (grid.field(name) for name in ("Ez", "Hx", "Hy", "ca", "cb"))
    spans = (("lo", 0, d), ("", d, n - d), ("hi", n - d, n))
    profiles = {
        (half, axis): tuple(
            grid.profile(f"{k}.{half}.{axis}", axis, np.full(n, v)) for k, v in (("k", 0.9), ("b", 0.5), ("c", -0.1))
        )
        for half in "HE"
        for axis in (0, 1)
    }
    memory = {
        (half, axis, end): (
            grid.field(f"psi.{half}.{axis}.{end}", within=grid.box.with_axis(axis, lo, hi)),
            *profiles[half, axis],
        )
        for half in "HE"
        for axis in (0, 1)
        for end, lo, hi in spans
        if end
    }

    def stage(half: str, plain: Any, along_x: Any, along_y: Any, both: Any, args: tuple[Any, ...]) -> Stage:
        updates = []
        for xe, xa, xb in spans:
            for ye, ya, yb in spans:
                mx, my = memory.get((half, 0, xe), ()), memory.get((half, 1, ye), ())
                made = both if mx and my else along_x if mx else along_y if my else plain
                updates.append(made(*args, *mx, *my).within(Box((xa, ya), (xb, yb))))
        return Stage(tuple(updates))

    h = stage("H", yee.magnetic, yee.magnetic_x, yee.magnetic_y, yee.magnetic_xy, (ez, hx, hy, 0.5, 0.5))
    e = stage("E", yee.electric, yee.electric_x, yee.electric_y, yee.electric_xy, (ez, hx, hy, ca, cb))
    pulse = _add(ez, grid.signal("pulse", np.sin(np.arange(4096) / 9))).within(Box.cell((n // 3, n // 2)))
    receivers = [Receiver(f"r{k}", "Ez", (n // 3, n // 4 + n // 20 * k)) for k in range(8)]
    return Problem.of([h, e, pulse], receivers)


@stencil
def _add(u: Any, s: Any) -> None:
    u.next[0, 0] = u[0, 0] + s.now


class Stored(Protocol):
    """Fields on a device, all of one pitch."""

    device: Device
    problem: Problem
    pitch: dict[str, int]
    bases: dict[str, tuple[int, ...]]


def sweep_jacobi(memory: Stored, one: dict[str, int], two: dict[str, int]) -> None:
    """One step from the fields at `one` to those at `two`."""
    rows, columns = memory.problem.grid.shape
    c = ctypes
    start(memory.device.helpers.function("jacobi"), (-(-columns // 64), -(-rows // 4)), (64, 4), 0, memory.device.main,
          c.c_void_p(one["u"]), c.c_void_p(two["u"]), c.c_int(rows), c.c_int(columns),
          c.c_longlong(memory.pitch["u"]))  # fmt: skip


def sweep_yee(memory: Stored, one: dict[str, int], two: dict[str, int]) -> None:
    """One step from the fields at `one` to those at `two`."""
    rows, columns = memory.problem.grid.shape
    c, p, device = ctypes, ctypes.c_void_p, memory.device
    size = (-(-columns // 64), -(-rows // 4))
    shape = (c.c_int(rows), c.c_int(columns), c.c_longlong(memory.pitch["Ez"]))
    start(device.helpers.function("magnetic"), size, (64, 4), 0, device.main, p(one["Ez"]), p(one["Hx"]),
          p(one["Hy"]), p(two["Hx"]), p(two["Hy"]), *shape)  # fmt: skip
    start(device.helpers.function("electric"), size, (64, 4), 0, device.main, p(one["Ez"]), p(two["Hx"]),
          p(two["Hy"]), p(memory.bases["ca"][0]), p(memory.bases["cb"][0]), p(two["Ez"]), *shape)  # fmt: skip
