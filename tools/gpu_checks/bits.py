"""The same bits everywhere: every problem, device list, strategy, depth, route and order against the CPU's digest.

Cases are worked off by several processes that share the GPUs and one disk cache of kernels, the most telling first.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from itertools import chain, product
from typing import Any

from gpu_checks.pool import work_off
from gpu_checks.problems import CHECKED, NORMED
from gpu_checks.report import Case, Report

STEPS = 23
DEPTHS: tuple[tuple[int, int | None], ...] = ((1, None), (8, None), (12, None), (3, 1))
"""Steps between exchanges, and steps per pass (None: as many as suit)."""
ROUTES = (None, "copy", "store", "host")
ORDERS = (("all", False), ("pairwise", True), ("left-right", False))
SHARED = (4, 8)
"""Numbers of devices that are looked at even where there are fewer GPUs."""
ENOUGH = 15.0  # seconds that are left for the last cases when no more are begun


@dataclass(frozen=True)
class Run:
    """One run to compare. devices: GPU numbers, counted from whichever GPU the worker begins with."""

    problem: str
    devices: tuple[int, ...]
    strategy: str
    depth: int = 1
    block: int | None = None
    route: str | None = None
    order: str = "all"
    separate: bool = False

    @property
    def rank(self) -> int:
        """How late it comes."""
        if self.route is None and (self.order, self.separate) == ORDERS[0]:
            return 0 if (self.depth, self.block) in DEPTHS[:2] else 1
        return 2 if self.route is None or (self.order, self.separate) == ORDERS[0] else 3

    @property
    def group(self) -> str:
        return f"{self.problem} cuda:{','.join(map(str, self.devices))} {self.strategy}"

    @property
    def name(self) -> str:
        block = "" if self.block is None else f" by {self.block}"
        words = [f"depth {self.depth}{block}", f"route {self.route}" if self.route else "", self.order]
        return " ".join([self.group, *filter(None, words), *(["separate"] if self.separate else [])])


def device_lists(counts: list[int]) -> list[tuple[int, ...]]:
    """One GPU, one GPU twice, several; four and eight devices where there are fewer GPUs, which take turns."""
    lists = [tuple(range(n)) for n in counts]
    most = counts[-1]
    shared = [tuple(n % most for n in range(count)) for count in SHARED if count > most]
    return [lists[0], (0, 0), *lists[1:], *shared]


def matrix(lists: list[tuple[int, ...]], strategies: tuple[str, ...]) -> list[Run]:
    """All runs: first every strategy at depth 1 and 8, then every depth, then every route and order, then all of all.

    A single device exchanges nothing: it has neither route nor order. Many devices on few GPUs are there for their
    schedules: they leave the route open. Neighbours in the list need different kernels, so that processes compile
    different ones at the same time.
    """
    runs: list[tuple[int, Run]] = []
    for devices in lists:
        crowded = len(devices) > max(2, len(set(devices)))
        routes = ROUTES if len(devices) > 1 and not crowded else ROUTES[:1]
        orders = ORDERS if len(devices) > 1 else ORDERS[:1]
        ways = product(strategies, DEPTHS, routes, orders, CHECKED)
        for place, (strategy, depth, route, order, name) in enumerate(ways):
            runs.append((place, Run(name, devices, strategy, *depth, route, *order)))
    return [run for _, run in sorted(runs, key=lambda placed: (placed[1].rank, placed[0]))]


def bits(report: Report, counts: list[int]) -> None:
    """The whole matrix, as far as time allows; what an earlier record has is not done again."""
    _compare(report, matrix(device_lists(counts), _strategies()), counts[-1])


def smoke(report: Report, counts: list[int]) -> None:
    """One small problem under every strategy, on one GPU and on one GPU twice."""
    lists = device_lists(counts[:1])[:2]
    runs = [run for run in matrix(lists, _strategies()) if (run.problem, run.rank) == ("jacobi", 0)]
    _compare(report, runs, counts[-1], shown=True)


def _compare(report: Report, runs: list[Run], gpus: int, shown: bool = False) -> None:
    workers = max(2, min(20, (os.cpu_count() or 2) // 3))
    tasks: list[tuple[str, Any]] = [(f"reference {name}", name) for name in dict.fromkeys(run.problem for run in runs)]
    tasks += [(run.name, (run, gpus)) for run in runs]
    earlier = known(report.earlier, [name for name, _ in tasks])
    before = {case["case"] for case in earlier}
    expected, found = _References(), _Groups(runs)
    left_over = [task for task in tasks if task[0] not in before]
    for case in chain(earlier, work_off(left_over, carry, workers, report.deadline - ENOUGH)):
        for done in expected.judged(case):
            report.add(done, shown)
            if not shown:
                found.add(done)
    left = len(runs) - sum(not case["case"].startswith("reference") for case in report.cases)
    if left:
        first = sum(run.rank == 0 for run in runs) > len(runs) - left
        said = {"not_run": left, "of": len(runs)}
        report.add({"case": "time was up", "ok": not first, "wall_s": 0.0, **said})


def known(cases: list[Case], names: list[str]) -> list[Case]:
    """What an earlier record holds of some cases, references first: those that failed are left in it, for they did."""
    good = {case["case"].split()[1] for case in cases if case["case"].startswith("reference") and case["ok"]}
    kept = [case for case in cases if case["case"] in set(names) and _problem(case) in good]
    return sorted(kept, key=lambda case: not case["case"].startswith("reference"))


def _problem(case: Case) -> str:
    words: list[str] = case["case"].split()
    return words[1] if words[0] == "reference" else words[0]


class _References:
    """Holds cases back until the digest to compare them with is there."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._waiting: list[Case] = []

    def judged(self, case: Case) -> Iterator[Case]:
        """The cases that can be judged now."""
        if case["case"].startswith("reference") and case["ok"]:
            self._digests[_problem(case)] = case["sha256"]
        self._waiting.append(case)
        ready = [c for c in self._waiting if not c["ok"] or self._of(c) is not None]
        self._waiting = [c for c in self._waiting if c not in ready]
        yield from (self._judged(c) for c in ready)

    def _of(self, case: Case) -> str | None:
        return self._digests.get(_problem(case))

    def _judged(self, case: Case) -> Case:
        if not case["ok"] or case["sha256"] == self._of(case):
            return case
        said = f"sha256 {case['sha256'][:12]} differs from the CPU's {str(self._of(case))[:12]}"
        return {**case, "ok": False, "error": said}


class _Groups:
    """Prints a line when all runs of a problem, device list and strategy are done."""

    def __init__(self, runs: list[Run]) -> None:
        self._group = {run.name: run.group for run in runs}
        self._left = Counter(self._group.values())
        self._good: Counter[str] = Counter()
        self._all = Counter(self._left)

    def add(self, case: Case) -> None:
        group = self._group.get(case["case"])
        if group is None:
            return
        self._left[group] -= 1
        self._good[group] += case["ok"]
        if not self._left[group]:
            good, every = self._good[group], self._all[group]
            print(f"{'ok  ' if good == every else 'FAIL'} {group}: {good} of {every} have the CPU's bits", flush=True)


# In a worker ----------------------------------------------------------------------------------------------------------


def carry(worker: int, task: Any) -> Case:
    """A reference on the CPU, or a run on GPUs: its digest."""
    from peergrid import Options, Simulation
    from peergrid.runtime.devices import Devices

    if isinstance(task, str):
        given = {"devices": "cpu:1", "options": Options("serial"), "kernel": "reference", "norm": NORMED.get(task)}
        with Simulation(CHECKED[task](), STEPS, **given) as run:
            run.run(STEPS)
            return {"sha256": _digest(run, task)}
    wanted, gpus = task
    start = worker % gpus if len(set(wanted.devices)) < gpus else 0
    ordinals = tuple((start + n) % gpus for n in wanted.devices)
    for ordinal in set(ordinals):
        _keep(ordinal)
    options = Options(**{key: value for key, value in asdict(wanted).items() if key not in ("problem", "devices")})
    given = {"devices": Devices("cuda", ordinals), "options": options, "norm": NORMED.get(wanted.problem)}
    began = time.perf_counter()
    with Simulation(CHECKED[wanted.problem](), STEPS, **given) as run:
        ready = time.perf_counter()
        run.run(STEPS - 3)
        run.run(3)
        digest, notes = _digest(run, wanted.problem), run.notes
    return {"sha256": digest, "setup_s": round(ready - began, 3), **({"notes": notes} if notes else {})}


def _digest(run: Any, problem: str) -> str:
    """Of the last state and, where they belong to it, of the norms of all steps or of what reductions found."""
    state: str = run.sha256()
    more = [run.norms()] if problem in NORMED else [series.values for series in run.reductions().values()]
    return sha256(b"".join((state.encode(), *(values.tobytes() for values in more)))).hexdigest() if more else state


@cache
def _keep(ordinal: int) -> None:
    """Hold a GPU's context, which every run would otherwise make anew."""
    from peergrid.runtime.cuda.device.driver import CudaDriver

    CudaDriver().retain(ordinal)


def _strategies() -> tuple[str, ...]:
    from peergrid.schedule.strategies import STRATEGIES

    return tuple(STRATEGIES)
