"""What the measuring kernels really do, seen in their PTX and in the calls around them."""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import pairwise

import pytest

pytest.importorskip("cuda.core")

from pretend_calls import needs_nvrtc
from pretend_driver import PretendDriver, _ptx

from peergrid.probe import Bench
from peergrid.probe.cuda import chase, hiding
from peergrid.probe.cuda.compile import text
from peergrid.probe.cuda.devices import Gpus


@cache
def ptx(source: str, kernel: str) -> str:
    """The PTX of one kernel."""
    return next(part for part in _ptx(text(source)).split(".visible .entry ") if part.startswith(f"{kernel}("))


@needs_nvrtc
@pytest.mark.parametrize("kernel", ["tile", "coalesced"])
def test_no_two_barriers_of_a_warp_in_a_row_have_the_same_mask(kernel: str) -> None:
    """A compiler merges those: what is timed then is nothing."""
    masks = re.findall(r"bar\.warp\.sync (%r\d+)", ptx("warp", kernel))
    assert len(masks) >= 16
    assert all(one != other for one, other in pairwise(masks))


@needs_nvrtc
@pytest.mark.parametrize("kernel", ["grid", "devices"])
def test_a_barrier_looks_at_nothing_but_its_words(kernel: str) -> None:
    """A verdict in shared memory, or a table of addresses looked up each time, would be measured with it."""
    body = ptx("barrier", kernel)
    assert "shared" not in body
    loads = re.findall(r"\bld\.(?!param)\S+", body[body.index("bar.sync") :])
    assert loads == [f"ld.acquire.{'gpu' if kernel == 'grid' else 'sys'}.global.u32"]


@needs_nvrtc
def test_a_step_of_the_chain_in_shared_memory_is_a_load_and_an_addition() -> None:
    body = ptx("arithmetic", "chase_shared")
    loads, sums = (len(re.findall(kind, body)) for kind in (r"ld\.shared\.f64", r"add\.f64"))
    assert loads == sums >= 16


def test_every_footprint_is_read_whole_before_its_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the chain itself where it touches every line, otherwise by reading all of it: 256 MiB are to leave an L2."""
    seen: dict[int, set[tuple[str, str | None]]] = {}

    def note(desk: object, place: chase.Place, modifier: str, warm: str | None, way: chase.PointerChain) -> float:
        seen.setdefault(way.footprint, set()).add((place.name, warm))
        return 1.0

    monkeypatch.setattr(chase, "_chase", note)
    with Gpus.open(PretendDriver(1)) as devices:
        list(chase._place(Bench(quick=True, devices=devices), chase.Place("own", 0, False), 4096, 128, True))
        list(chase._place(Bench(quick=True, devices=devices), chase.Place("own", 0, False), 4096, 65536, True))
        list(chase._place(Bench(quick=True, devices=devices), chase.Place("own", 0, False), 1024, 65536, False))
    assert seen == {
        4096 * 128: {("own", None), ("own", "chain")},
        4096 * 65536: {("own", None), ("own", "all")},
        1024 * 65536: {("own", None), ("own", "chain")},
    }


@needs_nvrtc
def test_the_reading_before_a_second_pass_is_by_the_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[tuple[int, int]] = []
    monkeypatch.setattr(chase, "_read", lambda devices, reader, way: swept.append((reader, way.footprint)))
    driver = PretendDriver(2)
    with Gpus.open(driver) as devices, devices.scope() as scope:
        way = chase.PointerChain(scope.memory(1, 4096), 0, 16, 1 << 28, scope.memory(1, 4096))
        desk = chase.Desk.make(scope)
        monkeypatch.setattr(devices.driver, "_cuMemsetD32", lambda *arguments: None)
        for touched in (False, True):
            for warm in (None, "chain", "all"):
                chase._chase(desk, chase.Place("remote", 1, touched), "cg", warm, way)
    assert swept == [(0, 1 << 28), (1, 1 << 28), (1, 1 << 28), (1, 1 << 28), (0, 1 << 28)]


def test_footprints_reach_from_an_l1_to_beyond_an_l2() -> None:
    for quick in (True, False):
        ways = [chase.PointerChain(0, 0, links, links * stride, 0) for links, stride in chase.footprints(quick)]
        assert ways[0].footprint == 16 << 10
        assert ways[-1].footprint == 256 << 20
        assert max(way.footprint for way in ways if way.gapless) == 512 << 10, "larger than an L1, every line touched"


def test_loads_to_hide_lie_between_the_numbers_tried() -> None:
    counts = (1, 2, 4, 8)
    assert hiding.crossing(counts, [600.0 / n for n in counts], 100.0) == pytest.approx(6.0)
    assert hiding.crossing(counts, [600.0 / n for n in counts], 700.0) == 1.0
    assert hiding.crossing(counts, [600.0 / n for n in counts], 150.0) == pytest.approx(4.0)
    assert math.isinf(hiding.crossing(counts, [600.0 / n for n in counts], 10.0))
