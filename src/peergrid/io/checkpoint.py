"""Checkpoints: the state of a run in an HDF5 file, which gets its name once it is complete and on the disk.

Attributes of the file: `format`, `step`, `seconds`, `peergrid` (version), `sha256` (of everything else). Groups:
`fields`, `traces` and `reductions` by name, in the coordinates of the grid and the units of the run; `norms`;
`identity` (digests of the parts of the problem) and `about` (texts), by name. Nothing in it depends on devices.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import h5py
import numpy as np
from numpy.typing import NDArray

from peergrid.arguments import brief, path_of
from peergrid.errors import UsageError
from peergrid.files import reason
from peergrid.io.hdf5 import creating, reading, text, words
from peergrid.result import Records, State
from peergrid.stencil.reduction import Series

FORMAT = 1
Values = NDArray[Any]


def write_state(path: Path | str, state: State) -> None:
    """Write the state of a run to an HDF5 file. Raises UsageError if the file cannot be written."""
    if not isinstance(state, State):
        raise UsageError(f"A state is expected, such as simulation.state() gives, got {brief(state)}.")
    arrays = dict(_arrays(state))
    with creating(path_of("path", path), checked=True) as new:
        file = new.hdf5
        file.attrs["format"], file.attrs["peergrid"] = FORMAT, text(state.version)
        file.attrs["step"], file.attrs["seconds"] = state.step, state.seconds
        for name, values in arrays.items():
            file.create_dataset(name, data=values)
        for group, texts in _texts(state):
            for name, value in texts.items():
                file[f"{group}/{_key(name)}"] = text(value)
        file.attrs["sha256"] = text(_checksum(state, arrays))


def read_state(path: Path | str) -> State:
    """Read a state from a file. Raises UsageError if the file is not a checkpoint, or damaged."""
    path = path_of("path", path)
    try:
        with reading(path) as file:
            given, state = words(file.attrs["sha256"]), _state(file)
    except (OSError, KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise _damaged(path, reason(error)) from None
    if _checksum(state, dict(_arrays(state))) != given:
        raise _damaged(path, "contents that do not agree with its checksum")
    return state


def _state(file: h5py.File) -> State:
    if int(file.attrs["format"]) != FORMAT:
        raise ValueError(f"format {file.attrs['format']}, this version reads {FORMAT}")
    records = Records(
        traces=_values(file, "traces"),
        norms=file["norms"][:] if "norms" in file else None,
        reductions={
            name: Series(group["steps"][:], group["values"][:]) for name, group in _items(file, "reductions")
        },
    )  # fmt: skip
    return State(
        step=int(file.attrs["step"]),
        fields=_values(file, "fields"),
        records=records,
        seconds=float(file.attrs["seconds"]),
        identity=_strings(file, "identity"),
        version=words(file.attrs["peergrid"]),
        about=_strings(file, "about"),
    )


def _arrays(state: State) -> Iterator[tuple[str, Values]]:
    """All arrays of a state, each with its place in the file."""
    for name, values in state.fields.items():
        yield f"fields/{_key(name)}", values
    for name, values in state.records.traces.items():
        yield f"traces/{_key(name)}", values
    if state.records.norms is not None:
        yield "norms", state.records.norms
    for name, series in state.records.reductions.items():
        yield f"reductions/{_key(name)}/steps", series.steps
        yield f"reductions/{_key(name)}/values", series.values


def _texts(state: State) -> tuple[tuple[str, Mapping[str, str]], ...]:
    return ("identity", state.identity), ("about", state.about)


def _checksum(state: State, arrays: Mapping[str, Values]) -> str:
    digest = hashlib.sha256(f"{FORMAT} {state.version} {state.step} {state.seconds!r}".encode())
    for group, texts in _texts(state):
        digest.update(repr((group, sorted(texts.items()))).encode())
    for name in sorted(arrays):
        values = arrays[name]
        digest.update(repr((name, values.dtype.str, values.shape)).encode())
        digest.update(np.ascontiguousarray(values).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _items(file: h5py.File, group: str) -> Iterator[tuple[str, Any]]:
    """The items of a group, if there is one, by the names that were given."""
    if group in file:
        yield from ((unquote(key), found) for key, found in file[group].items())


def _values(file: h5py.File, group: str) -> dict[str, Values]:
    return {name: found[:] for name, found in _items(file, group)}


def _strings(file: h5py.File, group: str) -> dict[str, str]:
    return {name: found.asstr()[()] for name, found in _items(file, group)}


def _key(name: str) -> str:
    """A name as HDF5 allows it: without slashes and invalid characters."""
    quoted = quote(name, safe=" '[]()")
    return quoted if quoted.strip(".") else quoted.replace(".", "%2E")


def _damaged(path: Path | str, found: str) -> UsageError:
    return UsageError(f"'{path}' is expected to be a checkpoint, got {found}; use another, or start anew.")
