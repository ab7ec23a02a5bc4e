"""Memory at the edge: on GPUs that are filled up but for a little, the largest grid that fits runs, one row more is
refused with the GPUs that it takes, and what a run takes is what was predicted.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from typing import Any

from gpu_checks.report import Case, Report

ROOM = 1 << 30  # bytes of each GPU that are left
STEPS = 64
AGREES = 0.02  # share by which bytes predicted and taken may differ
REFUSAL = r"or (\d+) such GPUs"

Make = Callable[[int], Any]
"""A problem with so many rows."""


def edge(report: Report, counts: list[int]) -> None:
    """Every problem on one GPU, and on as many as there are at most two."""
    from peergrid.runtime.cuda.device.driver import CudaDriver

    at_the_edge(report, CudaDriver(), min(2, counts[-1]))


def at_the_edge(report: Report, driver: Any, gpus: int, room: int = ROOM) -> None:
    """The same on a driver's GPUs."""
    with filled(driver, gpus, room):
        for name, make, depth in problems():
            for count in range(1, gpus + 1):
                case = partial(largest, driver, make, depth, count, gpus)
                report.run(f"{name}, depth {depth}, {count} GPUs", case)


@contextmanager
def filled(driver: Any, gpus: int, room: int) -> Iterator[None]:
    """GPUs of which all but so many bytes are taken; what a context takes by itself is counted before."""
    from peergrid.runtime.cuda.device.devices import Devices

    with closing(Devices(driver, tuple(range(gpus)))) as devices:
        for device in range(gpus):
            rest = devices.on(device).memory()[0] - room
            if rest > 0:
                devices.allocate(device, rest)
        yield


def problems() -> Iterator[tuple[str, Make, int]]:
    """Fields that are constant at first: grids of any size are soon described."""
    from peergrid import Grid, Problem, stencil
    from peergrid.bench.problems import radar

    @stencil
    def relax(u):  # type: ignore[no-untyped-def]
        u.next[0, 0] = 0.25 * ((u[0, -1] + u[0, 1]) + (u[-1, 0] + u[1, 0]))

    @stencil
    def heat(u):  # type: ignore[no-untyped-def]
        around = (u[-1, 0, 0] + u[1, 0, 0]) + (u[0, -1, 0] + u[0, 1, 0]) + (u[0, 0, -1] + u[0, 0, 1])
        u.next[0, 0, 0] = u[0, 0, 0] + 0.1 * (around - 6 * u[0, 0, 0])

    def flat(rows: int) -> Any:
        return Problem.of(relax(Grid((rows, 8192)).field("u")))

    def solid(rows: int) -> Any:
        return Problem.of(heat(Grid((rows, 512, 512)).field("u")))

    yield "jacobi", flat, 8
    yield "heat3d", solid, 3
    yield "radar", lambda rows: radar(rows, 4096, STEPS), 8


def largest(driver: Any, make: Make, depth: int, count: int, gpus: int) -> Case:
    """The largest grid of a problem that fits on so many GPUs runs; one row more is refused here, and runs on more."""
    from peergrid.errors import DoesNotFit
    from peergrid.runtime.cuda.memory.fields import Plan
    from peergrid.runtime.cuda.memory.room import SPARE

    room = min(free(driver, count))

    def refused(rows: int) -> bool:
        plan = Plan(arranged(driver, make(rows), depth, count), STEPS)
        return max(plan.taken(device) for device in range(count)) > room - SPARE

    each = make(256).grid.box.size // 256 * make(256).itemsize  # of a slot of one field, for a row
    rows = bisect_left(range(room // each * count), True, lo=16, key=refused) - 1
    predicted, taken = ran(driver, make(rows), depth, count)
    errors = [a / b - 1 for a, b in zip(predicted, taken, strict=True) if b]
    found = {"rows": rows, "foretold": predicted, "taken": taken, "errors": errors}
    assert all(abs(error) <= AGREES for error in errors), found
    try:
        ran(driver, make(rows + 1), depth, count)
    except DoesNotFit as refusal:
        found["said"] = str(refusal)
    named = re.search(REFUSAL, found.get("said", ""))
    assert named, found
    more = found["gpus"] = int(named[1])
    assert more == count + 1, found
    if more <= gpus:
        ran(driver, make(rows + 1), depth, more)
    return found


def arranged(driver: Any, problem: Any, depth: int, count: int) -> Any:
    """The memory of so many devices."""
    from peergrid.codegen.cuda.choose.balance import balanced
    from peergrid.codegen.cuda.choose.steps import block_of
    from peergrid.schedule import Options, layout

    options = Options("overlap", depth=depth, block=block_of(problem, depth))
    return layout(problem, balanced(problem, count, depth, None, options.block), options)


def ran(driver: Any, problem: Any, depth: int, count: int) -> tuple[list[int], list[int]]:
    """Some steps on so many GPUs: the bytes predicted of each, and those that its driver reports."""
    from peergrid.codegen.cache import default_cache
    from peergrid.codegen.cuda.choose.steps import block_of
    from peergrid.runtime.cuda.executor import CudaExecutor
    from peergrid.runtime.cuda.memory.fields import Plan
    from peergrid.schedule import Options, one_iteration

    options, cache = Options("overlap", depth=depth, block=block_of(problem, depth)), default_cache() / "cubin"
    plan, before = arranged(driver, problem, depth, count), free(driver, count)
    with closing(CudaExecutor(plan, STEPS, tuple(range(count)), cache=cache, driver=driver)) as executor:
        for name, described in problem.fields.items():
            executor.load(name, described.first_values(), 0)
        executor.execute(one_iteration(plan, options), 1, 0)
        taken = [a - b for a, b in zip(before, free(driver, count), strict=True)]
    return [Plan(plan, STEPS).taken(device) for device in range(count)], taken


def free(driver: Any, count: int) -> list[int]:
    """Bytes free on each GPU."""
    from peergrid.runtime.cuda.device.devices import Devices

    found = []
    with closing(Devices(driver, tuple(range(count)))) as devices:
        for device in range(count):
            found.append(devices.on(device).memory()[0])
    return found
