"""Read model files: TOML to a checked model of the kind `model.kind`, or files of other formats by `registry.FILES`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from peergrid.arguments import check_kind, path_of
from peergrid.errors import UsageError, about
from peergrid.files import read_plain, reason
from peergrid.io.rule import shown
from peergrid.models.model import Head, Model, NamingModel
from peergrid.models.registry import file_reader, reader

LARGEST = 1 << 24  # bytes of a model file

GPRMAX = re.compile(
    r"^#(domain|dx_dy_dz|time_window|material|waveform|hertzian_dipole|rx|box|cylinder): ", re.MULTILINE
)
"""A line of a model file for gprMax; to TOML it is a comment."""


def read(path: Path | str) -> Model:
    """Read the model of a file. Files that it names are searched in its folder.

    Raises UsageError, one sentence that starts with the file's name.
    """
    file = path_of("path", path)
    with about(file.name):
        if file.suffix == ".py":
            raise UsageError(f"A model file is expected, got a script of Python; run it: python {file}.")
        if (other := file_reader(file.name)) is not None:
            return other(file)
        model = parse(_text(file), file.parent)
        return model.named(file.name) if isinstance(model, NamingModel) else model


def parse(text: str, folder: Path = Path()) -> Model:
    """The model of a file's text; `folder` is the folder of the files that it names."""
    check_kind("text", text, str, "the text of a model file")
    if command := GPRMAX.search(text):
        raise UsageError(
            f"A model file is expected to be TOML with tables such as [grid], got gprMax's command '#{command[1]}'; "
            "call the file .in to have it read as gprMax's."
        )
    try:
        table = _with_full_paths(tomllib.loads(text), folder)
        return reader(_kind(table))(table)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"A model file is expected to be TOML, and cannot be read as that: {shown(str(error), 200)}; correct it."
        ) from None
    except ValueError as error:
        if "integer string conversion" not in str(error):  # Python's error about thousands of digits
            raise
        raise UsageError(
            "A model file is expected to hold numbers that can be read, got one of thousands of digits; shorten it."
        ) from None
    except RecursionError:
        raise UsageError(
            "A model file is expected to hold tables and lists, got some nested too deep; flatten them."
        ) from None


def _kind(table: Mapping[str, Any]) -> str:
    """The kind that a file names; the default one if it names none, or if the value is no text.

    Raises UsageError if the key is outside its table.
    """
    if isinstance(table.get("kind"), str):
        raise UsageError(
            f"kind is expected in table [model], got '{shown(table['kind'])}' above all tables; write [model] before "
            "it."
        )
    head = table.get("model")
    named = head.get("kind") if isinstance(head, Mapping) else None
    return named if isinstance(named, str) and named.strip() else Head.kind


def _text(file: Path) -> str:
    try:
        return read_plain(file, LARGEST).decode("utf-8-sig")  # some editors write a byte order mark
    except UnicodeDecodeError:
        raise UsageError("A model file is expected to be UTF-8 text, got other bytes; save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"A model file is expected at '{file}', got: {reason(error)}; check the path.") from None


def _with_full_paths(table: Any, folder: Path) -> Any:
    """The same tables with every `file` relative to the folder."""
    if isinstance(table, Mapping):
        return {
            key: str(folder / value)
            if key == "file" and isinstance(value, str) and value.strip()
            else _with_full_paths(value, folder)
            for key, value in table.items()
        }
    return [_with_full_paths(entry, folder) for entry in table] if isinstance(table, list) else table
