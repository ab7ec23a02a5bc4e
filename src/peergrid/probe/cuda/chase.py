"""Latency by pointer chasing: own memory, remote memory, and remote memory after its owner touched it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from peergrid.probe.cuda.devices import Array, Gpus, Stream, u32, u64
from peergrid.probe.cuda.timing import Desk
from peergrid.probe.experiment import At, Bench, Lack, Measurement, Probe, result

MODIFIERS = ("ca", "cg", "cv")
LINE, LINKS, STRIDED = 128, 4096, 1024
FLUSH = 256 << 20


@dataclass(frozen=True, slots=True)
class Place:
    """The memory of a chain and who touched it: `owner` is a GPU, `touched` says that it read the chain first."""

    name: str
    owner: int
    touched: bool


@dataclass(frozen=True, slots=True)
class PointerChain:
    """The begin of a chain, its links, and the `footprint` bytes from `base` it runs through; `junk` empties an L2."""

    base: int
    start: int
    links: int
    footprint: int
    junk: int

    @property
    def gapless(self) -> bool:
        """True if it touches every line of its footprint."""
        return self.footprint <= self.links * LINE


def chain(base: int, links: int, stride: int, seed: int = 1) -> Array:
    """The chain as 64-bit words: one cycle through `links` places `stride` bytes apart, in random order.

    Returns:
        Words, shape (links * stride / 8,): the word at place i holds the address of the place after i.
    """
    order = np.random.default_rng(seed).permutation(links)
    words = np.zeros(links * stride // 8, np.uint64)
    words[order * (stride // 8)] = base + np.roll(order, -1).astype(np.uint64) * np.uint64(stride)
    return words


def run(bench: Bench) -> Iterator[Measurement | Lack]:
    """All places and modifiers against footprint, then against stride; then where remote accesses are cached."""
    devices: Gpus = bench.devices
    places = [Place("own", 0, False)]
    if (0, 1) in devices.peers:
        places += [Place("remote", 1, False), Place("remote touched", 1, True)]
    else:
        yield Lack("remote memory: GPU 0 cannot reach the memory of a GPU 1")
    found: list[Measurement] = []
    for links, stride in footprints(bench.quick):
        for item in _chain(bench, places, links, stride, spread=True):
            found.append(replace(item, at=item.at | {"footprint": links * stride}))
            yield found[-1]
    for stride in (32, 4096) if bench.quick else (8, 32, 128, 512, 4096, 65536):
        for item in _chain(bench, places, STRIDED, stride):
            yield replace(item, quantity="stride_latency", at=item.at | {"stride": stride})
    if len(places) > 1:
        yield from _cached(found)


def footprints(quick: bool) -> list[tuple[int, int]]:
    """Links and strides of chains over 16 KiB to 256 MiB: in an L1, larger than it, in an L2, larger than it."""
    powers = (14, 19, 28) if quick else (14, 17, 19, 24, 26, 28)
    links = {power: min((1 << power) // LINE, LINKS) for power in powers}
    return [(count, (1 << power) // count) for power, count in links.items()]


def _chain(
    bench: Bench, places: Sequence[Place], links: int, stride: int, spread: bool = False
) -> Iterator[Measurement]:
    """Latency of one chain in every place, by every modifier; `spread` counts the lines between its links in."""
    for place in places:
        yield from _place(bench, place, links, stride, spread)


def _place(bench: Bench, place: Place, links: int, stride: int, spread: bool) -> Iterator[Measurement]:
    devices: Gpus = bench.devices
    footprint = links * stride
    with devices.scope() as scope:
        base = scope.memory(place.owner, footprint)
        words = chain(base, links, stride)
        devices.put(place.owner, base, words)
        way = PointerChain(base, int(words[0]), links, footprint, scope.memory(place.owner, FLUSH))
        desk = Desk.make(scope)
        for modifier in MODIFIERS:
            for which in ("first", "again") if not place.touched else ("first",):
                by = None if which == "first" else "all" if spread and not way.gapless else "chain"
                _chase(desk, place, modifier, by, way)  # a first launch may load code
                cycles = [_chase(desk, place, modifier, by, way) for _ in range(bench.choose(3, 7))]
                at: At = {"place": place.name, "modifier": modifier, "pass": which}
                yield result("load_latency", "cycles", cycles, at, floor=0.03)


def _chase(desk: Desk, place: Place, modifier: str, warm: str | None, way: PointerChain) -> float:
    """Cycles per link of one pass over the chain by GPU 0, after the owner's cache was emptied or filled.

    `warm` says what GPU 0 reads before the pass: the "chain", "all" of its footprint, or nothing.
    """
    devices = desk.devices
    devices.fill(place.owner, way.junk, 1, FLUSH // 4)
    if place.touched:
        _read(devices, place.owner, way)
    if warm == "all":
        _read(devices, 0, way)
    kernel = devices.kernel(0, "chase", f"chase_{modifier}")
    desk.run(kernel, 1, 1, u64(way.start), u32(way.links), u32(warm == "chain"), u64(desk.out))
    return float(desk.read()[0]) / way.links


def _read(devices: Gpus, reader: int, way: PointerChain) -> None:
    """Let a GPU read the footprint, so that the owner's L2 holds what fits."""
    kernel = devices.kernel(reader, "copy", "read_all")
    grid = devices.attribute("MULTIPROCESSOR_COUNT", reader)
    kernel(Stream(reader, 0), grid, 256, u64(way.base), u64(way.footprint // 16), u64(way.junk))
    devices.wait(reader)


def _cached(found: list[Measurement]) -> Iterator[Measurement]:
    """The answer, from the smallest footprint: a level caches if it makes the load clearly shorter."""

    def median(place: str, modifier: str, which: str) -> float:
        wanted = {"place": place, "modifier": modifier, "pass": which}
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
    title="Latency of a dependent load: own, remote, and remote after its owner touched it",
    unit="cycles",
    method=(
        "One thread follows a random cycle by loads with the cache modifier ca, cg or cv, timed by the clock "
        "register: up to 4096 links over footprints of 16 KiB to 256 MiB (128 bytes apart or further), then 1024 "
        "links with strides of 8 bytes to 64 KiB. Before each pass the owner's L2 is emptied by 256 MiB of writes; "
        "'again' is a second pass of the same kernel, or, where the chain skips lines of its footprint, follows a "
        "read of the whole footprint by all multiprocessors of the reader; 'touched' follows one by the owner."
    ),
    run=run,
    gpus=1,
)
