"""Corrections as text: a struct for each, and what the plan and its nodes say of them (see `layer_cell.cuh`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from peergrid.codegen.cuda.blocked.levels import Node, Write
from peergrid.codegen.cuda.common.names import listed
from peergrid.codegen.cuda.stream3d.bounds import bounds
from peergrid.codegen.cuda.stream3d.correctable import corrected
from peergrid.codegen.cuda.stream3d.corrections import of_layer
from peergrid.codegen.cuda.stream3d.rings import Rings
from peergrid.codegen.cuda.stream3d.updates import UPDATE, Updates, read_name, ring_name
from peergrid.stencil.expr import Read
from peergrid.stencil.problem import Update

CORRECTION = (
    """\
// {title}
struct {name} {{
  static constexpr int VALUES = {values}, NUMBER = {number};
  typedef {box} BOX;
  typedef List<{loads}> Loads;
  typedef List<{made}> Makes;
"""
    + UPDATE
)


@dataclass(frozen=True)
class CorrectionText:
    """The corrections of a node, the number of which is part of their names."""

    updates: Updates
    number: int
    node: Node

    @property
    def names(self) -> list[str]:
        """The structs of the corrections."""
        return [f"Correction_{self.number}_{place}" for place in range(len(self._all))]

    @property
    def structs(self) -> Iterator[str]:
        """Their text."""
        return map(self._struct, self.names, self._all)

    @property
    def own(self) -> int:
        """The most values that a cell loads for a correction: 1 at least, as they are an array."""
        return max([1, *(len(self._loads(update)) for update in self._all)])

    @property
    def gives(self) -> Iterator[str]:
        """The values that go into the ring of the value before."""
        for place, write in enumerate(self.node.writes):
            if write in corrected(self._rings, self.node) and write.new not in self._rings.rings:
                yield f"Given<{place}, {ring_name(write.old)}>"

    @property
    def _rings(self) -> Rings:
        return self.updates.rings

    @cached_property
    def _all(self) -> tuple[Update, ...]:
        return self._rings.reads.corrections(self.node)

    def _struct(self, name: str, update: Update) -> str:
        loads = self._loads(update)
        known = {Read(write.new.field, (0, 0, 0)): self._in_place(write) for write in self.node.writes}
        known |= {read: f"Mine<{place}>" for place, read in enumerate(loads)}
        return CORRECTION.format(
            title=f"{update.name}, on {update.box.lo} to {update.box.hi}",
            name=name,
            values=len(update.targets),
            number=self._field_number(update),
            box=bounds(update.box),
            loads=listed(self.updates.read(self.node, read) for read in loads),
            made=listed(self._made(update)),
            statements=self.updates.statements(self.node, update.assignments, known),
        )

    def _made(self, update: Update) -> Iterator[str]:
        """The places of the values of a correction: those of the node, or in fields of the layer alone."""
        fields = self.updates.arguments.fields
        made = {
            write.new.field: f"{text}, {ring_name(write.new) if write.new in self._rings.rings else 'void'}"
            for write, text in zip(self.node.writes, self.updates.made(self.node), strict=True)
        }
        for n, target in enumerate(update.targets):
            own = of_layer(self._rings.problem, target)
            yield f"Own<{n}, {fields.index(target)}>" if own else f"InPlace<{n}, {made[target]}>"

    def _field_number(self, update: Update) -> int:
        """The number of the field that a correction changes among those that the node's corrections change."""
        written = {write.new.field for write in self.node.writes}
        changed = [target for one in self._all for target in one.targets if target in written]
        return list(dict.fromkeys(changed)).index(next(target for target in update.targets if target in written))

    def _loads(self, update: Update) -> list[Read]:
        """The reads of a correction that memory answers: fields of the layer alone, and profiles along rows."""
        fields = self._rings.problem.fields
        reads = (read for read in sorted(update.reads, key=str) if read.field not in self.node.before)
        return [read for read in reads if fields[read.field].full or fields[read.field].axes == (2,)]

    def _in_place(self, write: Write) -> str:
        """The name by which corrections read what a node made: in its ring, or in that of the value before, of which
        nobody else reads the plane any more.
        """
        return f"{read_name(write.new if write.new in self._rings.rings else write.old)}<0, 0, 0>"


def narrow(rings: Rings) -> list[tuple[int, int]]:
    """The columns of all corrections."""
    updates = (update for node in rings.levels.nodes for update in rings.reads.corrections(node))
    found: list[tuple[int, int]] = []
    for lo, hi in sorted((update.box.lo[2], update.box.hi[2]) for update in updates):
        if found and lo <= found[-1][1]:
            found[-1] = found[-1][0], max(hi, found[-1][1])
        else:
            found.append((lo, hi))
    return found


def share(rings: Rings, threads: int) -> int:
    """The threads that make the corrections of one field: whole warps, unless a block has too few."""
    found = threads // max([1, *(len(corrected(rings, node)) for node in rings.levels.nodes)])
    return found // 32 * 32 or found


def rounds(rings: Rings, columns: Sequence[tuple[int, int]]) -> int:
    """The cells of layers, at most, that a thread corrects in a plane of a tile; columns: those of the tiles."""
    layers = narrow(rings)
    most = max(sum(hi - lo for lo, hi in layers if lo < end and hi > begin) for begin, end in columns)
    return -(-most * rings.shape.rows // share(rings, rings.shape.threads(rings.problem.itemsize)))
