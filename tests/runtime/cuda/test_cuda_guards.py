"""What streaming kernels read lies within a field's memory, guards included, whatever the field's own halo."""

from __future__ import annotations

import pytest

from peergrid import Options
from peergrid.bench.own import shipped_waves
from peergrid.codegen.cuda.blocked.reach import row_reach
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.memory.blocks import GUARD, block_layouts
from peergrid.schedule import layout


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_rows_of_the_farthest_reaching_field_are_there_of_every_field(depth: int) -> None:
    problem = shipped_waves(64, 4 * GUARD, lossy=True)
    plan = layout(problem, Partition.over(problem.grid, 2), Options("persistent", depth))
    above, below = row_reach(problem, depth)
    for device in range(2):
        owned = plan.partition.owned(device)
        first, last = max(0, owned.lo[0] - above), min(64, owned.hi[0] + below)
        for block in block_layouts(plan, device).values():
            before, after = (block.guard + (row - block.box.lo[0]) * block.pitches[0] for row in (first, last))
            assert before >= 0
            assert after <= block.values
