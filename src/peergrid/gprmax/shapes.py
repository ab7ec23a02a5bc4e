"""Objects as cells and edges of a grid: points go to the nearest node, halves down, radii stay as they are.

A cell belongs to a body if its centre is inside or on the surface; to a triangle if it is strictly inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, floor, isinf, pi

import numpy as np
from numpy.typing import NDArray

from peergrid.gprmax.objects import (
    Box,
    Cone,
    Cylinder,
    Edge,
    Ellipsoid,
    Plate,
    Sector,
    Shape,
    Sphere,
    Triangle,
    Vector,
)
from peergrid.gprmax.raster import Mask, Place
from peergrid.gprmax.text import Command
from peergrid.grid import Index

FARTHEST = 1 << 30
Doubles = NDArray[np.float64]


def nearest(value: float) -> int:
    """The nearest whole number, halves towards zero."""
    bounded = max(-FARTHEST, min(FARTHEST, value))
    return ceil(bounded - 0.5) if bounded >= 0 else floor(bounded + 0.5)


@dataclass(frozen=True)
class Frame:
    """The grid for objects; flat: the axis along which nothing varies, or None. Along it TM has one cell, TE two."""

    cells: Index
    spacing: Vector
    flat: int | None = None

    @property
    def grid(self) -> Index:
        """The cells of the domain, one along the flat axis."""
        return tuple(1 if axis == self.flat else n for axis, n in enumerate(self.cells))

    @property
    def nodes(self) -> Index:
        """The nodes of the domain, one along the flat axis."""
        return tuple(n + (axis != self.flat) for axis, n in enumerate(self.grid))

    @property
    def live(self) -> int:
        """The node along the flat axis whose components are the domain's: of two cells, the one between them."""
        return 0 if self.flat is None else self.cells[self.flat] - 1

    def node(self, point: Vector, upper: bool | None = False) -> Index:
        """The nearest node; on the flat axis the grid's end for all beyond it and for inf, or for inf the live node."""
        found = []
        for axis, value in enumerate(point):
            if axis == self.flat:
                end = self.live if upper is None else self.cells[axis] * upper
                index = end if isinf(value) else nearest(value / self.spacing[axis])
                found.append(min(max(index, 0), self.cells[axis]))
            else:
                found.append(nearest(value / self.spacing[axis]))
        return tuple(found)

    def inside(self, command: Command, node: Index) -> Index:
        """The node. Raises UsageError outside the grid."""
        if any(not 0 <= i <= n for i, n in zip(node, self.cells, strict=True)):
            raise command.fault(
                f"to lie within the domain, nodes 0 to {self.cells}", f"node {node}", "move it or enlarge the domain"
            )
        return node

    def source(self, command: Command, point: Vector) -> Index:
        """The node of a source or receiver; index 0 on the flat axis."""
        node = self.inside(command, self.node(point))
        return tuple(0 if axis == self.flat else i for axis, i in enumerate(node))

    def stride(self, command: Command, step: Vector) -> Index:
        """The cells from sample to sample; 1 for a step of 0 and on the flat axis. Raises UsageError for no cell."""
        given = enumerate(zip(step, self.spacing, strict=True))
        found = tuple(1 if axis == self.flat or not s else nearest(s / d) for axis, (s, d) in given)
        if any(not 1 <= s <= n for s, n in zip(found, self.cells, strict=True)):
            raise command.fault(f"to have samples 1 to {self.cells} cells apart", f"{found}", "correct their spacing")
        return found

    def centres(self, axis: int, lo: int, hi: int) -> Doubles:
        """Centres of cells along an axis (m), shaped to broadcast with those of the other axes."""
        values: Doubles = (np.arange(lo, hi, dtype=np.float64) + 0.5) * self.spacing[axis]
        return values.reshape([-1 if k == axis else 1 for k in range(3)])

    def around(self, lo: Doubles, hi: Doubles) -> tuple[Index, Index]:
        """The cells of the grid that a box in metres overlaps."""
        first = tuple(max(0, nearest(a / d) - 1) for a, d in zip(lo, self.spacing, strict=True))
        last = tuple(min(n, nearest(b / d) + 1) for b, d, n in zip(hi, self.spacing, self.cells, strict=True))
        return first, tuple(max(a, b) for a, b in zip(first, last, strict=True))


def cells(frame: Frame, shape: Shape) -> Place | None:
    """The cells of a body; None for an object without thickness."""
    if isinstance(shape, Box):
        lo, hi = (frame.inside(shape.command, frame.node(p, u)) for p, u in ((shape.lo, False), (shape.hi, True)))
        return _filled(shape, Place(lo, hi))
    if isinstance(shape, Cylinder | Cone):
        return _filled(shape, _cone(frame, shape))
    if isinstance(shape, Sphere | Ellipsoid):
        return _filled(shape, _ellipsoid(frame, shape))
    if isinstance(shape, Triangle | Sector):
        axis, level, thickness, mask, first = _flat(frame, shape)
        if thickness == 0:
            return None
        place = _extruded(axis, level, min(level + thickness, frame.cells[axis]), mask, first)
        return _filled(shape, place)
    return None


def edges(frame: Frame, shape: Shape) -> Iterator[tuple[int, Place]]:
    """The axes and nodes of the edges of an object without thickness."""
    if isinstance(shape, Triangle | Sector):
        axis, level, _, mask, first = _flat(frame, shape)
        yield from _face_edges(frame, axis, _extruded(axis, level, level + 1, mask, first))
        return
    assert isinstance(shape, Plate | Edge)
    if isinstance(shape, Edge) and shape.magnetic and frame.flat is not None:
        raise shape.command.fault("to be in three dimensions", "two", "give the cells a material with magnetic loss")
    ends = (None, None) if isinstance(shape, Edge) and frame.live else (False, True)
    corners = zip((shape.lo, shape.hi), ends, strict=True)
    lo, hi = (frame.inside(shape.command, frame.node(corner, upper)) for corner, upper in corners)
    extended = [axis for axis in range(3) if hi[axis] > lo[axis]]
    wanted = 2 if isinstance(shape, Plate) else 1
    if len(extended) != wanted or any(b < a for a, b in zip(lo, hi, strict=True)):
        raise shape.command.fault(
            f"to reach from lower to higher nodes along {'two axes' if wanted == 2 else 'one axis'}",
            f"nodes {lo} to {hi}", "correct its corners",
        )  # fmt: skip
    if wanted == 1:
        (axis,) = extended
        yield axis, Place(lo, tuple(b if k == axis else b + 1 for k, b in enumerate(hi)))
        return
    for axis in extended:
        yield axis, Place(lo, tuple(b if k == axis else b + 1 for k, b in enumerate(hi)))


def _filled(shape: Shape, place: Place) -> Place:
    if place.empty:
        raise shape.command.fault("to have at least one cell of the grid in it", "none", "enlarge or move it")
    return place


def _cone(frame: Frame, shape: Cylinder | Cone) -> Place:
    spacing = np.array(frame.spacing)
    ends = [frame.node(shape.first), frame.node(shape.second, upper=True)]
    first, second = (np.array(end) * spacing for end in ends)
    along = [axis for axis in range(3) if ends[0][axis] != ends[1][axis]]
    if not along:
        raise shape.command.fault("to have faces at different nodes", f"both at {ends[0]}", "make it longer")
    most = max(shape.radii)
    lo, hi = frame.around(np.minimum(first, second) - most, np.maximum(first, second) + most)
    if len(along) == 1:
        (axis,) = along
        level = sorted(end[axis] for end in ends)
        lo = tuple(max(0, level[0]) if k == axis else i for k, i in enumerate(lo))
        hi = tuple(min(frame.cells[axis], level[1]) if k == axis else i for k, i in enumerate(hi))
        hi = tuple(max(a, b) for a, b in zip(lo, hi, strict=True))
        x, y = (frame.centres(k, lo[k], hi[k]) - first[k] for k in range(3) if k != axis)
        depth = np.arange(lo[axis], hi[axis]).reshape([-1 if k == axis else 1 for k in range(3)]) + 0.5 - level[0]
        low, high = shape.radii if ends[0][axis] < ends[1][axis] else shape.radii[::-1]
        radius = depth / (level[1] - level[0]) * (high - low) + low
        return Place(lo, hi, np.asarray(np.sqrt(x**2 + y**2) <= radius))
    centres = [frame.centres(k, lo[k], hi[k]) for k in range(3)]
    way = second - first
    length = float(np.sqrt((way**2).sum()))
    offset = [c - f for c, f in zip(centres, first, strict=True)]
    depth = sum(o * w for o, w in zip(offset, way / length, strict=True))
    square = sum(o**2 for o in offset)
    distance = np.sqrt(np.maximum(square - depth**2, 0.0))
    radius = depth / length * (shape.radii[1] - shape.radii[0]) + shape.radii[0]
    return Place(lo, hi, (distance <= radius) & (depth >= 0) & (depth <= length))


def _ellipsoid(frame: Frame, shape: Sphere | Ellipsoid) -> Place:
    spacing = np.array(frame.spacing)
    radii = np.array(shape.radii if isinstance(shape, Ellipsoid) else (shape.radius,) * 3)
    node = frame.node(shape.centre)
    centre = np.array(node) * spacing
    lo, hi = frame.around(centre - radii, centre + radii)
    x, y, z = (
        ((np.arange(lo[k], hi[k]) + 0.5 - node[k]) ** 2 * spacing[k] ** 2).reshape(
            [-1 if a == k else 1 for a in range(3)]
        )
        for k in range(3)
    )
    if isinstance(shape, Sphere):
        return Place(lo, hi, np.asarray(np.sqrt(x + y + z) <= radii[0]))
    return Place(lo, hi, np.asarray(x / radii[0] ** 2 + y / radii[1] ** 2 + z / radii[2] ** 2 <= 1))


def _flat(frame: Frame, shape: Triangle | Sector) -> tuple[int, int, int, Mask, tuple[int, int]]:
    """The axis normal to a prism, its first cell and thickness along it, its section and the first cell of that."""
    if isinstance(shape, Sector):
        axis = "xyz".index(shape.axis)
        low, thickness = nearest(shape.extent[0] / frame.spacing[axis]), shape.extent[1] - shape.extent[0]
        others = [k for k in range(3) if k != axis]
        mask, first = _sector(frame, shape, others)
    else:
        corners = [frame.inside(shape.command, frame.node(corner)) for corner in shape.corners]
        same = [k for k in range(3) if len({corner[k] for corner in corners}) == 1]
        if len(same) != 1:
            raise shape.command.fault(
                "to have corners that span a plane normal to an axis", f"nodes {corners}", "correct its corners"
            )
        axis = same[0]
        others = [k for k in range(3) if k != axis]
        low = corners[0][axis]
        thickness = shape.thickness
        mask, first = _triangle(shape, [(c[others[0]], c[others[1]]) for c in corners])
    high = low + nearest(thickness / frame.spacing[axis])
    if axis == frame.flat and isinf(thickness):
        low, high = 0, frame.cells[axis]
    if not 0 <= low <= high <= frame.cells[axis]:
        raise shape.command.fault(
            f"to lie within the domain, nodes 0 to {frame.cells[axis]} along {'xyz'[axis]}", f"{low} to {high}",
            "correct its extent",
        )  # fmt: skip
    return axis, low, high - low, mask, first


def _triangle(shape: Triangle, corners: list[tuple[int, int]]) -> tuple[Mask, tuple[int, int]]:
    """Computed in whole numbers of half nodes, so that centres of cells are whole numbers too."""
    (ax, ay), (bx, by), (cx, cy) = ((2 * a, 2 * b) for a, b in corners)
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    if area == 0:
        raise shape.command.fault("to have corners that are not in a line", f"nodes {corners}", "correct its corners")
    lows = [min(c[k] for c in corners) for k in range(2)]
    highs = [max(c[k] for c in corners) for k in range(2)]
    x = (2 * np.arange(lows[0], highs[0], dtype=np.int64) + 1)[:, None]
    y = (2 * np.arange(lows[1], highs[1], dtype=np.int64) + 1)[None, :]
    sign = 1 if area > 0 else -1
    inside = np.ones((x.shape[0], y.shape[1]), np.bool_)
    for px, py, qx, qy in ((ax, ay, bx, by), (bx, by, cx, cy), (cx, cy, ax, ay)):
        inside &= sign * ((qx - px) * (y - py) - (qy - py) * (x - px)) > 0
    return inside, (lows[0], lows[1])


def _sector(frame: Frame, shape: Sector, others: list[int]) -> tuple[Mask, tuple[int, int]]:
    bounds, offsets = [], []
    for given, axis in zip(shape.centre, others, strict=True):
        spacing = frame.spacing[axis]
        centre = nearest(given / spacing) * spacing
        lo, hi = (nearest((centre + s * shape.radius) / spacing) + s for s in (-1, 1))
        bounds.append((max(0, lo), max(0, lo, min(hi, frame.cells[axis]))))
        offsets.append((np.arange(*bounds[-1]) + 0.5) * spacing - centre)
    x, y = offsets
    x, y = x[:, None], y[None, :]
    start, angle = shape.start * pi / 180, shape.angle * pi / 180
    after = np.cos(start) * y - np.sin(start) * x >= 0
    before = np.cos(start + angle) * y - np.sin(start + angle) * x < 0
    turned = after & before if angle <= pi else after | before
    mask = (turned if shape.angle < 360 else np.True_) & (x**2 + y**2 <= shape.radius**2)
    return np.asarray(mask), (bounds[0][0], bounds[1][0])


def _extruded(axis: int, lo: int, hi: int, mask: Mask, first: tuple[int, int]) -> Place:
    inner = iter(zip(first, mask.shape, strict=True))
    bounds = [(lo, hi) if k == axis else (lambda f: (f[0], f[0] + f[1]))(next(inner)) for k in range(3)]
    shape = tuple(b - a for a, b in bounds)
    return Place(
        tuple(a for a, _ in bounds),
        tuple(b for _, b in bounds),
        np.broadcast_to(np.expand_dims(mask, axis), shape),
    )


def _face_edges(frame: Frame, normal: int, place: Place) -> Iterator[tuple[int, Place]]:
    """The edges of faces normal to an axis: each face has two along each of the other axes."""
    for axis in range(3):
        if axis == normal:
            continue
        (other,) = (k for k in range(3) if k not in (normal, axis))
        for shift in (0, 1):
            lo, hi = (tuple(i + shift * (k == other) for k, i in enumerate(end)) for end in (place.lo, place.hi))
            yield axis, Place(lo, hi, place.mask)
