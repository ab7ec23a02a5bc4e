"""The protocol of kernels with fused exchange, read from their text: what is explored is what is compiled.

Calls are taken in the order of the text. Raises ValueError where it has another shape than the one known here, so that
no text goes unseen.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from peergrid.schedule.protocol import Protocol, Step

CALLS = re.compile(
    r"\b(?P<wait>pg_meet|pg_begin(?=\(links, turns))\("
    r"|\b(?P<sync>__syncthreads|__syncwarp)\(\)"
    r"|\b(?P<fence>__threadfence_system)\("
    r"|\b(?P<tile>\w+_tile)\(a, (?P<links>links, )?tile"
    r"|\b(?P<put>pg_deliver)\("
    r"|\b(?P<signal>pg_tell)\("
    r"|\b(?P<arrive>pg_come_here)\("
)
BRANCH = re.compile(
    r"if \(unit < turns\.edge_count\) \{(?P<edge>.*?)\n        continue;\n      \}(?P<plain>.*)", re.DOTALL
)
TEMPLATE = re.compile(r"\b(\w+_tile)<")
STORES = re.compile(r"slot\[target\]|\.stages\(")
LOOP = "for (long long unit"
FIRST_LOOP = "for (long long pass"


@dataclass(frozen=True)
class KernelText:
    """The text of a program and the kernel in it."""

    source: str
    entry: str

    def protocols(self) -> dict[str, Protocol]:
        """The protocol of each kind of tile that the kernel makes."""
        body = _body(self.source, self.entry)
        if LOOP not in body:
            return {"tiles": self._protocol(body, resident=False)}
        head, units = body[body.index(FIRST_LOOP) :].split(LOOP, 1)
        found = BRANCH.search(units)
        if found is None:
            raise ValueError(f"kernel {self.entry} has no branch for boundary tiles that is known")
        kinds = {kind: found[kind] for kind in ("edge", "plain") if CALLS.search(found[kind])}
        return {kind: self._protocol(head + text, resident=True) for kind, text in kinds.items() if "_tile(" in text}

    def _protocol(self, text: str, *, resident: bool) -> Protocol:
        steps = tuple(self._steps(text))
        wait = _body(self.source, "pg_patient")
        tell, home = _body(self.source, "pg_tell"), _body(self.source, "pg_gather") if resident else ""
        return Protocol(
            _trimmed(steps),
            resident,
            direct=_adjacent(steps),
            acquire="pg_acquire(link.mine" in wait and _orders(self.source, "pg_acquire", "ld.acquire.sys"),
            release="pg_add(" in tell and _orders(self.source, "pg_add", "red.release.sys"),
            acquire_home="pg_acquire(turns.arrived)" in home and _orders(self.source, "pg_acquire", "ld.acquire.sys"),
            release_home=_orders(self.source, "pg_come_here", "red.release.gpu"),
            parity="link.mine + odd" in wait and "(passed & 1)" in tell,
        )

    def _steps(self, text: str) -> Iterator[Step]:
        for call in CALLS.finditer(text):
            if call["tile"]:
                yield from (Step.READ, Step.WRITE)
                if call["links"]:
                    yield Step.PUT
                if _ends_with_barrier(_tile(self.source, call["tile"])):
                    yield Step.SYNC
            else:
                yield next(Step(kind) for kind in ("wait", "sync", "fence", "put", "signal", "arrive") if call[kind])


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


def _tile(source: str, name: str) -> str:
    """The text of the function that advances a tile: that of a template, where another calls it."""
    text = _body(source, name)
    called = TEMPLATE.search(text)
    return text if called is None else _body(source, called[1])


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
