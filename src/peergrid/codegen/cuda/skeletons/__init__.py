"""Kernels as CUDA C++ templates: what is common to all problems. Python adds a plan of constants and the updates."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def skeleton(name: str) -> str:
    """The text of a file of this package."""
    return files(__name__).joinpath(name).read_text()
