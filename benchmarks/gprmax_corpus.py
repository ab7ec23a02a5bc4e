"""Which input files of gprMax are read whole, and which are refused, by command: a table as JSON.

Usage: benchmarks/gprmax_corpus.py FOLDER... [-o FILE] [--cells N] [--about TEXT]

The folders are those of gprMax's package and of its public repository; files with the same text count once. Models of
at most N cells are rasterised and made into a problem too; nothing is run.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from datetime import UTC, datetime
from math import prod
from pathlib import Path

from peergrid.bench.commit import commit
from peergrid.errors import PeergridError
from peergrid.gprmax import read


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
    ends = {"/".join(path.parts[-3:]): outcome(path, given.cells) for path in models.values()}
    whole = sum(end in ("built", "read") for end in ends.values())
    record = {
        "command": "benchmarks/gprmax_corpus.py FOLDERS",
        "about": given.about,
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
        "files": len(ends),
        "whole": whole,
        "built": sum(end == "built" for end in ends.values()),
        "refused_by": dict(Counter(command_of(e) for e in ends.values() if e not in ("built", "read")).most_common()),
        "models": ends,
    }
    print(json.dumps({key: value for key, value in record.items() if key != "models"}, indent=1))
    if given.output is not None:
        given.output.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
