"""Kernels as CUDA C++ templates: what is common to all problems. Python adds a plan of constants and the updates."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files


@cache
def skeleton(name: str) -> str:
    """The text of a file of this package."""
    return files(__name__).joinpath(name).read_text()


@cache
def words() -> frozenset[str]:
    """Every word of the code of all skeletons: what users name has other identifiers."""
    texts = (path.read_text() for path in files(__name__).iterdir() if path.name.endswith(".cuh"))
    return frozenset(word for text in texts for word in re.findall(r"[A-Za-z_]\w*", re.sub(r"//.*", "", text)))
