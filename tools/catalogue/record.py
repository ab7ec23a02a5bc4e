"""The catalogue as a file: one kernel on each line, sorted, so that two changes of it seldom meet."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from catalogue.measure import Entries, Entry

ABOUT = "generated CUDA kernels as NVRTC compiles them; `make catalogue` renews this file"


@dataclass(frozen=True)
class Record:
    """Entries of kernels and the version of NVRTC that said them; `""` where there is no record yet."""

    nvrtc: str
    entries: Entries


def read(path: Path) -> Record:
    """A record; an empty one where there is no file."""
    if not path.exists():
        return Record("", {})
    content = json.loads(path.read_text(encoding="utf-8"))
    return Record(content["nvrtc"], {name: Entry(**entry) for name, entry in content["kernels"].items()})


def written(record: Record) -> str:
    """The text of a record's file."""
    lines = (f"{json.dumps(name)}: {json.dumps(asdict(record.entries[name]))}" for name in sorted(record.entries))
    kernels = ",\n".join(lines)
    return (
        f'{{\n"about": {json.dumps(ABOUT)},\n"nvrtc": {json.dumps(record.nvrtc)},\n"kernels": {{\n{kernels}\n}}\n}}\n'
    )
