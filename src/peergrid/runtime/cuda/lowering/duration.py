"""A careful estimate of the time of work from the problem and the driver's facts of the GPUs, not a measurement.

A step by itself moves every field through memory and makes its operations one after another, each the longer the fewer
units a GPU has for them. What is launched or issued ahead at once is bounded by such seconds, and nobody is said to
stand still before the work that may lie ahead of it could have been done many times over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.schedule import Layout
from peergrid.stencil.cost import minimal_bytes, operations

IN_FLIGHT_SECONDS = 0.1  # of work in one launch, or issued ahead: displays wait for launches, drivers kill those of 2 s
BATCH_SECONDS = 3.0  # of work after which a run can be interrupted: the interpreter does not run while hosts issue
TIMEOUT_FACTOR = 20  # estimated exchange intervals in a timeout: slow kernels, slow neighbours, other programs
SHORTEST = 1e-6  # seconds of a step, however few its cells
UNKNOWN = 5e10  # bytes a second where a driver does not say: a slow laptop's
OPERATION = 0.25  # bytes that memory moves in the time of a single precision operation, where it moves most


def step_seconds(
    layout: Layout, ordinals: tuple[int, ...], driver: CudaDriver, mine: Sequence[int] | None = None
) -> float:
    """Seconds of one step; devices that share a GPU follow one another. mine: those of this process (None: all)."""
    problem, cells = layout.problem, Counter[int]()
    for device in range(len(ordinals)) if mine is None else mine:
        ordinal = ordinals[device]
        cells[ordinal] += layout.partition.owned(device).size
    moved, made = (count / problem.grid.box.size for count in (minimal_bytes(problem), operations(problem)))

    def seconds(ordinal: int) -> float:
        times = driver.double_cost(ordinal) if problem.itemsize == 8 else 1
        return cells[ordinal] * (moved + OPERATION * times * made) / (driver.bandwidth(ordinal) or UNKNOWN)

    return max(SHORTEST, *map(seconds, cells))


def timeout(least: float, step: float, layout: Layout) -> float:
    """Seconds that a device may wait for its neighbours, at least so many; step: seconds of one."""
    return max(least, TIMEOUT_FACTOR * step * sum(layout.blocks))


def batches(times: int, seconds: float) -> Iterator[int]:
    """Iterations of so many seconds in batches of `BATCH_SECONDS` at most, a power of two each but the last: graphs
    contain such a number of iterations.
    """
    most = 1 << max(0, int(BATCH_SECONDS / seconds).bit_length() - 1)
    whole, rest = divmod(times, most)
    yield from (most,) * whole
    if rest:
        yield rest
