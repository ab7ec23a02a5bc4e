"""Texts of the catalogue to try another compiler on: all, or two of each kind of kernel."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalogue.cases import cases
from catalogue.measure import Compiler, Entries, parts

Size = tuple[int, str, str]
"""Bytes of a text, the case whose run compiles it, and the text's hash."""
NEARLY = 0.95


@dataclass(frozen=True)
class Piece:
    """A text, and the case of the catalogue whose run compiles it."""

    case: str
    source: str


def sample(recorded: Entries, arch: str) -> tuple[Piece, ...]:
    """Of each kind of kernel the smallest text and the largest, or one nearly as large that is there already."""
    kinds: dict[str, dict[str, Size]] = {}
    for name, entry in recorded.items():
        case, of, kernel = parts(name)
        if of == arch:
            kinds.setdefault(_kind(kernel), {}).setdefault(entry.text, (entry.bytes, case, entry.text))
    chosen: dict[str, str] = {}
    for smallest, *large in sorted(map(_ends, kinds.values()), key=len):  # kinds that leave a choice come last
        known = [one for one in large if one[2] in chosen]
        for _, case, text in (smallest, (known or large)[-1]):
            chosen.setdefault(text, case)
    found = _pieces(recorded, arch, chosen.values())
    if missing := sorted({case for text, case in chosen.items() if text not in found}):
        raise ValueError(f"Texts of {', '.join(missing)} are not as recorded; run `make catalogue` first.")
    return tuple(found[text] for text in chosen)


def every_text(recorded: Entries, arch: str) -> tuple[Piece, ...]:
    """All texts for an architecture, each once."""
    return tuple(_pieces(recorded, arch, cases()).values())


def _ends(texts: Mapping[str, Size]) -> list[Size]:
    """The smallest text of a kind, and those nearly as large as its largest, in order."""
    ordered = sorted(texts.values())
    return [ordered[0], *(one for one in ordered if one[0] >= NEARLY * ordered[-1][0])]


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
