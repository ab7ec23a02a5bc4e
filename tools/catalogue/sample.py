"""Texts of the catalogue to try another compiler on: all, or two of each kind of kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from catalogue.cases import cases
from catalogue.measure import Compiler, Entries, parts


@dataclass(frozen=True)
class Piece:
    """A text, and the case of the catalogue whose run compiles it."""

    case: str
    source: str


def sample(recorded: Entries, arch: str) -> tuple[Piece, ...]:
    """Of each kind of kernel the smallest text and the largest."""
    kinds: dict[str, dict[str, tuple[int, str, str]]] = {}
    for name, entry in recorded.items():
        case, of, kernel = parts(name)
        if of == arch:
            kinds.setdefault(_kind(kernel), {}).setdefault(entry.text, (entry.bytes, case, entry.text))
    chosen: dict[str, str] = {}
    for texts in kinds.values():
        ordered = sorted(texts.values())
        for _, case, text in (ordered[0], ordered[-1]):
            chosen.setdefault(text, case)
    found = _pieces(recorded, arch, chosen.values())
    if missing := sorted({case for text, case in chosen.items() if text not in found}):
        raise ValueError(f"Texts of {', '.join(missing)} are not as recorded; run `make catalogue` first.")
    return tuple(found[text] for text in chosen)


def every_text(recorded: Entries, arch: str) -> tuple[Piece, ...]:
    """All texts for an architecture, each once."""
    return tuple(_pieces(recorded, arch, cases()).values())


def _kind(kernel: str) -> str:
    """Kernels are numbered within a text."""
    return re.sub(r"_?\d*( \d+)?$", "", kernel)


def _pieces(recorded: Entries, arch: str, names: Iterable[str]) -> dict[str, Piece]:
    """The texts of some cases by their hashes."""
    compiler = Compiler(recorded)
    found: dict[str, Piece] = {}
    for name in dict.fromkeys(names):
        for _, text in compiler.texts(cases()[name], (arch,)):
            if text.has_kernels:
                found.setdefault(text.sha256, Piece(name, text.source))
    return found
