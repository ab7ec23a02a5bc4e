"""The routes of halos: as asked where devices can, else what costs less; as was measured where it was."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from peergrid import Grid, Options, stencil
from peergrid.codegen.cuda.gpu_model import H200
from peergrid.grid.partition import Partition
from peergrid.runtime.cuda.lowering.routes import Choice, Routes
from peergrid.runtime.cuda.memory.fields import Plan
from peergrid.schedule import layout, one_iteration
from peergrid.schedule.ops import Copy
from peergrid.stencil import Problem

RECORD = Path(__file__).resolve().parents[3] / "benchmarks" / "results" / "h200-x4-hosts-routes.json"
NEAR = 0.01  # of a time, within which routes are as good as each other


def problem(rows: int, columns: int, boundary: str = "fixed") -> Problem:
    @stencil
    def jacobi(u: Any) -> None:
        u.next[0, 0] = 0.25 * (u[1, 0] + u[-1, 0] + u[0, 1] + u[0, -1])

    return Problem.of(jacobi(Grid((rows, columns), boundary=boundary).field("u")))


def routes(
    given: Problem, options: Options, parts: tuple[int, int] = (4, 1), reaches: bool = True, streamed: bool = False
) -> Routes:
    plan = layout(given, Partition(given.grid, parts), options)
    schedule = one_iteration(plan, options)
    return Routes(schedule, plan, Plan(plan, 1, H200).blocks, H200.costs, streamed, lambda a, b: reaches)


def taken(found: Routes) -> set[Choice]:
    return {found.of(op) for op in found.schedule.ops if isinstance(op, Copy)}


def measured() -> list[tuple[str, int, int, str]]:
    """Strategy, depth, size, and the route that was faster, of those that were measured to differ."""
    times: dict[tuple[str, int, int], dict[str, float]] = {}
    for row in json.loads(RECORD.read_text())["rows"]:
        case = row["strategy"], row["depth"], row["size"]
        times.setdefault(case, {})[row["route"]] = row["microseconds_per_step"]
    best = {case: min(found, key=found.__getitem__) for case, found in times.items()}
    return [
        (*case, best[case]) for case, found in times.items() if max(found.values()) > (1 + NEAR) * min(found.values())
    ]


@pytest.mark.parametrize(("strategy", "depth", "size", "faster"), measured())
def test_the_route_that_was_measured_to_be_faster_is_taken(strategy: Any, depth: int, size: int, faster: Any) -> None:
    assert taken(routes(problem(size, size), Options(strategy, depth=depth))) == {Choice(faster)}


def test_long_tiles_leave_stores_no_room_where_the_work_takes_longer_than_its_calls() -> None:
    assert taken(routes(problem(17408, 17408), Options("overlap", depth=8))) == {Choice("copy")}
    assert taken(routes(problem(4096, 4096), Options("overlap", depth=8))) == {Choice("store")}
    assert taken(routes(problem(17408, 17408), Options("overlap"))) == {Choice("store")}
    assert taken(routes(problem(17408, 17408), Options("overlap"), streamed=True)) == {Choice("copy")}


def test_what_is_asked_for_stays() -> None:
    for route in ("copy", "store", "host"):
        assert taken(routes(problem(4096, 64), Options("overlap", route=route))) == {Choice(route)}  # type: ignore[arg-type]


def test_devices_that_do_not_reach_each_other_exchange_through_the_host() -> None:
    (found,) = taken(routes(problem(4096, 64), Options("overlap"), reaches=False))
    assert found.route == "host"
    assert "peer access" in found.reason
    assert taken(routes(problem(4096, 64), Options("overlap", route="host"), reaches=False)) == {Choice("host")}


def test_short_pieces_are_stored_however_long_tiles_stay() -> None:
    given = problem(17408, 17408)
    assert taken(routes(given, Options("overlap", depth=8), parts=(1, 4))) == {Choice("store")}


def test_a_device_copies_within_itself_by_one_kernel() -> None:
    found = routes(problem(17408, 17408, "periodic"), Options("overlap", depth=8))
    within = [op for op in found.schedule.ops if isinstance(op, Copy) and op.source_device == op.target_device]
    assert within
    assert {found.of(op) for op in within} == {Choice("store")}
    asked = routes(problem(4096, 64, "periodic"), Options("overlap", route="copy"))
    assert taken(asked) == {Choice("copy")}


def test_large_halos_follow_the_links() -> None:
    """An engine's start is lost in large messages, where its link is the faster one."""
    found = routes(problem(64, 1 << 24), Options("async"), parts=(2, 1))
    assert taken(found) == {Choice("copy")}
    slow = replace(H200.costs, copy=replace(H200.costs.copy, bandwidth=1e9))
    assert taken(replace(found, machine=slow)) == {Choice("store")}
