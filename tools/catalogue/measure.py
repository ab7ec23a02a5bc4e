"""The kernels of a case as entries of the catalogue: their texts, and what the compiler says they take of a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from catalogue.cases import GPUS, Case
from catalogue.texts import Text, texts
from peergrid.codegen.nvrtc import Resources, resources


@dataclass(frozen=True)
class Entry:
    """A kernel of the catalogue: SHA-256 (its first digits), lines and bytes of the text it is in, and its resources.

    shared: bytes of shared memory that the text declares; dynamic: those that launches ask for.
    """

    text: str
    lines: int
    bytes: int
    registers: int
    stack: int
    spills: int
    shared: int
    dynamic: int

    @property
    def resources(self) -> Resources:
        """What the compiler said."""
        return Resources(self.registers, self.stack, self.spills, self.shared)


Entries = Mapping[str, Entry]
"""Kernels by their names: the case, the architecture, the kernel's entry (see `key`)."""


def key(case: str, arch: str, entry: str) -> str:
    """The name of a kernel in the catalogue."""
    return f"{case} / {arch} / {entry}"


def parts(name: str) -> tuple[str, str, str]:
    """The case, the architecture and the entry of a name."""
    case, arch, entry = name.split(" / ")
    return case, arch, entry


class Compiler:
    """Resources of kernels, asked of NVRTC where no entry of a record says them."""

    def __init__(self, recorded: Entries) -> None:
        self._known: dict[tuple[str, str], dict[str, Resources]] = {}
        for name, entry in recorded.items():
            _, arch, kernel = parts(name)
            self._known.setdefault((entry.text, arch), {})[kernel.split(" ")[0]] = entry.resources

    def kernels(self, text: Text, arch: str) -> dict[str, Resources]:
        """What the kernels of a text take, by their entries."""
        found = self._known.get((text.sha256, arch))
        if found is None:
            found = self._known[text.sha256, arch] = resources(text.source, arch)
        return found

    def texts(self, case: Case, archs: Iterable[str] = GPUS) -> Iterator[tuple[str, Text]]:
        """The texts of a case with the architecture that each is for."""
        problem = case.make()
        for arch in archs:

            def registers(source: str, entry: str, arch: str = arch) -> int:
                return self.kernels(Text(source), arch)[entry].registers

            for text in texts(case, problem, arch, registers):
                yield arch, text

    def entries(self, case: Case, archs: Iterable[str] = GPUS) -> dict[str, Entry]:
        """The kernels of a case by their names; of those with one entry the second has a number behind it."""
        found = dict[str, Entry]()
        for arch, text in self.texts(case, archs):
            for kernel, takes in self.kernels(text, arch).items():
                name = key(case.name, arch, kernel)
                count = sum(other == name or other.startswith(f"{name} ") for other in found)
                found[f"{name} {count + 1}" if count else name] = Entry(
                    text.sha256, text.lines, len(text.source), **asdict(takes), dynamic=text.shared_bytes
                )
        return found
