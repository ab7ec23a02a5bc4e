"""All nodes in one turn of a 3D pass, with a barrier before those that read rows which other warps just made.

Where cells keep their value at sides of the grid, a text without tests stands beside one with them: for each node or,
where a lane has much to do between barriers, for all nodes between two of them, so that these are one piece.
"""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.codegen.cuda.blocked.levels import Node
from peergrid.codegen.cuda.blocked3d.stream.cells import Cells3D
from peergrid.codegen.cuda.blocked3d.stream.turn import Turn3D


def nodes(turn: Turn3D) -> Iterator[str]:
    """The text of all nodes."""
    for number, part in enumerate(turn.planes.parts()):
        if number:
            yield "    __syncthreads();"
        if turn.planes.shape.joined:
            yield from _joined(turn, part)
        else:
            for node in part:
                yield from _node(turn, node)


def _node(turn: Turn3D, node: Node) -> Iterator[str]:
    cells = Cells3D(turn, node)
    yield from _gathered(turn, node)
    yield from _either(cells.tests(), cells.together(), cells.apart())
    yield from _published(turn, node)


def _joined(turn: Turn3D, part: list[Node]) -> Iterator[str]:
    """Nodes between two barriers; what either text reads from other lanes and warps is its own."""
    tests = dict.fromkeys(test for node in part for test in Cells3D(turn, node).tests())
    known = turn.known

    def text(*, apart: bool) -> Iterator[str]:
        turn.known = set(known) if tests else known
        for node in part:
            cells = Cells3D(turn, node)
            yield from _gathered(turn, node)
            yield from cells.apart() if apart else cells.together()
            yield from _published(turn, node)
        turn.known = known

    yield from _either(list(tests), text(apart=False), text(apart=True))


def _either(tests: list[str], plain: Iterator[str], tested: Iterator[str]) -> Iterator[str]:
    """The plain text where all tests hold, else the other."""
    if not tests:
        yield from plain
        return
    yield f"    if ({' && '.join(tests)}) {{"
    yield from plain
    yield "    } else {"
    yield from tested
    yield "    }"


def _gathered(turn: Turn3D, node: Node) -> Iterator[str]:
    yield f"    // step {node.step}, stage {node.stage}"
    yield from turn.gather(node)


def _published(turn: Turn3D, node: Node) -> Iterator[str]:
    for write in node.writes:
        yield from turn.publish(write.new)
