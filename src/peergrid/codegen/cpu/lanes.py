"""The vectors of 3D row functions as LLVM writes their types."""

from __future__ import annotations

from dataclasses import dataclass

VECTOR = 64  # bytes
NUMBER = {"float32": "float", "float64": "double"}
SUFFIX = {"float32": "f32", "float64": "f64"}
SIZE = {"float32": 4, "float64": 8}


@dataclass(frozen=True)
class Lanes:
    """The types of vectors of numbers of a type."""

    dtype: str

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return SIZE[self.dtype]

    @property
    def count(self) -> int:
        return VECTOR // self.size

    @property
    def number(self) -> str:
        return NUMBER[self.dtype]

    @property
    def vector(self) -> str:
        return f"<{self.count} x {self.number}>"

    @property
    def words(self) -> str:
        """Numbers taken as integers of the same bits."""
        return f"<{self.count} x i{8 * self.size}>"

    @property
    def mask(self) -> str:
        return f"<{self.count} x i1>"

    @property
    def suffix(self) -> str:
        """The end of the name of LLVM's functions of vectors of numbers."""
        return f"v{self.count}{SUFFIX[self.dtype]}"

    @property
    def words_suffix(self) -> str:
        return f"v{self.count}i{8 * self.size}"
