"""Boxes of soil as cells: random media, rough faces, water on them, grass with its roots.

Layers are added to a box in the order of the file, each over the earlier ones. Blades and roots stand at random places
and drift along the diagonal of their face, as gprMax's do for the same seed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from peergrid.gprmax.fractal import bins, chances, heights
from peergrid.gprmax.media import Media
from peergrid.gprmax.objects import Flood, FractalBox, Lawn, Layer, Roughness
from peergrid.gprmax.raster import NOTHING, Ids
from peergrid.gprmax.shapes import Frame, nearest
from peergrid.gprmax.soils import GRASS, WATER
from peergrid.grid import Dtype, Index
from peergrid.models.waveforms import Doubles

LARGEST = 1 << 28
"""Cells of a box that takes a model of mixing: they are transformed at once, 48 bytes each."""
EMPTY, GROUND, WET, GREEN = range(4)
Kinds = NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class Face:
    """A part of a face of a box: the axis along its normal, nodes in the face's plane, and limits along the normal.

    lower: it looks to lower nodes. tops: the ends of the ground, or of each blade of grass. water: its level; 0: none.
    """

    axis: int
    lower: bool
    lo: tuple[int, int]
    hi: tuple[int, int]
    levels: tuple[int, int]
    tops: Doubles = field(default_factory=lambda: np.zeros((0, 0)))
    water: int = 0
    grass: int | None = None
    """The seed of its grass."""

    @property
    def shape(self) -> tuple[int, int]:
        """Its cells in the plane."""
        return (self.hi[0] - self.lo[0], self.hi[1] - self.lo[1])


def cells(
    frame: Frame, box: FractalBox, layers: Iterable[Layer], media: Media, dtype: Dtype
) -> tuple[Index, Ids, tuple[int, ...]]:
    """The first cell of a box with its layers, the numbers of its cells' media, and these media.

    Raises UsageError, one sentence with the line.
    """
    start, stop = (frame.inside(box.command, frame.node(p, u)) for p, u in ((box.lo, False), (box.hi, True)))
    if any(b <= a for a, b in zip(start, stop, strict=True)):
        raise box.command.fault("to go from lower to higher nodes", f"{start} to {stop}", "correct its corners")
    faces = _faces(frame, box, start, stop, layers, dtype)
    lo, hi = list(start), list(stop)
    for face in faces:
        if face.lower:
            lo[face.axis] = min(lo[face.axis], face.levels[0])
        else:
            hi[face.axis] = max(hi[face.axis], face.levels[1])
    shape = (hi[0] - lo[0], hi[1] - lo[1], hi[2] - lo[2])
    kinds: Kinds = np.full(shape, EMPTY, np.int8)
    kinds[tuple(slice(a - b, c - b) for a, b, c in zip(start, lo, stop, strict=True))] = GROUND
    for face in faces:
        _set_kinds(kinds, tuple(lo), face, stop[face.axis], dtype)
    numbers = np.array(media.mixed(box.command, box.material, box.bins), np.uint16)
    known = [*numbers.tolist()]
    found = np.full(shape, numbers[0]) if box.bins == 1 else numbers[_bins(box, shape, dtype)]
    for kind, medium in ((WET, WATER), (GREEN, GRASS)):
        if (kinds == kind).any():
            known.append(media.known(medium))
            found[kinds == kind] = known[-1]
    found[kinds == EMPTY] = NOTHING
    return tuple(lo), found, tuple(dict.fromkeys(known))


def _bins(box: FractalBox, shape: tuple[int, int, int], dtype: Dtype) -> NDArray[np.intp]:
    if np.prod(shape, dtype=float) > LARGEST:
        raise box.command.fault(f"to have at most {LARGEST:,} cells", f"{shape}", "make it smaller")
    assert box.seed is not None
    return bins(shape, box.dimension, np.array(box.weights), box.bins, box.seed, dtype)


def _faces(
    frame: Frame, box: FractalBox, start: Index, stop: Index, layers: Iterable[Layer], dtype: Dtype
) -> list[Face]:
    found: dict[tuple[bool, int, bool], Face] = {}
    for layer in layers:
        axis, lower, lo, hi = _side(frame, layer, start, stop)
        key = (isinstance(layer, Lawn), axis, lower)
        if isinstance(layer, Flood):
            level = nearest(layer.level / frame.spacing[axis])
            rough = found.get(key)
            if rough is None or not rough.levels[0] <= level <= rough.levels[1]:
                raise layer.command.fault(
                    "to stand on a rough face behind its roughness, between its limits",
                    f"level {level} on " + ("none" if rough is None else f"levels {rough.levels}"), "correct it",
                )  # fmt: skip
            found[key] = replace(rough, water=level)
            continue
        if key in found:
            raise layer.command.fault("once on a face", "it again", "leave one")
        bare = Face(axis, lower, lo, hi, _levels(frame, layer, axis, lower, start[axis], stop[axis]))
        found[key] = _lawn(layer, bare, dtype) if isinstance(layer, Lawn) else _rough(layer, bare, dtype)
    return list(found.values())


def _side(frame: Frame, layer: Layer, start: Index, stop: Index) -> tuple[int, bool, tuple[int, int], tuple[int, int]]:
    """The axis of a layer's normal, whether its face looks to lower nodes, and its corners in the plane."""
    ends = [(layer.lo, False), (layer.hi, True)]
    lo, hi = (frame.inside(layer.command, frame.node(point, upper)) for point, upper in ends)
    same = [k for k in range(3) if lo[k] == hi[k]]
    if len(same) != 1 or same[0] == frame.flat or lo[same[0]] not in (start[same[0]], stop[same[0]]):
        raise layer.command.fault(
            f"to lie on a face of its box, nodes {start} to {stop}", f"nodes {lo} to {hi}", "correct its corners"
        )
    (axis,) = same
    plane = [k for k in range(3) if k != axis]
    lower = lo[axis] == start[axis]
    if any(not start[k] <= lo[k] < hi[k] <= stop[k] for k in plane):
        raise layer.command.fault(f"to lie within its box, {start} to {stop}", f"nodes {lo} to {hi}", "correct it")
    if lower and isinstance(layer, Lawn):
        raise layer.command.fault("to lie on a face that looks to higher nodes", "another", "rotate the model")
    return axis, lower, (lo[plane[0]], lo[plane[1]]), (hi[plane[0]], hi[plane[1]])


def _levels(frame: Frame, layer: Roughness | Lawn, axis: int, lower: bool, start: int, stop: int) -> tuple[int, int]:
    low, high = (nearest(limit / frame.spacing[axis]) for limit in layer.limits)
    inner = high <= stop if lower else low >= start
    if not (0 <= low < high <= frame.cells[axis] and (inner or isinstance(layer, Lawn))):
        raise layer.command.fault(
            f"to have limits that rise, within the domain, the inner one in its box of nodes {start} to {stop}",
            f"{low} and {high}", "correct them",
        )  # fmt: skip
    return low, high


def _rough(layer: Roughness, face: Face, dtype: Dtype) -> Face:
    assert layer.seed is not None
    tops = heights(face.shape, layer.dimension, np.array(layer.weights), *face.levels, layer.seed, dtype)
    return replace(face, tops=tops)


def _lawn(layer: Lawn, face: Face, dtype: Dtype) -> Face:
    assert layer.seed is not None
    tops = np.zeros(face.shape)
    if layer.blades > tops.size:
        raise layer.command.fault(f"to have at most {tops.size} blades", str(layer.blades), "plant fewer")
    chance = np.random.RandomState(layer.seed)
    drawn = np.digitize(chance.random_sample(layer.blades), chances(face.shape, layer.dimension, layer.seed, dtype))
    for place in np.minimum(drawn, tops.size - 1):
        tops.reshape(-1)[place] = chance.randint(*face.levels)
    return replace(face, tops=tops, grass=layer.seed)


def _set_kinds(kinds: Kinds, first: Index, face: Face, end: int, dtype: Dtype) -> None:
    """Change the media of cells at a face; first: the box's first cell; end: that of its ground along the normal."""
    upright = np.moveaxis(kinds, face.axis, -1)
    corner = [i - first[k] for i, k in zip(face.lo, (k for k in range(3) if k != face.axis), strict=True)]
    if face.grass is not None:
        _grow(upright, (corner[0], corner[1]), first[face.axis], face, end, dtype)
        return
    low, high = face.levels
    there = upright[
        corner[0] : corner[0] + face.tops.shape[0],
        corner[1] : corner[1] + face.tops.shape[1],
        low - first[face.axis] : high - first[face.axis],
    ]
    level, tops, wet = np.arange(low, high), face.tops[:, :, None], face.water > 0
    if face.lower:
        there[...] = np.where(level > tops, GROUND, np.where(wet & (level > face.water), WET, EMPTY))
    else:
        there[...] = np.where(level < tops, GROUND, np.where(wet & (level < face.water), WET, EMPTY))


def _grow(upright: Kinds, corner: tuple[int, int], first: int, face: Face, end: int, dtype: Dtype) -> None:
    """Add blades from the ground up, then roots down, each until it leaves the box."""
    places = [(corner[0] + int(i), corner[1] + int(j), int(face.tops[i, j])) for i, j in np.argwhere(face.tops > 0)]
    bends, signs, chance = (np.random.default_rng(face.grass) for _ in range(3))
    for i, j, top in places:
        bend = np.dtype(dtype).type(10 + 20 * bends.random())
        sign = int(signs.choice([-1, 1]))
        levels = (level for level in range(top - first) if upright[i, j, level] != GROUND)
        _stalk(upright, i, j, levels, _blade(bend, sign))
    for i, j, top in places:
        deepest = max(1, end - (top - end) - first + 1)
        levels = (level for level in range(upright.shape[2] - 1, deepest - 1, -1) if upright[i, j, level] == GROUND)
        _stalk(upright, i, j, levels, _root(chance, dtype))


def _stalk(upright: Kinds, i: int, j: int, levels: Iterator[int], shifts: Iterator[int]) -> None:
    for level, shift in zip(levels, shifts, strict=False):
        if not (0 <= i + shift < upright.shape[0] and 0 <= j + shift < upright.shape[1]):
            return
        upright[i + shift, j + shift, level] = GREEN


def _blade(bend: np.floating, sign: int) -> Iterator[int]:
    height = 0
    while True:
        yield sign * nearest(float((height / bend) * (height / bend)))
        height += 1


def _root(chance: np.random.Generator, dtype: Dtype) -> Iterator[int]:
    shift = np.dtype(dtype).type(0)
    while True:
        shift += -1 + 2 * chance.random()
        yield round(float(shift))
