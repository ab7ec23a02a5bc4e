"""Copies of input files of gprMax with their blocks of Python replaced by the commands that they print.

Usage: PYTHON benchmarks/gprmax_expand.py FROM TO [--path FOLDER]... [--alias NAME=MODULE]...

PYTHON: an interpreter of an environment with gprMax. The blocks are executed: run this on files that you trust, outside
peergrid, which never does. Folders of --path come first where a block imports; an alias stands for a module that
has moved. Everything else in FROM is copied as it is.
"""

from __future__ import annotations

import argparse
import importlib
import io
import re
import shutil
import sys
from contextlib import redirect_stdout
from math import pi, sqrt
from pathlib import Path

BLOCK = re.compile(r"^#python:.*?^#end_python:[^\n]*\n?", re.MULTILINE | re.DOTALL)
LIGHT, MU_0 = 299_792_458.0, 4e-7 * pi


def expanded(text: str, file: Path) -> str:
    """The text with what its blocks print instead of them: the lines that begin with #."""
    names = {
        "c": LIGHT, "e0": 1 / (MU_0 * LIGHT**2), "m0": MU_0, "z0": sqrt(MU_0**2 * LIGHT**2),
        "current_model_run": 1, "number_model_runs": 1, "inputfile": str(file),
    }  # fmt: skip

    def printed(block: re.Match[str]) -> str:
        lines, out = block[0].splitlines()[1:-1], io.StringIO()
        with redirect_stdout(out):
            exec("\n".join(lines), names)
        return "".join(line + "\n" for line in out.getvalue().splitlines() if line.startswith("#"))

    return BLOCK.sub(printed, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--path", action="append", default=[], help="a folder to import from")
    parser.add_argument("--alias", action="append", default=[], metavar="NAME=MODULE", help="another name of a module")
    given = parser.parse_args()
    sys.path[:0] = given.path
    for alias in given.alias:
        name, module = alias.split("=")
        sys.modules[name] = importlib.import_module(module)
    shutil.copytree(given.source, given.target)
    for file in sorted(given.target.rglob("*.in")):
        text = file.read_text(errors="replace")
        if BLOCK.search(text):
            try:
                file.write_text(expanded(text, file))
            except Exception as error:  # what a block does is not known
                print(f"{file}: left as it is: {type(error).__name__}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main()
