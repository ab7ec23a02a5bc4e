"""Requirements on the tables of model files that several kinds have in common; each fault is one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from peergrid.errors import UsageError

TALLEST = 8_000  # pixels of an animation


def check_distinct(values: Sequence[str], path: str) -> None:
    """Raises UsageError for the first entry that a list names twice; path: of its key."""
    for value in values:
        if values.count(value) > 1:
            raise UsageError(f"{path} is expected to name each entry once, got '{value}' twice; remove one.")


def check_animation(kind: str, snapshots: int, width: int, size: tuple[float, float]) -> None:
    """Raises UsageError for an animation without frames, or too tall for its files.

    snapshots: steps between two frames; width: pixels; size: metres across and up.
    """
    if kind == "none":
        return
    if not snapshots:
        raise UsageError(
            f"output.snapshots is expected to be above 0 for output.animation = '{kind}', got 0; "
            "set the number of steps between two frames."
        )
    height = width * size[1] / size[0]
    if height > TALLEST:
        raise UsageError(
            f"output.width is expected to give an animation of at most {TALLEST:,} pixels upwards, got {height:,.0f}; "
            f"use at most {TALLEST * size[0] / size[1]:.0f}, or output.animation = 'none'."
        )
