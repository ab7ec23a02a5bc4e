"""Model files: TOML in, a checked `RadarModel` out. `docs/model-files.md` explains every key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peergrid.errors import UsageError
from peergrid.io.schema import read_table
from peergrid.models.fdtd.check import check
from peergrid.models.fdtd.model import RadarModel
from peergrid.models.files import read_plain, reason
from peergrid.models.rule import shown

LARGEST = 1 << 24  # bytes of a model file

GPRMAX = re.compile(
    r"^#(domain|dx_dy_dz|time_window|material|waveform|hertzian_dipole|rx|box|cylinder): ", re.MULTILINE
)
"""A line of a model file for gprMax; to TOML it is a comment."""


def read(path: Path | str) -> RadarModel:
    """The model of a file. Files that it names are looked for beside it.

    Raises UsageError, one sentence that starts with the file's name.
    """
    file = Path(path)
    try:
        return parse(_text(file), file.parent)
    except UsageError as error:
        raise UsageError(f"{file.name}: {error}") from None


def parse(text: str, folder: Path = Path()) -> RadarModel:
    """The model of a file's text; `folder` is where the files that it names are looked for."""
    if command := GPRMAX.search(text):
        raise UsageError(
            f"A model file is expected to be TOML with tables such as [grid], got gprMax's command '#{command[1]}'; "
            "write its keys instead: docs/model-files.md says which."
        )
    try:
        table = tomllib.loads(text)
        _check_plane(table)
        model = read_table(RadarModel, _beside(table, folder))
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"A model file is expected to be TOML, got a line that is none: {shown(str(error), 200)}; correct it."
        ) from None
    except ValueError:  # of Python itself, about a whole number of thousands of digits
        raise UsageError(
            "A model file is expected to hold numbers that can be read, got one of thousands of digits; shorten it."
        ) from None
    except RecursionError:
        raise UsageError(
            "A model file is expected to hold tables and lists, got some nested too deep; flatten them."
        ) from None
    check(model)
    return model


def _check_plane(table: Mapping[str, Any]) -> None:
    size = table["grid"].get("size") if isinstance(table.get("grid"), Mapping) else None
    if isinstance(size, list) and len(size) == 3:
        raise UsageError(
            "grid.size is expected to be two lengths, along x and y, got 3: a model is a plane, along z everything "
            "stays the same; leave z out (stencils of one's own have up to three axes, docs/stencils.md)."
        )


def _text(file: Path) -> str:
    try:
        return read_plain(file, LARGEST).decode("utf-8-sig")  # editors may put a mark in front
    except UnicodeDecodeError:
        raise UsageError("A model file is expected to be UTF-8 text, got other bytes; save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"A model file is expected at '{file}', got: {reason(error)}; check the path.") from None


def _beside(table: Any, folder: Path) -> Any:
    """The same tables with every `file` relative to the folder."""
    if isinstance(table, Mapping):
        return {
            key: str(folder / value)
            if key == "file" and isinstance(value, str) and value.strip()
            else _beside(value, folder)
            for key, value in table.items()
        }
    return [_beside(entry, folder) for entry in table] if isinstance(table, list) else table
