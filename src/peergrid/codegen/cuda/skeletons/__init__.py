"""Kernels as CUDA C++ templates: what is common to all problems. Python adds a plan of constants and the updates."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

INCLUDE = re.compile(r'^#include "(\w+\.cuh)"\n', re.MULTILINE)
UNREAD = re.compile(r"//.*|\"[^\"\n]*\"")  # comments and strings


def include(*names: str) -> str:
    """The text that stands for files of this package in a program; `expanded` puts them there."""
    return "".join(f'#include "{name}"\n' for name in names)


@cache
def skeleton(name: str) -> str:
    """The text of a file of this package."""
    return files(__name__).joinpath(name).read_text()


@cache
def expanded(source: str) -> str:
    """A program as it is compiled: each file of this package once, where it is first included."""
    seen = set[str]()

    def text(found: re.Match[str]) -> str:
        name = found[1]
        if name in seen:
            return ""
        seen.add(name)
        return f"{INCLUDE.sub(text, skeleton(name))}\n"

    return INCLUDE.sub(text, source)


@cache
def words() -> frozenset[str]:
    """The longer words of all files, without comments and strings: what users named has other identifiers."""
    texts = (path.read_text() for path in files(__name__).iterdir() if path.name.endswith(".cuh"))
    return frozenset(word for text in texts for word in re.findall(r"[A-Za-z_]\w+", UNREAD.sub("", text)))
