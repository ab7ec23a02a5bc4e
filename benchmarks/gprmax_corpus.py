"""Which input files of gprMax are read whole, and which are refused, by command: a table as JSON.

Usage: benchmarks/gprmax_corpus.py FOLDER... [-o FILE] [--cells N] [--about TEXT]

The folders are those of gprMax's package and of its public repository, their blocks of Python expanded before by
`benchmarks/gprmax_expand.py`. Files with the same text count once, files for gprMax 2 apart. Models of at most N cells
are rasterised and made into a problem too; nothing is run. What is read whole is written as a model file, which is read
again; of models of at most N cells both have the same media at every node, and the same of everything else.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import UTC, datetime
from math import prod
from pathlib import Path

import numpy as np

from peergrid.bench.commit import commit
from peergrid.errors import PeergridError
from peergrid.gprmax import InputModel, read
from peergrid.gprmax.table import TABLE, Noted, Refused
from peergrid.models import modelfile
from peergrid.models.fdtd3d import Domain

WHOLE = ("built", "read")
VERSION_2 = "it is of gprMax 2;"


def outcome(path: Path, most: int) -> str:
    """The way a file ends: built, read (too large to build here), or its sentence."""
    try:
        model = read(path)
        if prod(model.shape) > most:
            return "read"
        model.build()
    except PeergridError as error:
        return str(error)
    return "built"


def converted(path: Path, most: int) -> str:
    """The way a file ends as a model file: the same, read (too large to compare here), or its sentence."""
    model = read(path)
    try:
        again = modelfile.parse(model.written(path.parent)[0], path.parent)
    except PeergridError as error:
        return str(error)
    assert isinstance(again, InputModel)
    if prod(model.shape) > most:
        return "read"
    return "same" if alike(model.domain, again.domain) else "another"


def alike(one: Domain, two: Domain) -> bool:
    """True where two domains are the same, waveforms by their samples."""
    names = [field.name for field in fields(Domain) if field.name not in ("ids", "sources")]
    if any(getattr(one, name) != getattr(two, name) for name in names) or not np.array_equal(one.ids, two.ids):
        return False
    for a, b in zip(one.sources, two.sources, strict=True):
        pair = [source.drive.samples(one.steps, one.dt, half=half) for half in (True, False) for source in (a, b)]
        if replace(a, drive=b.drive) != b or not (np.array_equal(*pair[:2]) and np.array_equal(*pair[2:])):
            return False
    return True


def command_of(sentence: str) -> str:
    """The command that a sentence refuses; the sentence itself where it names none."""
    found = re.search(r"#\w+", sentence)
    return found[0] if found else sentence


def by_command(models: Mapping[Path, str]) -> dict[str, dict[str, int | str]]:
    """For each command that models have: in how many, of these read whole, and what is done with it."""
    found: dict[str, dict[str, int | str]] = {}
    for path, end in models.items():
        for name in set(re.findall(r"^#(\w+):", path.read_text(errors="replace"), re.MULTILINE)):
            row = found.setdefault(f"#{name}", {"models": 0, "whole": 0, "done": done(name)})
            row["models"] = int(row["models"]) + 1
            row["whole"] = int(row["whole"]) + (end in WHOLE)
    return dict(sorted(found.items(), key=lambda pair: (-int(pair[1]["models"]), pair[0])))


def done(name: str) -> str:
    """What is done with a command."""
    entry = TABLE.get(name)
    if isinstance(entry, Refused) or (entry is None and name != "include_file"):
        return "refused"
    return "passed over with a note" if isinstance(entry, Noted) else "carried out"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--cells", type=int, default=2_000_000)
    parser.add_argument("--about", default="", help="the versions that the files are of")
    given = parser.parse_args()
    models = {
        p.read_bytes(): p for folder in given.folders for p in sorted(folder.rglob("*.in")) if p.name != "MANIFEST.in"
    }
    ends = {path: outcome(path, given.cells) for path in models.values()}
    old = [path for path, end in ends.items() if VERSION_2 in end]
    ends = {path: end for path, end in ends.items() if path not in old}
    whole = sum(end in WHOLE for end in ends.values())
    as_tables = {path: converted(path, given.cells) for path, end in ends.items() if end in WHOLE}
    record = {
        "command": "benchmarks/gprmax_corpus.py FOLDERS",
        "about": given.about,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "models": len(ends),
        "whole": whole,
        "share": round(whole / max(1, len(ends)), 4),
        "built": sum(end == "built" for end in ends.values()),
        "for_gprmax_2": len(old),
        "converted": sum(end in ("same", "read") for end in as_tables.values()),
        "converted_compared": sum(end == "same" for end in as_tables.values()),
        "not_converted": {path.name: end for path, end in as_tables.items() if end not in ("same", "read")},
        "refused_by": dict(Counter(command_of(e) for e in ends.values() if e not in WHOLE).most_common()),
        "commands": by_command(ends),
        "ends": {"/".join(path.parts[-3:]): end for path, end in ends.items()},
    }
    print(json.dumps({key: value for key, value in record.items() if key not in ("commands", "ends")}, indent=1))
    if given.output is not None:
        given.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
