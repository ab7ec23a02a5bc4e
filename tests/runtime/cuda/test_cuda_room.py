"""What a GPU has no room for is refused before anything is allocated."""

from __future__ import annotations

import pytest
from host_driver import COMPILER, HostDriver
from runtime_problems import random_heat

from peergrid import Options
from peergrid.codegen.norm import NORM_ALIGN
from peergrid.errors import DoesNotFit
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.executor import CudaExecutor
from peergrid.runtime.cuda.memory.fields import Plan, fewest
from peergrid.runtime.cuda.memory.room import SPARE, check_least
from peergrid.schedule import Layout, layout

pytestmark = pytest.mark.skipif(COMPILER is None, reason="the host's driver needs a C++ compiler")
FREE = SPARE + (1 << 30)


@pytest.mark.parametrize(
    ("ordinals", "needed", "said"),
    [
        ((0,), 3 << 30, r"needs 3.00 GiB on GPU 0, which has 1.00 GiB free: about 333 of .* or 3 such GPUs"),
        (
            (1, 1),
            2 << 30,
            r"needs 2.00 GiB on GPU 1, which has 1.00 GiB free: about 500 of .* or 2 such GPUs",
        ),
    ],
)
def test_what_is_needed_what_is_free_and_what_would_fit(ordinals: tuple[int, ...], needed: int, said: str) -> None:
    driver = HostDriver(free=FREE)
    with pytest.raises(DoesNotFit, match=said):
        check_least(ordinals, needed, 1000, driver)
    assert not driver.live


def test_shares_that_fit_pass() -> None:
    driver = HostDriver(free=FREE)
    check_least((0, 1), 2 << 30, 1000, driver)
    assert not driver.live


def test_the_sums_of_norms_count() -> None:
    """Long runs keep a number for every 24 rows and step."""
    problem, options = random_heat((96, 40)), Options("serial")
    plan = layout(problem, Partition.slabs(problem.grid, (0, 48, 96)), options, NORM_ALIGN)
    driver = HostDriver(free=SPARE + sum(Plan(plan, 100_000).taken(device) for device in range(2)))
    CudaExecutor(plan, 100_000, (0, 0), driver=driver).close()
    with pytest.raises(DoesNotFit, match=r"needs .* GiB on GPU 0, which has"):
        CudaExecutor(plan, 100_000, (0, 0), driver=driver, norm="u")
    assert not driver.live


def test_the_largest_grid_that_fits_runs_and_one_row_more_is_refused_with_the_gpus_that_it_takes() -> None:
    """As `tools/gpu_check --only faults` does with the memory of real GPUs."""
    options = Options("serial")

    def rows(count: int) -> Layout:
        problem = random_heat((count, 16384))
        return layout(problem, Partition.over(problem.grid, 1), options)

    free = Plan(rows(128), 1).taken(0)
    most = next(n for n in range(129, 999) if Plan(rows(n), 1).taken(0) > free) - 1
    driver = HostDriver(free=SPARE + free)
    CudaExecutor(rows(most), 1, (0,), driver=driver).close()
    with pytest.raises(DoesNotFit, match="or 2 such GPUs"):
        CudaExecutor(rows(most + 1), 1, (0,), driver=driver)
    assert fewest(Plan(rows(4 * most), 1), free) == 5
    assert fewest(Plan(rows(7 * most // 2), 1), free) == 4
    assert not driver.live
