"""The words of a command as numbers, points and names; each fault is a sentence with the line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, isfinite, isnan
from typing import TypedDict, TypeVar

from peergrid.gprmax.objects import Vector
from peergrid.gprmax.text import Command

CHOICE = TypeVar("CHOICE", bound=str)


class Fill(TypedDict):
    """The material of an object, or one for each axis, and whether its surface is smoothed if possible."""

    material: tuple[str, ...]
    smooth: bool


def counted(command: Command, *allowed: int) -> tuple[str, ...]:
    """The words; their number must be one of `allowed`."""
    if len(command.words) not in allowed:
        *some, last = (str(n) for n in allowed)
        expected = f"{', '.join(some)} or {last}" if some else last
        raise command.fault(f"to have {expected} word{'s' * (expected != '1')}", str(len(command.words)), "correct it")
    return command.words


def at_least(command: Command, count: int) -> tuple[str, ...]:
    """The words, at least `count` of them."""
    if len(command.words) < count:
        raise command.fault(f"to have at least {count} words", str(len(command.words)), "correct it")
    return command.words


def number(
    command: Command, place: int, holds: Callable[[float], bool] = isfinite, meaning: str = "a finite number"
) -> float:
    """The word at a place as a number for which `holds`."""
    word = command.words[place]
    try:
        value = float(word)
    except ValueError:
        value = float("nan")
    if isnan(value) or not holds(value) or (isfinite(value) and abs(value) > 1e36):
        raise command.fault(f"to have {meaning} as word {place + 1}", f"'{word}'", "correct it")
    return value


def positive(command: Command, place: int) -> float:
    """A number from 1e-20 to 1e20."""
    return number(command, place, lambda v: 1e-20 <= v <= 1e20, "a number from 1e-20 to 1e20")


def not_negative(command: Command, place: int, infinite: bool = False) -> float:
    """A number not below 0, or `inf` if `infinite`."""
    if infinite:
        return number(command, place, lambda v: v >= 0, "a number not below 0 or inf")
    return number(command, place, lambda v: isfinite(v) and v >= 0, "a number not below 0")


def whole(command: Command, place: int, least: int, most: int = 10**9) -> int:
    """A whole number from `least` to `most`."""
    word = command.words[place]
    if len(word) > 20 or not word.lstrip("+-").isascii() or not word.lstrip("+-").isdigit():
        raise command.fault(f"to have a whole number as word {place + 1}", f"'{word}'", "correct it")
    return int(number(command, place, lambda v: least <= v <= most, f"a whole number from {least} to {most}"))


def times(command: Command, place: int) -> tuple[float, float]:
    """A start and a stop time (s) from a word on; by default a source is never switched off."""
    if len(command.words) <= place:
        return 0.0, inf
    start = not_negative(command, place)
    stop = number(command, place + 1, lambda v: v > start, "a stop time after the start")
    return start, stop


def point(command: Command, place: int) -> Vector:
    """Three coordinates (m) from a word on; `inf` means the whole of an axis without extent."""
    x, y, z = (
        number(command, place + k, lambda v: abs(v) <= 1e20 or v == float("inf") or v == -float("inf"), "a coordinate")
        for k in range(3)
    )
    return (x, y, z)


def vector(command: Command, place: int) -> Vector:
    """Three finite numbers (m) from a word on."""
    x, y, z = (number(command, place + k, lambda v: abs(v) <= 1e20) for k in range(3))
    return (x, y, z)


def one_of(command: Command, place: int, choices: Sequence[CHOICE], fold: bool = True) -> CHOICE:
    """The word at a place, one of `choices`; `fold`: in upper or lower case."""
    word = command.words[place]
    for choice in choices:
        if word == choice or (fold and word.lower() == choice.lower()):
            return choice
    raise command.fault(f"to have {' or '.join(choices)} as word {place + 1}", f"'{word}'", "use one of them")


def fill(command: Command, place: int) -> Fill:
    """The words after the geometry of an object: a material, with y or n for smoothing and a tag, or three
    materials.
    """
    left = command.words[place:]
    if not 1 <= len(left) <= 5:
        raise command.fault(
            f"to have 1 to 5 words behind its {place} of geometry", str(len(left)), "name a material, or one per axis"
        )
    if len(left) == 1:
        return Fill(material=(left[0],), smooth=True)
    if len(left) in (2, 3) and left[1].lower() in ("y", "n"):
        return Fill(material=(left[0],), smooth=left[1].lower() == "y")  # a tag marks cells for far-field output alone
    if len(left) == 2:
        one_of(command, place + 1, ("y", "n"))
    return Fill(material=left[:3], smooth=False)
