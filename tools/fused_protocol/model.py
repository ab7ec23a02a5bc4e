"""The protocol of kernels that exchange by themselves, as a small program, and all its executions.

A *tile* stands for a thread block at an end of a device's slab; in every pass it carries out the steps of a `Protocol`.
Its neighbour's tiles there do the same. A tile waits until the counter of its end says that all of the neighbour's
tiles have made the pass before, reads ghost cells and what the tiles of its own device left, writes its cells, stores
them into the neighbour's ghost cells, and adds one to the neighbour's counter.

Memory is weak: threads of a block do their parts in any order that no block barrier forbids, and a store becomes
visible to other tiles at any later moment, in any order with others, but for what fences and releases ask of it. A tile
sees its own stores at once. A load that is no acquire may be made before the wait that precedes it.

`explore` visits every state that can be reached. A fault is a read of another level than the one needed, a read while a
store to the same cell is on its way (it may see either), a store that others may see before the level that it
overwrites is read everywhere, or a state in which nobody can go on before all passes are made.

Since every such encounter is a fault, the moment at which a store is seen needs no choice. Counters only grow, so it
loses no behaviour that they are seen, and waits ended, as soon as they may be: who may go on need not. What is left to
explore is when each tile reads, when it makes steps of which a counter has told before, and when a kernel ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import Any, NamedTuple


class Step(Enum):
    """A part of a tile's pass, by the threads of one block.

    WAIT: one thread awaits the neighbour, and where kernels are resident all tiles of the device; READ, WRITE: of the
    computation; PUT: the rows that the neighbour needs into its ghost cells; FENCE: by every thread, of the system;
    SYNC: the barrier of the block; SIGNAL: one thread adds to the neighbour's counter; ARRIVE: one thread adds to that
    of the device.
    """

    WAIT = "wait"
    READ = "read"
    WRITE = "write"
    PUT = "put"
    FENCE = "fence"
    SYNC = "sync"
    SIGNAL = "signal"
    ARRIVE = "arrive"


COUNTERS = (Step.SIGNAL, Step.ARRIVE)
STORES = (Step.WRITE, Step.PUT, *COUNTERS)


@dataclass(frozen=True)
class Protocol:
    """The steps of a tile in a pass, and the kinds of its memory operations.

    resident: whether one kernel makes all passes, with a barrier of the device's tiles between them; else the end of a
    kernel is that barrier, and all its stores are visible then; direct: whether rows are put from registers, by the
    threads that computed them, rather than read again from memory. acquire, release: of the waits and signals between
    devices; acquire_home, release_home: of those at the device's barrier; parity: whether even and odd passes are
    counted apart.
    """

    steps: tuple[Step, ...]
    resident: bool
    direct: bool = False
    acquire: bool = True
    release: bool = True
    acquire_home: bool = True
    release_home: bool = True
    parity: bool = True


@dataclass(frozen=True)
class Exploration:
    """The number of states that were reached, and the first fault, empty where there is none."""

    states: int
    fault: str


def mutants(protocol: Protocol) -> Iterator[tuple[str, Protocol]]:
    """Every protocol with one thing missing: a step, an order of memory, the parity of counters."""
    for number, step in enumerate(protocol.steps):
        if step is Step.READ:
            continue
        steps = protocol.steps[:number] + protocol.steps[number + 1 :]
        yield f"no {step.value} ({number})", replace(protocol, steps=steps)
    if protocol.acquire:
        yield "no acquire", replace(protocol, acquire=False)
    if protocol.release:
        yield "no release", replace(protocol, release=False)
    if protocol.resident and protocol.acquire_home:
        yield "no acquire at home", replace(protocol, acquire_home=False)
    if protocol.resident and protocol.release_home:
        yield "no release at home", replace(protocol, release_home=False)
    if protocol.parity:
        yield "no parity", replace(protocol, parity=False)
    if Step.FENCE in protocol.steps and protocol.release:
        unfenced = tuple(step for step in protocol.steps if step is not Step.FENCE)
        yield "no fence and no release", replace(protocol, steps=unfenced, release=False)


def explore(protocol: Protocol, devices: int, passes: int = 3, tiles: int = 1, *, ring: bool = False) -> Exploration:
    """Visit every state of so many devices in a chain, or a ring, with so many tiles at each end of a slab."""
    model = _Model(protocol, devices, passes, tiles, ring)
    seen, stack = {start := model.start()}, [start]
    while stack:
        state = stack.pop()
        try:
            nexts = set(model.nexts(state)) - seen
        except _Fault as fault:
            return Exploration(len(seen), str(fault))
        if not nexts and model.stuck(state):
            return Exploration(len(seen), f"nobody goes on: {model.where(state)}")
        seen |= nexts
        stack += nexts
    return Exploration(len(seen), "")


class _Store(NamedTuple):
    """A store on its way: its step and pass, and the stores of the tile that others see before it."""

    step: Step
    level: int
    after: frozenset[tuple[Step, int]]


class _Tile(NamedTuple):
    """A tile's pass, the steps of it that are made (bits), and its stores on their way."""

    level: int = 0
    made: int = 0
    stores: tuple[_Store, ...] = ()


class _State(NamedTuple):
    """Tiles, memory and counters. cells, ghosts: levels by tile and slot; counts: by tile, even and odd."""

    tiles: tuple[_Tile, ...]
    cells: tuple[int, ...]
    ghosts: tuple[int, ...]
    counts: tuple[int, ...]
    home: tuple[int, ...]


class _Fault(Exception):
    """A fault, as a sentence."""


@dataclass(frozen=True)
class _Model:
    """The transitions of a protocol. Tiles are numbered; each has an end, and a partner at the end across."""

    protocol: Protocol
    devices: int
    passes: int
    each: int
    ring: bool

    @cached_property
    def tiles(self) -> list[tuple[int, int, int]]:
        """Device, end and number at that end."""
        ends = [
            (d, side)
            for d in range(self.devices)
            for side in (0, 1)
            if self.ring or 0 <= d + 2 * side - 1 < self.devices
        ]
        return [(d, side, k) for d, side in ends for k in range(self.each)]

    @cached_property
    def partner(self) -> list[int]:
        return [self.tiles.index(((d + 2 * side - 1) % self.devices, 1 - side, k)) for d, side, k in self.tiles]

    @cached_property
    def end(self) -> list[list[int]]:
        """The tiles at the same end, whose counter is that of the first."""
        return [
            [n for n, (e, other, _) in enumerate(self.tiles) if (e, other) == (d, side)] for d, side, _ in self.tiles
        ]

    @cached_property
    def mates(self) -> list[list[int]]:
        """The tiles of the same device."""
        return [[n for n, tile in enumerate(self.tiles) if tile[0] == d] for d, _, _ in self.tiles]

    @cached_property
    def _devices(self) -> list[list[int]]:
        """The tiles of each device that has any."""
        return [mates for n, mates in enumerate(self.mates) if mates[0] == n]

    @cached_property
    def before(self) -> list[int]:
        """For each step the steps of the same pass (bits) that are made before it, whatever the threads."""
        return [self._before(place) for place in range(len(self.protocol.steps))]

    def start(self) -> _State:
        """All cells and ghost cells of the first slot at level 0, nothing in the other."""
        count = len(self.tiles)
        return _State((_Tile(),) * count, (0, -1) * count, (0, -1) * count, (0, 0) * count, (0,) * self.devices)

    def stuck(self, state: _State) -> bool:
        """True where no tile can make a step, though some have passes to make."""
        state = self._seen(state)
        able = any(next(self._ready(state, number), None) is not None for number in range(len(state.tiles)))
        able = able or any(self._may_end(state, mates[0]) for mates in self._devices)
        return not able and any(tile.level < self.passes for tile in state.tiles)

    def where(self, state: _State) -> str:
        """The pass of each tile, in words."""
        named = (f"{self._name(n)} in pass {tile.level}" for n, tile in enumerate(state.tiles))
        return ", ".join(named)

    def nexts(self, state: _State) -> Iterator[_State]:
        """The states one step on: of a tile whose next steps need not wait, if there is one, else of all."""
        state = self._seen(state)
        ready = [(number, list(self._ready(state, number))) for number in range(len(state.tiles))]
        chosen = next((one for one in ready if one[1] and self._prompt(state.tiles[one[0]], one[1])), None)
        for number, places in ready if chosen is None else [chosen]:
            yield from (self._made(state, number, place) for place in places)
        if chosen is None:
            yield from (self._ended(state, mates[0]) for mates in self._devices if self._may_end(state, mates[0]))

    def _prompt(self, tile: _Tile, places: list[int]) -> bool:
        """True where a tile loses nothing by making its next steps at once. Reads it may; so it may by stores of which
        a counter has told already, and by a signal after it came to the barrier at home: others go on meanwhile.
        """
        made = {step for n, step in enumerate(self.protocol.steps) if tile.made >> n & 1}
        late = {
            Step.READ: True,
            Step.PUT: Step.SIGNAL in made,
            Step.WRITE: bool(made & {*COUNTERS}),
            Step.SIGNAL: Step.ARRIVE in made,
        }
        return not any(late.get(self.protocol.steps[place], False) for place in places)

    def _name(self, number: int) -> str:
        d, side, k = self.tiles[number]
        return f"tile {k} of device {d} at its {('low', 'high')[side]} end"

    def _before(self, place: int) -> int:
        steps, step = self.protocol.steps, self.protocol.steps[place]
        if step is Step.SYNC:
            return (1 << place) - 1
        if step is Step.READ and not (
            self.protocol.acquire and (self.protocol.acquire_home or not self.protocol.resident)
        ):
            return 0
        syncs = [n for n in range(place) if steps[n] is Step.SYNC]
        before = (1 << (syncs[-1] + 1)) - 1 if syncs else 0
        mine = {Step.WRITE: (Step.READ,), Step.FENCE: (Step.PUT, Step.WRITE), Step.PUT: (Step.READ,)}.get(step, ())
        if step is Step.PUT and not self.protocol.direct:
            mine = ()
        return before | sum(1 << n for n in range(place) if steps[n] in mine)

    def _ready(self, state: _State, number: int) -> Iterator[int]:
        tile = state.tiles[number]
        if tile.level == self.passes:
            return
        for place, step in enumerate(self.protocol.steps):
            free = not tile.made >> place & 1 and self.before[place] & ~tile.made == 0
            if free and (step is not Step.WAIT or self._may_pass(state, number)):
                yield place

    def _may_pass(self, state: _State, number: int) -> bool:
        """True where the counters let a tile begin its pass."""
        level, at = state.tiles[number].level, 2 * self.end[number][0]
        if self.protocol.parity:
            passed = state.counts[at + (level + 1 & 1)] >= (level + 1) // 2 * self.each
        else:
            passed = state.counts[at] >= level * self.each
        home = state.home[self.tiles[number][0]] >= level * len(self.mates[number])
        return passed and (home or not self.protocol.resident)

    def _made(self, state: _State, number: int, place: int) -> _State:
        """The state after a step of a tile; its stores are on their way."""
        tile, step = state.tiles[number], self.protocol.steps[place]
        stores = tile.stores
        if step is Step.READ:
            self._check_read(state, number)
        elif step in (Step.WRITE, Step.PUT):
            self._check_store(state, number, step)
        if step in STORES:
            stores = (*stores, _Store(step, tile.level, self._after(tile, place)))
        made = tile._replace(made=tile.made | 1 << place, stores=stores)
        return state._replace(tiles=_with(state.tiles, number, made))

    def _check_read(self, state: _State, number: int) -> None:
        level = state.tiles[number].level
        for other in self.end[number]:
            self._check_cell(state, number, self.partner[other], Step.PUT, state.ghosts[2 * other + (level & 1)])
        for other in self.mates[number]:
            if other != number:
                self._check_cell(state, number, other, Step.WRITE, state.cells[2 * other + (level & 1)])

    def _check_cell(self, state: _State, number: int, writer: int, step: Step, found: int) -> None:
        """A read of what another tile stores: at its level, and with no store to it on its way."""
        level = state.tiles[number].level
        coming = any(s.step is step and (s.level + 1 - level) % 2 == 0 for s in state.tiles[writer].stores)
        if coming or found != level:
            what = "a store on its way" if coming else f"level {found}"
            raise _Fault(f"{self._name(number)} meets {what} of {self._name(writer)} ({step.value}) in pass {level}")

    def _check_store(self, state: _State, number: int, step: Step) -> None:
        """A store that may be seen from now on: nobody has still to read the level that it overwrites."""
        level = state.tiles[number].level + 1
        read = 1 << self.protocol.steps.index(Step.READ) if Step.READ in self.protocol.steps else 0
        readers = self.end[self.partner[number]] if step is Step.PUT else self.mates[number]
        for reader in readers:
            tile = state.tiles[reader]
            if tile.level < level - 2 or (tile.level == level - 2 and not tile.made & read):
                raise _Fault(f"{self._name(number)} overwrites what {self._name(reader)} reads in pass {tile.level}")
        if step is Step.PUT and not self.protocol.direct and not self._own(state, number, level):
            raise _Fault(f"{self._name(number)} puts what it has not written in pass {level - 1}")

    def _own(self, state: _State, number: int, level: int) -> bool:
        """True where a tile finds its own cells at a level: seen by all, or on their way."""
        on_way = any(s.step is Step.WRITE and s.level + 1 == level for s in state.tiles[number].stores)
        return on_way or state.cells[2 * number + (level & 1)] == level

    def _after(self, tile: _Tile, place: int) -> frozenset[tuple[Step, int]]:
        """The stores on their way that others see before one that is made at this place of a pass."""
        steps, kind = self.protocol.steps, self.protocol.steps[place]
        home = kind is Step.ARRIVE  # of the device alone: what goes across is no part of its order
        releases = self.protocol.release_home if home else self.protocol.release and kind is Step.SIGNAL
        syncs = [n for n in range(place) if steps[n] is Step.SYNC]
        fences = [n for n in range(place) if steps[n] is Step.FENCE and any(n < sync for sync in syncs)]
        found = set[tuple[Step, int]]()
        for store in tile.stores:
            at = -1 if store.level < tile.level else steps.index(store.step)
            fenced = bool(fences) and at < fences[-1]
            released = releases and bool(syncs) and at < syncs[-1] and not (home and store.step is Step.PUT)
            if fenced or released or store.step is kind:
                found.add((store.step, store.level))
        return frozenset(found)

    def _seen(self, state: _State) -> _State:
        """The state once counters, and what they come after, are seen by all, and passes that may end have ended."""
        moved = True
        while moved:
            moved = False
            for number in range(len(state.tiles)):
                for store in state.tiles[number].stores:
                    if store.step in COUNTERS:
                        state, moved = self._visible(state, number, store), True
                        break
                if self._may_end(state, number) and not self._unseen(state, number):
                    state, moved = self._ended(state, number), True
        return state

    def _visible(self, state: _State, number: int, store: _Store) -> _State:
        """A store that others see from now on, behind those that they see before it."""
        for other in state.tiles[number].stores:
            if (other.step, other.level) in store.after and other in state.tiles[number].stores:
                state = self._visible(state, number, other)
        tile = state.tiles[number]
        left = tuple(s for s in tile.stores if s != store)
        state = state._replace(tiles=_with(state.tiles, number, tile._replace(stores=left)))
        level = store.level + 1
        if store.step is Step.WRITE:
            return state._replace(cells=_with(state.cells, 2 * number + (level & 1), level))
        if store.step is Step.PUT:
            return state._replace(ghosts=_with(state.ghosts, 2 * self.partner[number] + (level & 1), level))
        if store.step is Step.ARRIVE:
            device = self.tiles[number][0]
            return state._replace(home=_with(state.home, device, state.home[device] + 1))
        at = 2 * self.end[self.partner[number]][0] + (store.level & 1 if self.protocol.parity else 0)
        return state._replace(counts=_with(state.counts, at, state.counts[at] + 1))

    def _may_end(self, state: _State, number: int) -> bool:
        """True where a tile's pass is over: in a resident kernel with its last step, else with the whole kernel."""
        everything = (1 << len(self.protocol.steps)) - 1
        parties = (number,) if self.protocol.resident else self.mates[number]
        return all(state.tiles[n].made == everything and state.tiles[n].level < self.passes for n in parties)

    def _unseen(self, state: _State, number: int) -> bool:
        """True where a kernel that ends has stores that others may not see yet."""
        return not self.protocol.resident and any(state.tiles[n].stores for n in self.mates[number])

    def _ended(self, state: _State, number: int) -> _State:
        for other in (number,) if self.protocol.resident else self.mates[number]:
            while not self.protocol.resident and state.tiles[other].stores:
                state = self._visible(state, other, state.tiles[other].stores[0])
            tile = state.tiles[other]
            state = state._replace(tiles=_with(state.tiles, other, tile._replace(level=tile.level + 1, made=0)))
        return state


def _with(items: tuple[Any, ...], place: int, item: object) -> tuple[Any, ...]:
    return (*items[:place], item, *items[place + 1 :])
