"""Machines by name: measured ones, and others from data sheets, which are marked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import Any

from peergrid.costs.families import figures
from peergrid.costs.machine import Calls, Delays, Line, Machine
from peergrid.errors import UsageError

LAUNCH: float = figures()["launch"]
"""Seconds of a launch, as `peergrid.runtime.cuda.calls` measures it, of the host on which calls were calibrated."""


@cache
def bundled() -> Mapping[str, Machine]:
    """The machines that peergrid includes, by name."""
    described = json.loads((files("peergrid.costs") / "machines.json").read_text())
    return {name: _machine(name, given) for name, given in described.items()}


def machine_named(name: str) -> Machine:
    """The machine of a name. Raises UsageError for an unknown name."""
    if name not in bundled():
        raise UsageError(
            f"'{name}' is neither a file nor a machine that is known: give a profile of 'peergrid probe', or one of "
            f"{', '.join(bundled())}."
        )
    return bundled()[name]


def nearest(gpu: str, gpus: int) -> Machine:
    """The bundled machine most similar to one with so many GPUs of that name."""
    known = bundled().values()
    alike = [machine for machine in known if machine.gpu in gpu] or [m for m in known if m.measured]
    return min(alike, key=lambda machine: abs(machine.gpus - gpus))


def _machine(name: str, given: Mapping[str, Any]) -> Machine:
    found = figures()
    lines = {key: Line(*given[key]) for key in ("copy", "store", "host")}
    return Machine(name=name, **{**given, **lines}, calls=Calls(**found["calls"]), delays=Delays(**found["delays"]))


def with_host(machine: Machine, factor: float) -> Machine:
    """The machine with a host whose calls take `factor` times as long."""
    calls = machine.calls
    return replace(
        machine,
        calls=replace(
            calls, launch=calls.launch * factor, event=calls.event * factor, words=calls.words * factor,
            copy=calls.copy * factor, graph=calls.graph * factor,
        ),
    )  # fmt: skip
