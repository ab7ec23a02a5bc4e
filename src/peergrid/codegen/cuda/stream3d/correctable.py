"""A check of a pipeline's rings: threads can make the corrections of its nodes, or they cannot."""

from __future__ import annotations

from peergrid.codegen.cuda.blocked.levels import Node, Write
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.pipeline import Value


def correctable(rings: Rings) -> bool:
    """True if threads find what corrections read in shared memory, and may write there what these make."""
    checks = (_found, _behind_barriers, _placed)
    return not rings.shape.own and all(check(rings, node) for check in checks for node in rings.levels.nodes)


def corrected(rings: Rings, node: Node) -> list[Write]:
    """The writes of a node that corrections change."""
    targets = {target for update in rings.reads.corrections(node) for target in update.targets}
    return [write for write in node.writes if write.new.field in targets]


def _found(rings: Rings, node: Node) -> bool:
    """True if the planes that corrections read, but do not change, are in rings."""
    written = {write.new.field for write in node.writes}
    for read in {read for update in rings.reads.corrections(node) for read in update.reads}:
        if rings.problem.fields[read.field].full and read.field in node.before and read.field not in written:
            ring = rings.rings[node.before[read.field]]
            if not ring.planes or not ring.oldest <= rings.reads.lead(node) + read.offset[0] <= ring.newest:
                return False
    return True


def _behind_barriers(rings: Rings, node: Node) -> bool:
    """True if what is corrected is read behind a barrier, own cells too: another thread may have corrected them."""
    changed = {write.new for write in corrected(rings, node)}
    readers = (one for one in rings.levels.nodes if any(use.value in changed for use in rings.reads.uses(one)))
    return all(map(rings.waits, readers))


def _placed(rings: Rings, node: Node) -> bool:
    """True if what is corrected has a place in a ring: its own, or that of the value before."""
    return all(write.new in rings.rings or _free(rings, node, write.old) for write in corrected(rings, node))


def _free(rings: Rings, node: Node, value: Value) -> bool:
    """True if the ring of a value has its plane when a node makes the next value of that plane, and nobody reads the
    plane any more, but the node at the cell itself.
    """
    lead, ring = rings.reads.lead(node), rings.rings.get(value)
    if ring is None or not ring.oldest <= lead <= ring.newest:
        return False
    for other in rings.levels.nodes:
        for use in rings.reads.uses(other):
            late = use.plane < lead or (use.plane == lead and use.beside and other is node)
            if use.value is value and late:
                return False
    return rings.waits(node)
