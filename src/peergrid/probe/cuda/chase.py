"""Latency by pointer chasing: own memory, remote memory, and remote memory after its owner touched it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from peergrid.probe.cuda.devices import Array, Devices, Stream, u32, u64
from peergrid.probe.cuda.timing import Desk
from peergrid.probe.experiment import At, Bench, Lack, Probe, Result, result

MODIFIERS = ("ca", "cg", "cv")
LINE, LINKS, STRIDED = 128, 4096, 1024
FLUSH = 256 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """Where the chain lies and who touched it: `owner` is a GPU, `touched` says that it read the chain first."""

    name: str
    owner: int
    touched: bool


def chain(base: int, links: int, stride: int, seed: int = 1) -> Array:
    """The chain as 64-bit words: one cycle through `links` places `stride` bytes apart, in random order.

    Returns:
        Words, shape (links * stride / 8,): the word at place i holds the address of the place after i.
    """
    order = np.random.default_rng(seed).permutation(links)
    words = np.zeros(links * stride // 8, np.uint64)
    words[order * (stride // 8)] = base + np.roll(order, -1).astype(np.uint64) * np.uint64(stride)
    return words


def run(bench: Bench) -> Iterator[Result | Lack]:
    """All places and modifiers against footprint, then against stride; then where remote accesses are cached."""
    devices: Devices = bench.devices
    places = [Place("own", 0, False)]
    if (0, 1) in devices.peers:
        places += [Place("remote", 1, False), Place("remote touched", 1, True)]
    else:
        yield Lack("remote memory: GPU 0 cannot reach the memory of a GPU 1")
    found: list[Result] = []
    for links, stride in footprints(bench.quick):
        for item in _chain(bench, places, links, stride):
            found.append(replace(item, at=item.at | {"footprint": links * stride}))
            yield found[-1]
    for stride in (32, 4096) if bench.quick else (8, 32, 128, 512, 4096, 65536):
        for item in _chain(bench, places, STRIDED, stride):
            yield replace(item, quantity="stride_latency", at=item.at | {"stride": stride})
    if len(places) > 1:
        yield from _cached(found)


def footprints(quick: bool) -> list[tuple[int, int]]:
    """Links and strides of chains over 16 KiB to 256 MiB."""
    powers = (14, 20, 24) if quick else (14, 17, 20, 24, 28)
    links = {power: min((1 << power) // LINE, LINKS) for power in powers}
    return [(count, (1 << power) // count) for power, count in links.items()]


def _chain(bench: Bench, places: Sequence[Place], links: int, stride: int) -> Iterator[Result]:
    """Latency of one chain in every place, by every modifier."""
    for place in places:
        yield from _place(bench, place, links, stride)


def _place(bench: Bench, place: Place, links: int, stride: int) -> Iterator[Result]:
    devices: Devices = bench.devices
    footprint = links * stride
    with devices.scope() as scope:
        base = scope.memory(place.owner, footprint)
        words = chain(base, links, stride)
        devices.put(place.owner, base, words)
        data = (base, int(words[0]), links, scope.memory(place.owner, FLUSH), footprint)
        desk = Desk.make(scope)
        for modifier in MODIFIERS:
            _chase(desk, place, modifier, False, data)  # a first launch may load code
            for turn in ("first", "again") if not place.touched else ("first",):
                cycles = [_chase(desk, place, modifier, turn == "again", data) for _ in range(bench.choose(3, 7))]
                at: At = {"place": place.name, "modifier": modifier, "pass": turn}
                yield result("load_latency", "cycles", cycles, at, floor=0.03)


def _chase(desk: Desk, place: Place, modifier: str, warm: bool, data: tuple[int, int, int, int, int]) -> float:
    """Cycles per link of one pass over the chain by GPU 0, after the owner's cache was emptied or filled."""
    devices = desk.devices
    base, start, links, junk, footprint = data
    devices.fill(place.owner, junk, 1, FLUSH // 4)
    if place.touched:
        _read(devices, place.owner, base, footprint, junk)
    kernel = devices.kernel(0, "chase", f"chase_{modifier}")
    desk.run(kernel, 1, 1, u64(start), u32(links), u32(1 if warm else 0), u64(desk.out))
    return float(desk.read()[0]) / links


def _read(devices: Devices, owner: int, base: int, footprint: int, sink: int) -> None:
    """Let the owner read its memory, so that its L2 holds what fits."""
    kernel = devices.kernel(owner, "copy", "sweep")
    stream = Stream(owner, 0)
    kernel(stream, devices.attribute("MULTIPROCESSOR_COUNT", owner), 256, u64(base), u64(footprint // 16), u64(sink))
    devices.wait(owner)


def _cached(found: list[Result]) -> Iterator[Result]:
    """The answer, from the smallest footprint: a level caches if it makes the load clearly shorter."""

    def median(place: str, modifier: str, turn: str) -> float:
        wanted = {"place": place, "modifier": modifier, "pass": turn}
        return next(r.median for r in found if all(r.at[key] == value for key, value in wanted.items()))

    remote = median("remote", "cv", "again")
    l1 = median("remote", "ca", "again") < 0.5 * remote
    l2 = median("remote", "cg", "again") < 0.5 * remote
    owner = median("remote touched", "cg", "first") < 0.95 * median("remote", "cg", "first")
    for level, cached in (("L1 of the reader", l1), ("L2 of the reader", l2), ("L2 of the owner", owner)):
        yield result("remote_cached", "", [float(cached)], {"level": level}, floor=0.0)


PROBE = Probe(
    name="chase",
    group="memory",
    rows=("M10",),
    title="Latency of a dependent load: own, remote, and remote after its owner touched it",
    unit="cycles",
    method=(
        "One thread follows a random cycle by loads with the cache modifier ca, cg or cv, timed by the clock "
        "register: up to 4096 links over footprints of 16 KiB to 256 MiB (128 bytes apart or further), then 1024 "
        "links with strides of 8 bytes to 64 KiB. Before each pass the owner's L2 is emptied by 256 MiB of writes; "
        "'again' is a second pass of the same kernel, 'touched' follows a read by the owner."
    ),
    run=run,
    gpus=1,
)
