"""`peergrid verify`: prove all schedules of a model, and test the proof by mutation."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.choose import AsJson, ModelFile
from peergrid.cli.verification import Verification, Ways, verify_all
from peergrid.errors import CheckFailed, UsageError
from peergrid.models import read
from peergrid.progress import LINE_EVERY
from peergrid.runtime.devices import parse_devices
from peergrid.schedule.strategies import STRATEGIES
from peergrid.stencil import Problem
from peergrid.verification import target_of

SHOWN = 5  # faults in the text
OUTCOMES = {  # of mutants; docs/verification.md has more on each
    "killed": "both checkers reject it",
    "implied": "right: other operations still enforce the removed order",
    "spare": "right: the conflicting accesses are all still ordered",
    "commutes": "right: the exchanged operations give the same values",
    "unused": "right: no expression uses the missing cells",
}
PER_KIND = 1  # mutants of each kind on every schedule


def verify(
    model: ModelFile,
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="NAME", help="Check one strategy (default: all).")
    ] = None,
    devices: Annotated[
        str | None,
        typer.Option(
            "--devices", metavar="SPEC", help="cpu:N, a count, or GPUs such as cuda:0,1 (default: 1, 2, 3, 4, 7)."
        ),
    ] = None,
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="R", help="Check one depth (default: 1, 2, 3, 5 and 8).")
    ] = None,
    mutants: Annotated[
        bool, typer.Option("--mutants", help="Test the checkers: they must reject schedules with one fault each.")
    ] = False,
    balanced: Annotated[
        bool, typer.Option("--balanced", help="Use the slabs of GPU runs: thinner where cells cost more.")
    ] = False,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="Run a few iterations on the devices, and check what they did.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Prove that no schedule of a model has a race, a stale read or a deadlock, with two independent checkers.

    For GPUs the lowered schedule is checked, which is what GPUs run; no GPU is needed.
    All schedules take about twenty seconds, with --mutants a minute; name a strategy or a depth for fewer.
    With --recorded, schedules run on the devices (default: all) and a record of what these did is checked.
    """
    if recorded:
        if mutants or balanced:
            raise UsageError(
                "'--recorded' checks real runs of schedules as they are; leave out '--mutants' and '--balanced'."
            )
        _record(model, strategy, devices, depth, as_json=as_json)
        return
    ways = _schedules(strategy, devices, depth, mutants=mutants)
    steps = read(model).build().steps
    progress = (lambda *_: None) if as_json else Count()
    found = verify_all(partial(_problem, model), replace(ways, steps=steps, balanced=balanced), progress)
    typer.echo(json.dumps(_contract(found), indent=2) if as_json else _text(found))
    if not found.holds:
        raise CheckFailed(found.faults[0])


def _record(model: Path, strategy: str | None, devices: str | None, depth: int | None, *, as_json: bool) -> None:
    from peergrid.recorded import TIMES, judged  # imports compilers, which is slow

    ways = _schedules(strategy, None, depth, mutants=False)
    found = judged(_problem(model), parse_devices(devices or "auto"), ways.strategies, ways.depths)
    text = f"{found.schedules} schedules run {TIMES} times on {found.devices}, {found.operations} operations recorded"
    lines = [text, *found.notes, f"{len(found.faults)} faults", *_first(found.faults)]
    typer.echo(json.dumps(asdict(found), indent=2) if as_json else "\n".join(lines))
    if found.faults:
        raise CheckFailed(found.faults[0])


def _problem(model: Path) -> Problem:
    return read(model).build().problem


def _schedules(strategy: str | None, devices: str | None, depth: int | None, *, mutants: bool) -> Ways:
    usual = Ways()
    if strategy is not None and strategy not in STRATEGIES:
        raise UsageError(f"A strategy is one of {', '.join(STRATEGIES)}, got '{strategy}'.")
    if depth is not None and depth < 1:
        raise UsageError(f"'--depth' takes a whole number above 0, got {depth}.")
    target = None if devices is None else target_of(devices)
    return Ways(
        devices=usual.devices if target is None else (target.devices,),
        strategies=tuple(name for name in STRATEGIES if strategy in (None, name)),
        depths=usual.depths if depth is None else (depth,),
        mutants=PER_KIND if mutants else None,
        ordinals=() if target is None else target.ordinals,
    )


def _contract(found: Verification) -> dict[str, object]:
    """The object of `--json`, without the figures of mutants if none were tried."""
    return {key: value for key, value in asdict(found).items() if value is not None}


class Count:
    """Progress on standard error: on a terminal one line that changes, elsewhere a line now and then."""

    def __init__(self) -> None:
        self._said = time.monotonic()

    def __call__(self, done: int, all_: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {all_} cases", end="\n" if done == all_ else "", file=sys.stderr, flush=True)
        elif time.monotonic() - self._said >= LINE_EVERY:
            self._said = time.monotonic()
            print(f"{done} of {all_} cases", file=sys.stderr, flush=True)


def _text(found: Verification) -> str:
    lines = [
        f"{found.schedules} schedules, {found.ops} operations",
        f"{found.races} races, {found.stale_reads} stale reads, {found.deadlocks} deadlocks",
    ]
    if found.mutants is not None:
        lines.append(
            f"{found.mutants} mutants: {found.killed} rejected by both checkers, {found.redundant} as right as "
            "the original, "
            f"{found.disagreements} on which the checkers disagree"
        )
        lines += [f"  {number:6d} {outcome_in_words(outcome)}" for outcome, number in sorted(found.outcomes.items())]
    lines += [f"lowered for GPUs: {passes}" for passes in found.passes or ()]
    return "\n".join([*lines, *_first(found.faults)])


def outcome_in_words(outcome: str) -> str:
    """The name of an outcome, and its meaning."""
    return f"{outcome}: {OUTCOMES[outcome]}" if outcome in OUTCOMES else outcome


def _first(faults: tuple[str, ...]) -> list[str]:
    """The first faults, and the number of others."""
    more = len(faults) - SHOWN
    return [*faults[:SHOWN], *([f"and {more} more"] if more > 0 else [])]
