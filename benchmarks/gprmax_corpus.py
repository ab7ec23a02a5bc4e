"""Which input files of gprMax are read whole, and which are refused, by command: a table as JSON.

Usage: benchmarks/gprmax_corpus.py FOLDER... [-o FILE] [--cells N] [--about TEXT]

The folders are those of gprMax's package and of its public repository, their blocks of Python expanded before by
`benchmarks/gprmax_expand.py`. Files with the same text count once, files for gprMax 2 apart. Models of at most N cells
are rasterised and made into a problem too; nothing is run.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from math import prod
from pathlib import Path

from peergrid.bench.commit import commit
from peergrid.errors import PeergridError
from peergrid.gprmax import read
from peergrid.gprmax.table import TABLE, Noted, Refused

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


def command_of(sentence: str) -> str:
    """The command that a sentence refuses; the sentence itself where it names none."""
    if "blocks of Python" in sentence:
        return "#python"
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
        "refused_by": dict(Counter(command_of(e) for e in ends.values() if e not in WHOLE).most_common()),
        "commands": by_command(ends),
        "ends": {"/".join(path.parts[-3:]): end for path, end in ends.items()},
    }
    print(json.dumps({key: value for key, value in record.items() if key not in ("commands", "ends")}, indent=1))
    if given.output is not None:
        given.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
