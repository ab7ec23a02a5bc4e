"""Boxes as the type `Bounds` of the templates, and how far beyond the box of a pass fields are stored."""

from __future__ import annotations

from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.onestep.groups import SOURCE
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.regions import FAR
from peergrid.grid import Box
from peergrid.stencil import Growth, footprint


def bounds(box: Box) -> str:
    """A box as a type."""
    ends = (end for pair in zip(box.lo, box.hi, strict=True) for end in pair)
    return f"Bounds<{listed(max(-FAR, min(FAR, end)) for end in ends)}>"


def around(growth: Growth) -> Box:
    """Growth as the bounds of a box of no cells that grew."""
    return Box(tuple(-n for n in growth.below), growth.above)


def known(rings: Rings, name: str, block: int) -> Box:
    """The distance beyond the box of a pass up to which there are values that a launch loads: those it began with, or
    what an earlier launch left.
    """
    if block == SOURCE:
        return around(footprint(rings.whole, rings.steps).inputs[name])
    earlier = (stage for stage in range(rings.stages[0]) if name in rings.whole.stages[stage].targets)
    return _stored(rings, name, max(earlier))


def reach(rings: Rings, name: str) -> Box:
    """The distance beyond the box of a pass up to which a field is stored: for later launches."""
    if len(rings.stages) == len(rings.whole.stages):
        return Box((0, 0, 0), (0, 0, 0))
    stages = (stage for stage in rings.stages if name in rings.whole.stages[stage].targets)
    return _stored(rings, name, max(stages))


def _stored(rings: Rings, name: str, stage: int) -> Box:
    return around(footprint(rings.whole, 1).targets[0][stage][name])
