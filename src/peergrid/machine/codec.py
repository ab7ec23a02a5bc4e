"""Frozen dataclasses to and from plain JSON values; reading checks every type and names the place of a fault."""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from peergrid.errors import UsageError

T = TypeVar("T")
LARGEST = 1 << 1000  # larger integers are no floating-point numbers


def encode(value: Any) -> Any:
    """The plain JSON value of a dataclass, tuple, mapping or scalar (a number that is not finite → None)."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: encode(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def decode(kind: type[T], data: Any, where: str = "the profile") -> T:
    """Build `kind` from a plain JSON value.

    Raises:
        UsageError: the value does not fit `kind`; the sentence names the place.
    """
    return typing.cast(T, _decode(kind, data, where))


def _decode(kind: Any, data: Any, where: str) -> Any:
    origin = typing.get_origin(kind)
    if dataclasses.is_dataclass(kind):
        return _dataclass(typing.cast("type[Any]", kind), data, where)
    if origin is tuple:
        return _tuple(typing.get_args(kind), data, where)
    if origin is dict:
        return _mapping(typing.get_args(kind), data, where)
    if origin in (typing.Union, types.UnionType):
        return _union(typing.get_args(kind), data, where)
    return _scalar(kind, data, where)


def _dataclass(kind: type[Any], data: Any, where: str) -> Any:
    _expect(isinstance(data, dict), "an object", data, where)
    hints = typing.get_type_hints(kind)
    fields = dataclasses.fields(kind)
    lacking = [one.name for one in fields if one.name not in data and one.default is dataclasses.MISSING]
    _expect(not lacking, f"an entry '{''.join(lacking[:1])}'", "none", where)
    names = [one.name for one in fields if one.name in data]
    return kind(**{name: _decode(hints[name], data[name], f"{where}.{name}") for name in names})


def _tuple(items: tuple[Any, ...], data: Any, where: str) -> tuple[Any, ...]:
    _expect(isinstance(data, list), "a list", data, where)
    return tuple(_decode(items[0], item, f"{where}[{at}]") for at, item in enumerate(data))


def _mapping(items: tuple[Any, ...], data: Any, where: str) -> dict[str, Any]:
    _expect(isinstance(data, dict), "an object", data, where)
    return {key: _decode(items[1], item, f"{where}.{key}") for key, item in data.items()}


def _union(items: tuple[Any, ...], data: Any, where: str) -> Any:
    """The first alternative that fits; only scalars and None, so that their order does not matter."""
    for item in items:
        if item is type(None) and data is None:
            return None
    for item in items:
        if item is type(None):
            continue
        try:
            return _decode(item, data, where)
        except UsageError:
            continue
    names = " or ".join("null" if item is type(None) else _name(item) for item in items)
    raise _mismatch(names, data, where)


def _scalar(kind: Any, data: Any, where: str) -> Any:
    if kind is float and isinstance(data, int) and not isinstance(data, bool):
        _expect(abs(data) < LARGEST, "a number", data, where)
        return float(data)
    exact = isinstance(data, kind) and (kind is bool or not isinstance(data, bool))
    _expect(exact, _name(kind), data, where)
    return data


def _name(kind: Any) -> str:
    words = {str: "a text", int: "an integer", float: "a number", bool: "true or false"}
    return words.get(kind, getattr(kind, "__name__", str(kind)))


def _expect(fits: bool, wanted: str, data: Any, where: str) -> None:
    if not fits:
        raise _mismatch(wanted, data, where)


def _mismatch(wanted: str, data: Any, where: str) -> UsageError:
    text = "none" if data == "none" else repr(data)
    short = text if len(text) <= 40 else text[:37] + "..."
    return UsageError(f"{where} should hold {wanted}, but holds {short}: measure the profile again.")
