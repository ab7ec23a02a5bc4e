"""Schedules to JSON and back, and their hash. Only types of a fixed table are created; nothing is imported by name."""

from __future__ import annotations

import hashlib
import json
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from peergrid.errors import UsageError
from peergrid.grid import Box
from peergrid.schedule.build import Options, Schedule
from peergrid.schedule.ops import (
    Compute,
    Copy,
    DeviceBarrier,
    Event,
    Flag,
    HostBarrier,
    Queue,
    Receive,
    Record,
    Reduce,
    Semaphore,
    Send,
    SignalOp,
    SignalWait,
    Sync,
    Wait,
    WrappedCompute,
)
from peergrid.schedule.pass_plan import Due

VERSION = 2
KINDS: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        *(Schedule, Due, Options, Box, Queue, Event, Flag, Semaphore),
        *(Compute, WrappedCompute, Reduce, Copy, Send, Receive),
        *(Record, Wait, SignalOp, SignalWait, Sync, HostBarrier, DeviceBarrier),
    )
}
FORMER = {"Raise": "SignalOp", "Await": "SignalWait"}
"""Names that operations had in files written before; these are still read."""
HINTS = {kind: get_type_hints(kind) for kind in KINDS.values()}


def to_json(schedule: Schedule) -> str:
    """The schedule as JSON text; the same schedule gives the same text."""
    return json.dumps({"version": VERSION, "schedule": _encode(schedule)}, separators=(",", ":"))


def from_json(text: str) -> Schedule:
    """The schedule that `to_json` wrote. Raises UsageError for any other text."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"A schedule is expected as JSON, got text that is none: {error}.") from None
    if not isinstance(found, dict) or found.get("version") != VERSION:
        raise UsageError(f"A schedule file of version {VERSION} is expected; write it anew with this peergrid.")
    schedule = _decode(found.get("schedule"))
    if not isinstance(schedule, Schedule):
        raise UsageError(f"A schedule file holds a Schedule, got {type(schedule).__name__}.")
    return schedule


def digest(schedule: Schedule) -> str:
    """The SHA-256 of the schedule's JSON text, as hexadecimal digits."""
    return hashlib.sha256(to_json(schedule).encode()).hexdigest()


def _encode(value: object) -> object:
    kind: Any = type(value)
    if names := _names(kind):
        return {"is": kind.__name__, **{name: _encode(getattr(value, name)) for name in names}}
    return [_encode(item) for item in value] if isinstance(value, tuple) else value


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind)) if is_dataclass(kind) else ()


def _decode(value: object) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    tag = value.get("is")
    kind = KINDS.get(FORMER.get(tag, tag)) if isinstance(tag, str) else None
    if kind is None:
        raise UsageError(f"A schedule file holds {', '.join(KINDS)}, got '{tag}'.")
    given = {name: _decode(item) for name, item in value.items() if name != "is"}
    if given.keys() != HINTS[kind].keys():
        raise UsageError(f"{tag} in a schedule file has {', '.join(HINTS[kind])}, got {', '.join(given)}.")
    for name, hint in HINTS[kind].items():
        if not _fits(given[name], hint):
            raise UsageError(f"'{name}' of {tag} in a schedule file is expected as {hint}, got {given[name]!r}.")
    return kind(**given)


def _fits(value: object, hint: Any) -> bool:
    """True for a value of a type hint of the table's types."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in arguments
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(item, arguments[0]) for item in value)
    if hint is None or hint is NoneType:
        return value is None
    return isinstance(value, hint) and (hint is not int or not isinstance(value, bool))
