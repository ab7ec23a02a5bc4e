"""What is not as recorded, a line for each kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from catalogue.cases import Case
from catalogue.measure import Compiler, Entries, Entry, parts
from catalogue.record import Record

RENEW = "If the change is meant, `make catalogue` renews the record; commit it with the change."


def differences(former: Entries, now: Entries) -> list[str]:
    """A line for every kernel that is new, gone or not as it was."""
    return list(_differences(former, now))


def _differences(former: Entries, now: Entries) -> Iterator[str]:
    for name in sorted(former.keys() | now.keys()):
        if name not in now:
            yield f"{name}: gone"
        elif name not in former:
            entry = now[name]
            yield f"{name}: new, {entry.lines} lines, {entry.registers} registers, {entry.spills} bytes spilled"
        elif former[name] != now[name]:
            yield f"{name}: {_changed(former[name], now[name])}"


def _changed(former: Entry, now: Entry) -> str:
    """What is not as it was, the text only where all else is."""
    names = (field.name for field in fields(Entry) if field.name not in ("text", "bytes"))
    pairs = ((name, getattr(former, name), getattr(now, name)) for name in names)
    found = [f"{name} {before} → {after}" for name, before, after in pairs if before != after]
    return ", ".join(found) or "another text, compiled to the same resources"


def checked(case: Case, record: Record, here: str) -> list[str]:
    """What of a case is not as recorded; resources are compared where the NVRTC `here` is that of the record.

    Nothing is compiled where all texts are as recorded.
    """
    former = {name: entry for name, entry in record.entries.items() if parts(name)[0] == case.name}
    compiler = Compiler(former)
    found = sorted((arch, text.sha256) for arch, text in compiler.texts(case) if text.has_kernels)
    if set(found) == {(parts(name)[1], entry.text) for name, entry in former.items()}:
        return []
    said = differences(former, compiler.entries(case))
    if here != record.nvrtc:
        said.append(f"Texts differ; resources may, too, as the record is of NVRTC {record.nvrtc} and here is {here}.")
    return [*said, RENEW]


def compiled(case: Case, record: Record, arch: str) -> list[str]:
    """The same with all resources for an architecture from the compiler that is here, which has to be the record's."""
    former = {name: entry for name, entry in record.entries.items() if parts(name)[:2] == (case.name, arch)}
    now = Compiler({}).entries(case, (arch,))
    said = differences(former, now)
    return [*said, RENEW] if said else []
