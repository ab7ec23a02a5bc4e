"""A thread's neighbouring cells side by side: values are loaded where they are used.

For stencils that read more than registers hold. Cell after cell, what all of them read would have to stay; here every
statement is there for one cell after the other, so that a value is used by all cells soon after it is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from peergrid.codegen.cuda.onestep.body import Body, Reader
from peergrid.stencil.expr import Read


@dataclass(frozen=True)
class Loaded:
    """The values of one load, relative to the thread's first cell: W aligned values or, not `wide`, one."""

    field: str
    plane: int
    row: int
    column: int
    wide: bool


@dataclass
class SideBySide:
    """The statements of W cells.

    nested: operations of a statement (with more, the values of many rows are used at once); cell: the texts of
    the index of cell number v; place: what has the value
    of a read of cell number v, and at which of its elements; load: the statement that loads it under a name; output:
    the variable of a field's new value in cell number v.
    """

    body: Body
    width: int
    nested: int
    cell: Callable[[str], tuple[str, ...]]
    place: Callable[[Read, int], tuple[Loaded, int]]
    load: Callable[[Loaded, str], str]
    output: Callable[[str, int], str]
    _names: dict[Loaded, str] = field(default_factory=dict)
    _loads: dict[str, str] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """All statements; what one needs is loaded before it."""
        cells = [list(self._cell(v)) for v in range(self.width)]
        for statements in zip(*cells, strict=True):
            for statement in statements:
                for name in re.findall(r"\bg\d+\b", statement):
                    if name in self._loads:
                        yield self._loads.pop(name)
                yield statement

    def _cell(self, v: int) -> Iterator[str]:
        read, lane = self._reader(v), f"_{v}"
        yield from self.body.statements(read, self.cell(str(v)), lane, self.nested)
        for name in self.body.variant.stored:
            yield f"{self.output(name, v)} = {self.body.result(name, read, lane)};"

    def _reader(self, v: int) -> Reader:
        def read(node: Read) -> str:
            loaded, element = self.place(node, v)
            if loaded not in self._names:
                name = self._names[loaded] = f"g{len(self._names)}"
                self._loads[name] = self.load(loaded, name)
            return self._names[loaded] + (f"[{element}]" if loaded.wide else "")

        return read
