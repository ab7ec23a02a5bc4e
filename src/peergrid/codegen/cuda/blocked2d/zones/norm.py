"""The text of the norms of a zone's tile: the sums of `codegen.norm`, where a lane has one, two or four columns.

The first of the lanes that share four neighbours adds up their squares in order, as it gets them by shuffle. A zone's
loop makes one row at a time, so that it counts the rows of a block, in `band`, and each step asks whether its row is
the last of one.
"""

from __future__ import annotations

from collections.abc import Iterator

from peergrid.codegen.norm import NORM_COLUMNS, NORM_ROWS

GROUP = 4  # neighbours along a row whose squares are added one after another


def declared(steps: int, columns: int) -> Iterator[str]:
    """The sum of each step, where in a block of rows the newest one lies, and the columns that count."""
    yield f"  R {', '.join(f'q{step} = R(0)' for step in range(steps))};"
    yield f"  int band = first % {NORM_ROWS} + (first % {NORM_ROWS} < 0 ? {NORM_ROWS} : 0);"
    for i in range(columns):
        yield f"  const bool counts_{i} = x + {i} < c1;"


def difference(step: int, columns: int, now: str, was: str) -> Iterator[str]:
    """The squared change of a row; now, was: arrays with a lane's columns of it."""
    yield "    {"
    for i in range(columns):
        yield f"      const R d{i} = counts_{i} ? {now}[{i}] - {was}[{i}] : R(0);"
    for i in range(columns):
        yield f"      q{step} = fma(d{i}, d{i}, q{step});"
    for lane in range(1, GROUP // columns):
        for i in range(columns):
            yield f"      {{ const R e = __shfl_down_sync(0xffffffffu, d{i}, {lane}); q{step} = fma(e, e, q{step}); }}"
    yield "    }"


def ended(step: int, columns: int, lag: int) -> Iterator[str]:
    """A step's sums to memory with the last row of a block, or of the tile, where a grid ends within a block."""
    lanes = NORM_COLUMNS // columns
    yield f"    if (band == {(NORM_ROWS - 1 + lag) % NORM_ROWS} || r == y1 + {lag - 1}) {{"
    yield f"      const int y = r - {lag};"
    yield f"      const R sum = q{step} + __shfl_xor_sync(0xffffffffu, q{step}, {lanes // 2});"
    block = f"{step} * norms.plane + (y / {NORM_ROWS}) * norms.pitch + x / {NORM_COLUMNS}"
    yield f"      if (y >= y0 && y < y1 && !(lane & {lanes - 1}) && x >= c0 && x < c1) norms.partial[{block}] = sum;"
    yield f"      q{step} = R(0);"
    yield "    }"


def advanced() -> str:
    """The next row."""
    return f"    band = band == {NORM_ROWS - 1} ? 0 : band + 1;"
