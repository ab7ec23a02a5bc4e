"""The protocol of kernels with fused exchange, read from their text: what is explored is what is compiled.

Calls are taken in the order of the text. Raises ValueError where it has another shape than the one known here, so that
no text goes unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from fused_protocol.model import Protocol, Step

CALLS = re.compile(
    r"\b(?P<wait>await_neighbours|await_pass(?=\(e, p))\("
    r"|\b(?P<sync>__syncthreads|__syncwarp)\(\)"
    r"|\b(?P<fence>__threadfence_system)\("
    r"|\b(?P<tile>\w+)(?:::advance|<Boundary>)\(a, (?P<exchange>e, )?tile"
    r"|\b(?P<put>put_halos)\("
    r"|\b(?P<signal>signal_neighbours)\("
    r"|\b(?P<arrive>arrive_device)\("
)
TEMPLATE = re.compile(r"\b(?P<name>exchange_\w+|all_passes)<(?P<tiles>[^;]*?)>\(")
BRANCH = re.compile(
    r"if \(unit < p\.boundary_count\) \{(?P<boundary>.*?)\n        continue;\n      \}(?P<interior>.*)", re.DOTALL
)
TILE = re.compile(r"\b(advance_\w+|\w+_tile)<")
STORES = re.compile(r"slot\[target\]|\b(advance|finish)<|\.run\(")
LOOP = "for (long long unit"
FIRST_LOOP = "for (long long pass"


@dataclass(frozen=True)
class KernelText:
    """The text of a program and the kernel in it."""

    source: str
    entry: str

    def protocols(self) -> dict[str, Protocol]:
        """The protocol of each kind of tile that the kernel makes."""
        found = TEMPLATE.search(_body(self.source, self.entry))
        if found is None:
            raise ValueError(f"kernel {self.entry} calls no template that is known")
        body, tiles = _body(self.source, found["name"]), found["tiles"]
        if LOOP not in body:
            return {"tiles": self._protocol(body, tiles, resident=False)}
        head, units = body[body.index(FIRST_LOOP) :].split(LOOP, 1)
        parts = BRANCH.search(units)
        if parts is None:
            raise ValueError(f"kernel {self.entry} has no branch for boundary tiles that is known")
        kinds = ("boundary",) if "NoTiles" in tiles else ("boundary", "interior")
        return {kind: self._protocol(head + parts[kind], "InteriorTiles", resident=True) for kind in kinds}

    def _protocol(self, text: str, tiles: str, *, resident: bool) -> Protocol:
        steps = tuple(self._steps(text, tiles))
        wait = _body(self.source, "await_neighbour")
        signal, home = _body(self.source, "signal_neighbours"), _body(self.source, "await_blocks") if resident else ""
        return Protocol(
            _trimmed(steps),
            resident,
            direct=_adjacent(steps),
            acquire="acquire_system(side.local" in wait and _orders(self.source, "acquire_system", "ld.acquire.sys"),
            release="add_system(" in signal and _orders(self.source, "add_system", "red.release.sys"),
            acquire_home="acquire_system(p.arrived)" in home
            and _orders(self.source, "acquire_system", "ld.acquire.sys"),
            release_home=_orders(self.source, "arrive_device", "red.release.gpu"),
            parity="side.local + odd" in wait and "(passed & 1)" in signal,
        )

    def _steps(self, text: str, tiles: str) -> Iterator[Step]:
        for call in CALLS.finditer(text):
            if call["tile"]:
                yield from (Step.READ, Step.WRITE)
                if call["exchange"]:
                    yield Step.PUT
                if _ends_with_barrier(self._tile(call["tile"], tiles)):
                    yield Step.SYNC
            else:
                yield next(Step(kind) for kind in ("wait", "sync", "fence", "put", "signal", "arrive") if call[kind])

    def _tile(self, called: str, tiles: str) -> str:
        """The text of the function that makes a tile, its stages in their place."""
        if called.endswith("_tile"):
            text = _body(self.source, called)
        else:
            text = _body(self.source[self.source.index(f"struct {tiles.partition('<')[0]} {{") :], "advance")
        while (found := TILE.search(text)) is not None:
            text = _body(self.source, found[1])
        return text.replace("tile.stages(", _body(self.source, "stage")) if "tile.stages(" in text else text


def _body(source: str, name: str) -> str:
    """The text of a function between its braces."""
    found = re.search(rf"\b{name}\((?:[^;{{}}]|= \{{\}})*?\) \{{", source)
    if found is None:
        raise ValueError(f"there is no function {name} in the text of a kernel with fused exchange")
    depth, start = 1, found.end()
    for at in range(start, len(source)):
        depth += {"{": 1, "}": -1}.get(source[at], 0)
        if not depth:
            return source[start:at]
    raise ValueError(f"the function {name} has no end")


def _orders(source: str, name: str, instruction: str) -> bool:
    return instruction in _body(source, name)


def _ends_with_barrier(text: str) -> bool:
    """True where a barrier of the block follows the last store of a tile to memory."""
    _, barrier, rest = text.rpartition("__syncthreads();")
    return bool(barrier) and STORES.search(rest) is None


def _adjacent(steps: tuple[Step, ...]) -> bool:
    """True where rows are put within the computation."""
    return (Step.WRITE, Step.PUT) in pairwise(steps)


def _trimmed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Without a barrier or a wait that repeats the one before: waits for counters that only grow."""
    found: list[Step] = []
    for step in steps:
        repeats = step in (Step.SYNC, Step.WAIT) and found[-1:] == [step]
        again = found[-2:] == [Step.WAIT, Step.SYNC] and step is Step.WAIT
        if not repeats and not again:
            found.append(step)
    return tuple(found)
