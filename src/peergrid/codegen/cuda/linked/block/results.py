"""What leaves a tile of a block: the cells of the last step, and what the receivers hear."""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.codegen.cuda.blocked2d.places import written
from peergrid.codegen.cuda.linked.block.cells import BlockCells2D
from peergrid.stencil import Problem, footprint


def final(cells: BlockCells2D, name: str, value: str) -> Iterator[str]:
    """What the last step leaves goes to memory, and to the neighbours that need it."""
    number, growth = cells.arguments.fields.index(name), footprint(cells.problem, cells.shape.steps).inputs[name]
    (ylo, yhi), (xlo, xhi) = (written(cells.problem, name, axis) for axis in (0, 1))
    place = f".fields[{number}].slot[target][y * {{of}}.fields[{number}].pitch[0] + x] = {value};"
    yield f"      if (!left && y >= {ylo} && y < {yhi} && x >= {xlo} && x < {xhi}) {{"
    yield f"        a{place.format(of='a')}"
    for side, test in ((0, f"y < a.lo[0] + {growth.above[0]}"), (1, f"y >= a.hi[0] - {growth.below[0]}")):
        yield f"        if (links.side[{side}].mine && {test})"
        yield f"          links.side[{side}]{place.format(of=f'links.side[{side}]')}"
    yield "      }"


def record(cells: BlockCells2D, number: int) -> Iterator[str]:
    """What is final after a stage goes to the receivers."""
    recorded = {receiver.field for receiver in cells.problem.receivers}
    done = [name for name in ended(cells.problem, number) if name in recorded]
    if not done:
        return
    yield "      if (tile.variant) {"
    yield "        for (int k = threadIdx.x; k < tile.variant; k += static_cast<int>(blockDim.x)) {"
    yield "          const Receiver q = a.receivers[tile.first + k];"
    yield f"          const int at = (q.cell[0] - yb) * {cells.shape.width} + (q.cell[1] - xb);"
    for name in done:
        yield f"          if (q.field == {cells.arguments.fields.index(name)})"
        yield f"            a.traces[q.number * a.total_steps + step] = s[{cells.array(name)} + at];"
    yield "        }"
    yield "        __syncthreads();"
    yield "      }"


def record_constants(cells: BlockCells2D) -> Iterator[str]:
    """Receivers of coefficients, which no step changes."""
    for name in sorted({r.field for r in cells.problem.receivers} - set(cells.problem.state)):
        number, axes = cells.arguments.fields.index(name), cells.problem.fields[name].axes
        place = [f"q.cell[{axis}]" for axis in axes]
        index = place[0] if len(place) == 1 else f"{place[0]} * a.fields[{number}].pitch[0] + {place[1]}"
        yield f"  if (threadIdx.x < {cells.shape.steps})"
        yield "    for (int k = tile.first; k < tile.first + tile.variant; ++k) {"
        yield "      const Receiver q = a.receivers[k];"
        yield f"      if (q.field == {number})"
        yield "        a.traces[q.number * a.total_steps + step0 + static_cast<int>(threadIdx.x)] ="
        yield f"            a.fields[{number}].slot[0][{index}];"
        yield "    }"


def ended(problem: Problem, number: int) -> tuple[str, ...]:
    """The fields that a stage writes and no later one of the step."""
    later = {name for stage in problem.stages[number + 1 :] for name in stage.targets}
    return tuple(name for name in problem.stages[number].targets if name not in later)
