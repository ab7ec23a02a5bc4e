"""Streaming with temporal blocking: all steps of a pass in one traversal along axis 0.

A front moves along the rows (planes in 3D) of a tile. At every position the nodes, one for each stage of each step, run
in order, each on the row that lies its *lag* behind the front: the least lag at which every row that it reads is
there. Between its making and its last reading a value lives in a *window*, a rolling buffer of a few rows; so memory
is read and written once per pass, whatever the number of steps.

Method: time skewing along one axis (Wonnacott, IPDPS 2000; "wavefront" blocking), lags from the offsets of the reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from peergrid.codegen.cpu.effort import is_costly
from peergrid.codegen.cpu.lanes import VECTOR
from peergrid.codegen.cpu.prefetch import NOTHING, Traffic
from peergrid.codegen.cpu.rows import RowCode
from peergrid.codegen.cpu.vectors import vector_code
from peergrid.stencil import Growth, Problem, Stage, Update, footprint
from peergrid.stencil.lagged import lagged_fields
from peergrid.stencil.remember import remembered
from peergrid.stencil.rotating import rotating_fields

Kind = Literal[
    "window", "border", "handover", "source", "target", "coefficient", "parameter", "table", "signal", "traces", "sink"
]
Final = Literal["", "inside", "beyond"]


AT_ONCE = 2  # planes that are computed at a time in 3D: neighbouring ones read mostly the same values


@dataclass(frozen=True, slots=True)
class Storage:
    """The place of values: a window by number, a field's block in a slot, or what its kind says.

    A handover is the target slot for cells of the tile, and a window (by number) for those beyond it. A border has
    lines of a window on all planes, which one tile computes and the next one takes.
    """

    kind: Kind
    name: str = ""
    number: int = -1


@dataclass(frozen=True)
class Node:
    """One stage of one step.

    lag: rows behind the front; before, after: where the state fields' values are before and after the stage;
    renamed: the fields whose new values are where another field's old ones are: nothing is written for them;
    rotated: the fields whose old values are where another field's new ones go, each with that other field;
    traffic: what its row functions do about memory, in 3D.
    """

    step: int
    stage: int
    lag: int
    before: Mapping[str, Storage]
    after: Mapping[str, Storage]
    renamed: frozenset[str] = frozenset()
    rotated: Mapping[str, str] = field(default_factory=dict)
    traffic: Traffic = NOTHING

    @cached_property
    def in_place(self) -> Mapping[str, str]:
        """The fields whose old values are overwritten, each with the field of the new ones: most often itself."""
        return {name: name for name, home in self.after.items() if home == self.before[name]} | dict(self.rotated)

    def overwritten(self, targets: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """The pairs of `in_place` whose new values are those of some fields."""
        return tuple(sorted(pair for name in targets for pair in self._pairs.get(name, ())))

    @cached_property
    def _pairs(self) -> Mapping[str, list[tuple[str, str]]]:
        found: dict[str, list[tuple[str, str]]] = {}
        for old, new in self.in_place.items():
            found.setdefault(new, []).append((old, new))
        return found

    @cached_property
    def written(self) -> frozenset[str]:
        """The fields that the stage writes to memory."""
        return frozenset(self.after) - self.renamed

    def kinds(self, name: str) -> set[Kind]:
        """The kinds of places of a field's values before and after; none for a coefficient."""
        return {homes[name].kind for homes in (self.before, self.after) if name in homes}


@dataclass(frozen=True)
class StreamPlan:
    """The nodes in order, and how many rows each window keeps.

    past_cache: the last values are stored past the caches: in 3D by row functions, in other dimensions they stay in
    windows from which they are copied; at_once: rows by which the front moves, so that each node works on as many at a
    time.
    """

    steps: int
    past_cache: bool
    at_once: int
    nodes: tuple[Node, ...]
    depths: tuple[int, ...]


@dataclass
class _Rows:
    """A window while the plan is made: the lags of its first writer and of the oldest row still to be read."""

    first: int
    oldest: int


@dataclass
class _Level:
    """The latest values of a field: where they are, the lag of their writer, the oldest row their readers need."""

    home: Storage
    lag: int | None = None
    oldest: int = 0

    @property
    def handed_over(self) -> bool:
        return self.home.kind in ("target", "handover")


@dataclass
class _Planner:
    problem: Problem
    steps: int
    past_cache: bool
    rotating: Mapping[str, str]
    levels: dict[str, _Level] = field(init=False)
    windows: list[_Rows] = field(default_factory=list)
    unused: list[int] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.levels = {name: _Level(Storage("source", name)) for name in self.problem.state}

    def plan(self) -> StreamPlan:
        for step in range(self.steps):
            for number in range(len(self.problem.stages)):
                self._stage(step, number)
        in_space = self.problem.grid.ndim == 3
        at_once = AT_ONCE if in_space else 1
        depths = tuple(window.oldest - window.first + at_once for window in self.windows)
        nodes = tuple(_with_traffic(self.problem, self.nodes, self.past_cache) if in_space else self.nodes)
        return StreamPlan(self.steps, self.past_cache, at_once, nodes, depths)

    def _stage(self, step: int, number: int) -> None:
        stage = self.problem.stages[number]
        spans = _spans(self.problem, stage)
        lag = max([0] + [self._reached(name, ahead) for name, (_, ahead) in spans.items()])
        lag = max([lag] + [self.levels[name].oldest for name in stage.targets if self.levels[name].handed_over])
        before = {name: level.home for name, level in self.levels.items()}
        free = {name for name in stage.targets if self._may_overwrite(stage, name, lag)}
        for name, (behind, _) in spans.items():
            self._keep(name, lag - behind)
        renamed = self._renamed(step, stage)
        old = {name: replace(self.levels[followed]) for name, followed in renamed.items()}
        for name in stage.targets:
            if name not in renamed:
                free_now = name in free and name not in renamed.values()
                self._write(name, lag, free_now, self._handed_over(step, number, name))
        for name, level in old.items():
            self.levels[name] = level
            self._keep(name, lag)
        after = {name: self.levels[name].home for name in stage.targets}
        rotated = {
            name: one for name, one in self.rotating.items() if name in renamed and after[one] == Storage("target", one)
        }
        self.nodes.append(Node(step, number, lag, before, after, frozenset(renamed), rotated))
        if self.problem.grid.ndim == 1:
            self._release(before, after)

    def _renamed(self, step: int, stage: Stage) -> dict[str, str]:
        """The lagged fields that a stage need not write, each with the field it follows: in the last step those that
        rotate.

        In one dimension windows are used again as soon as their field is replaced: there nothing else is renamed.
        """
        last = step == self.steps - 1
        found = self.rotating if last else {} if self.problem.grid.ndim == 1 else lagged_fields(self.problem)
        return {name: followed for name, followed in found.items() if name in stage.targets}

    def _reached(self, name: str, ahead: int) -> int:
        made = self.levels[name].lag
        return 0 if made is None else made + ahead

    def _keep(self, name: str, lag: int) -> None:
        """The field's values stay until the row at that lag has been read."""
        level = self.levels[name]
        level.oldest = max(level.oldest, lag)
        if level.home.number >= 0:
            window = self.windows[level.home.number]
            window.oldest = max(window.oldest, lag)

    def _may_overwrite(self, stage: Stage, name: str, lag: int) -> bool:
        """True for dead values where the stage writes: all earlier readers are done, it reads its own cell."""
        level = self.levels[name]
        return level.home.kind != "source" and lag >= level.oldest and _reads_own_cell(stage, name)

    def _write(self, name: str, lag: int, free: bool, final: Final) -> None:
        level = self.levels[name]
        if free and (level.handed_over or not final):
            self._keep(name, lag)
            self.levels[name] = _Level(level.home, lag, lag)
        elif final == "inside":
            self.levels[name] = _Level(Storage("target", name), lag, lag)
        elif final == "beyond":
            self.levels[name] = _Level(Storage("handover", name, self._new_window(lag)), lag, lag)
        else:
            self.levels[name] = _Level(Storage("window", number=self._new_window(lag)), lag, lag)

    def _new_window(self, lag: int) -> int:
        if self.unused:
            return self.unused.pop()
        self.windows.append(_Rows(lag, lag))
        return len(self.windows) - 1

    def _release(self, before: Mapping[str, Storage], after: Mapping[str, Storage]) -> None:
        """Windows of values that were replaced. In 1D a node is done with its only row; otherwise they roll on."""
        replaced = {before[name] for name in after} - {level.home for level in self.levels.values()}
        self.unused += sorted(home.number for home in replaced if home.number >= 0)

    def _handed_over(self, step: int, stage: int, name: str) -> Final:
        """True for a stage that writes what is handed over: in the last step, if later stages only work on it in place.

        'inside': only within the tile; 'beyond': others read some of it around the tile. In 3D such values stay in a
        window, from which they are copied: tiles are so narrow there that their borders are most of them.
        """
        later = [s for s in self.problem.stages[stage + 1 :] if name in s.targets]
        waiting = self.past_cache and self.problem.grid.ndim < 3
        if waiting or step < self.steps - 1 or not all(_reads_own_cell(s, name) for s in later):
            return ""
        needed = footprint(self.problem, self.steps).targets[step][stage][name]
        if needed == Growth.none(self.problem.grid.ndim):
            return "inside"
        return "beyond" if self.problem.grid.ndim < 3 else ""


@remembered()
def stream_plan(problem: Problem, steps: int, past_cache: bool = False, rotate: bool = False) -> StreamPlan:
    """The plan of a pass of `steps` steps; it holds for every box and tile.

    rotate: memory is that of fields that rotate (see `rotating_fields`), which a pass of one step then does not write.
    """
    rotating = rotating_fields(problem) if rotate and steps == 1 else {}
    return _Planner(problem, steps, past_cache, rotating).plan()


@remembered(1 << 16)
def code_of(
    problem: Problem,
    stage: int,
    update: int,
    in_place: tuple[tuple[str, str], ...] = (),
    renamed: frozenset[str] = frozenset(),
    by_planes: bool = False,
    rows: int = 1,
    traffic: Traffic = NOTHING,
    vector: int = VECTOR,
) -> RowCode:
    """The row function of one update of a stage, but for the fields that are `renamed`.

    in_place: pairs of fields, as `vector_code` has them; by_planes, traffic, vector: as there.
    """
    chosen = problem.stages[stage].updates[update]
    written = replace(chosen, assignments=tuple(a for a in chosen.assignments if a.target not in renamed))
    overwritten = {old: new for old, new in in_place if new in written.targets}
    return vector_code(
        problem, written.assignments, overwritten, rows, traffic=traffic, by_planes=by_planes, vector=vector
    )


def source_rows(problem: Problem, plan: StreamPlan) -> dict[str, int]:
    """For each source slot that is read: the rows from the first that is read to the last."""
    found: dict[str, tuple[int, int]] = {}
    for node in plan.nodes:
        for name, (behind, ahead) in _spans(problem, problem.stages[node.stage]).items():
            home = node.before[name]
            if home.kind == "source":
                oldest, newest = found.get(home.name, (node.lag - behind, node.lag - ahead))
                found[home.name] = max(oldest, node.lag - behind), min(newest, node.lag - ahead)
    return {name: oldest - newest + 1 for name, (oldest, newest) in found.items()}


def _with_traffic(problem: Problem, nodes: Sequence[Node], past_cache: bool) -> Iterator[Node]:
    """The nodes with their traffic: later steps that compute long share in asking for what the first one reads next."""
    foremost = sorted(_foremost(problem, nodes).items())
    costly = [any(is_costly(problem, node.stage, name) for name in node.written) for node in nodes]
    later = [number for number, node in enumerate(nodes) if node.step and costly[number]]
    for number, node in enumerate(nodes):
        share = foremost[later.index(number) :: len(later)] if number in later else []
        early = tuple((name, ahead + node.lag + AT_ONCE) for name, ahead in share)
        past = {name for name in node.written if past_cache and _last_use(problem, nodes, number, name)}
        yield replace(node, traffic=Traffic(frozenset(past), early))


def _foremost(problem: Problem, nodes: Iterable[Node]) -> dict[str, int]:
    """For each field that is read from memory: the planes from the front to the foremost that is read."""
    found: dict[str, int] = {}
    for node in nodes:
        for read in problem.stages[node.stage].reads:
            home = node.before.get(read.field, Storage("coefficient", read.field))
            if home.kind in ("source", "coefficient") and len(problem.fields[home.name].axes) == 3:
                found[home.name] = max(found.get(home.name, -node.lag), read.offset[0] - node.lag)
    return found


def _last_use(problem: Problem, nodes: Sequence[Node], number: int, name: str) -> bool:
    """True if a node writes a field's values to other memory than it reads, and no later one reads most of them."""
    node = nodes[number]
    used = (
        update
        for later in nodes[number + 1 :]
        for update in problem.stages[later.stage].updates
        if 2 * update.box.size > problem.grid.box.size
        and later.before.get(name) == node.after[name]
        and (name in update.targets or any(read.field == name for read in update.reads))
    )
    return node.after[name].kind == "target" and name not in node.in_place.values() and not any(used)


def _spans(problem: Problem, stage: Stage) -> dict[str, tuple[int, int]]:
    """For each state field that a stage reads or carries over: its first and last row relative to the row written."""
    spans, changing = dict.fromkeys(stage.targets, (0, 0)), frozenset(problem.state)
    if problem.grid.ndim == 1:
        return {**{r.field: (0, 0) for u in stage.updates for r in u.reads if r.field in changing}, **spans}
    for update in stage.updates:
        for read in update.reads:
            if read.field in changing:
                behind, ahead = _reach(problem, read.offset[0])
                known = spans.get(read.field, (behind, ahead))
                spans[read.field] = (min(known[0], behind), max(known[1], ahead))
    return spans


def _reach(problem: Problem, offset: int) -> tuple[int, int]:
    """The rows that a read may touch: a mirrored one lies on the other side, one row nearer."""
    if problem.grid.boundary[0] != "reflecting" or offset == 0:
        return offset, offset
    far = abs(offset) - 1
    return min(offset, -far), max(offset, far)


def _reads_own_cell(stage: Stage, name: str) -> bool:
    return all(_overwrites_safely(update, name) for update in stage.readers.get(name, ()))


def _overwrites_safely(update: Update, name: str) -> bool:
    offsets = [read.offset for read in update.reads if read.field == name]
    return name in update.targets and not any(map(any, offsets))
