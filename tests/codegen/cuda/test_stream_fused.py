"""Kernels that exchange halos themselves: the bits of the reference after several passes, on chains and rings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from emulate import Device, compiled, pointers
from stream_examples import radar, relaxation, two_fields, wide_reads, yee
from table_problems import media

from peergrid.codegen.cuda.blocked2d.pass_kernel import PassKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.fused.exchange import supports
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.fused.persistent import PASSES, PersistentKernel
from peergrid.grid import Grid
from peergrid.grid.partition import Partition
from peergrid.schedule.layout import Layout
from peergrid.stencil import Problem, boundary_depth

Make = Callable[..., Problem]
BUDGET = 20_000  # nanoseconds of the emulated clock: a few thousand looks


class Row:
    """Devices in a chain, or in a ring where the grid wraps, with their counters and a board."""

    def __init__(self, problem: Problem, count: int, steps: int, passes: int) -> None:
        self.problem, self.count, self.steps, self.passes = problem, count, steps, passes
        layout = Layout(problem, Partition(problem.grid, (count, 1)), (steps,))
        self.devices = [Device(layout, d, steps * passes) for d in range(count)]
        self.counters = np.zeros((count, 2, 2), np.int64)
        self.board = np.zeros(8 * (count + 1), np.int64)

    def neighbour(self, device: int, side: int) -> tuple[int, int] | None:
        """The device on that side and the shift that brings own rows to its coordinates."""
        other = device + (1 if side else -1)
        wraps = self.problem.grid.periodic[0]
        if not wraps and not 0 <= other < self.count:
            return None
        return other % self.count, -(other // self.count) * self.problem.grid.shape[0]

    def links(
        self, dtype: np.dtype[Any], device: int, counts: list[tuple[int, int]], passed: int
    ) -> np.ndarray[Any, Any]:
        links = np.zeros((), dtype)
        links["passed"], links["timeout"] = passed, BUDGET
        links["fault_log"], links["record"] = self.board.ctypes.data, 8 * (device + 1)
        for side in (0, 1):
            found = self.neighbour(device, side)
            if found is None:
                continue
            other, shift = found
            links["side"]["local"][side] = self.counters[device, side:].ctypes.data
            links["side"]["remote"][side] = self.counters[other, 1 - side :].ctypes.data
            links["side"]["expected"][side], links["side"]["op"][side] = counts[other][1 - side], 70 + device
            for number, name in enumerate(self.problem.fields):
                if name in self.problem.state:
                    pitch = self.devices[other].padded[name][0].array.shape[1]
                    origins = [padded.origin for padded in self.devices[other].padded[name]]
                    row = links["side"]["fields"][side, number]
                    row["pitch"][0] = pitch
                    row["slot"][:] = [origin + shift * pitch * self.problem.itemsize for origin in origins]
        return links

    def expect(self) -> None:
        """The reference on one device, spread over all after each pass."""
        for number in range(self.passes):
            for device in self.devices:
                device.reference(number % 2, number * self.steps, self.steps)
            for halo in self.devices[0].layout.halos:
                source = self.devices[halo.source].memory.block(halo.field, 1 - number % 2).view(halo.source_box)
                self.devices[halo.target].memory.block(halo.field, 1 - number % 2).view(halo.target_box)[...] = source


def run_peers(row: Row, kernel: PeerKernel) -> None:
    launches = [kernel.launches(device.box, 4, device.recorded) for device in row.devices]
    counts = [
        kernel.links.counts(device.box, (one.regions for one in found))
        for device, found in zip(row.devices, launches, strict=True)
    ]
    for number in range(row.passes):
        for device, found in zip(row.devices, launches, strict=True):
            links = row.links(kernel.links.dtype(), device.number, counts, number)
            for launch in found:
                given = device.arguments(number % 2, number * row.steps)
                given["regions"], given["receivers"] = launch.regions.ctypes.data, launch.receivers.ctypes.data
                given["count"] = len(launch.regions)
                start = compiled(launch.program, ["Exchange"])
                assert start(launch.blocks, 1, pointers([given, links])) is None


def run_persistent(row: Row, kernel: PersistentKernel, blocks: int = 3) -> None:
    tables = [kernel.tables(device.box, 4, device.recorded) for device in row.devices]
    counts = [kernel.links.counts(device.box, found[:2]) for device, found in zip(row.devices, tables, strict=True)]
    given, arrived = [], np.zeros((row.count, 1), np.int64)
    for device, (interior, boundary, receivers) in zip(row.devices, tables, strict=True):
        passes = np.zeros((), PASSES)
        given_tables = interior, boundary, arrived[device.number]
        passes["interior"], passes["boundary"], passes["arrived"] = (t.ctypes.data for t in given_tables)
        passes["interior_count"], passes["boundary_count"], passes["passes"] = len(interior), len(boundary), row.passes
        arguments = device.arguments(0, 0)
        arguments["receivers"] = receivers.ctypes.data
        given += [arguments, row.links(kernel.links.dtype(), device.number, counts, 0), passes]
    start = compiled(kernel.program, ["Exchange", "Passes"], together=True)
    assert start(row.count, blocks, pointers(given)) is None


def agree(row: Row) -> None:
    row.expect()
    assert not row.board.any()
    assert all(device.agrees(row.passes % 2) for device in row.devices)


@pytest.mark.parametrize("boundary", [("fixed", "fixed"), ("periodic", "reflecting")])
@pytest.mark.parametrize(("make", "count"), [(relaxation, 3), (yee, 2), (two_fields, 2), (wide_reads, 2), (media, 2)])
def test_peers(make: Make, count: int, boundary: Any) -> None:
    problem = make((60 * count, 190), boundary)
    row = Row(problem, count, 3, 3)
    run_peers(row, PeerKernel.of(PassKernel(problem, Shape(3, warps=2))))
    agree(row)


def test_peers_with_absorber_source_receivers() -> None:
    problem = radar((120, 260))
    row = Row(problem, 2, 4, 2)
    kernel = PeerKernel.of(PassKernel(problem, Shape(4, warps=2)))
    assert {launch.program.entry for launch in kernel.launches(row.devices[0].box, 4)} == {
        "stream2d_peer",
        "edge2d_peer",
        "layer2d_peer",
    }
    run_peers(row, kernel)
    agree(row)


@pytest.mark.parametrize("interior", [True, False])
@pytest.mark.parametrize(("make", "count", "boundary"), [
    (relaxation, 1, "fixed"), (relaxation, 3, "reflecting"), (yee, 2, ("periodic", "fixed")), (radar, 2, "fixed"),
    (two_fields, 2, "fixed"), (wide_reads, 2, "reflecting"), (media, 2, ("periodic", "fixed")),
])  # fmt: skip
def test_persistent(make: Make, count: int, boundary: Any, interior: bool) -> None:
    problem = make((60 * count, 190), boundary)
    row = Row(problem, count, 3, 4)
    kernel = PersistentKernel(PassKernel(problem, Shape(3, warps=2)), interior, rows=20, warps=4)
    assert bool(len(kernel.tables(row.devices[0].box, 4)[0])) == interior
    run_persistent(row, kernel)
    agree(row)


@pytest.mark.parametrize(("passed", "counted"), [(1, (0, 0)), (1, (4, 1)), (2, (9, 4))])
def test_a_neighbour_that_never_signals_is_reported(passed: int, counted: tuple[int, int]) -> None:
    """counted: by how many of its tiles after even and after odd passes; five were enough, of the right ones."""
    problem = relaxation((120, 190))
    row = Row(problem, 2, 3, 2)
    row.counters[0, 1] = counted
    kernel = PeerKernel.of(PassKernel(problem, Shape(3, warps=2)))
    launches = kernel.launches(row.devices[0].box, 4)
    links = row.links(kernel.links.dtype(), 0, [(0, 5), (5, 0)], passed)
    given = row.devices[0].arguments(0, 0)
    for launch in launches:
        given["regions"], given["count"] = launch.regions.ctypes.data, len(launch.regions)
        assert compiled(launch.program, ["Exchange"])(launch.blocks, 1, pointers([given, links])) is None
    assert row.board[0] == 1
    assert list(row.board[8:11]) == [71, passed, 0]


def test_support() -> None:
    chain = relaxation((40, 40))
    assert supports(chain, Partition(chain.grid, (2, 1)), 4)
    assert boundary_depth(chain, 4) == 4
    assert not supports(chain, Partition(chain.grid, (1, 2)), 4)
    assert not supports(chain, Partition(chain.grid, (8, 1)), 4)
    ring = relaxation((40, 40), ("fixed", "periodic"))
    assert not supports(ring, Partition(Grid((40, 40), ("fixed", "periodic")), (2, 1)), 4)
