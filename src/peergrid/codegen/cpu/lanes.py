"""The vectors of row functions as LLVM writes their types, and what all row functions have of them."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.grid import Index

VECTOR, LONGEST = 64, 128  # bytes
NUMBER = {"float32": "float", "float64": "double"}
SUFFIX = {"float32": "f32", "float64": "f64"}
SIZE = {"float32": 4, "float64": 8}
FEW, MANY = 4, 256  # cells along a line


def vector_for(shape: Index, itemsize: int) -> int:
    """The bytes of a vector for the lines of a box.

    Few cells are taken one by one, as masked stores are slow and touch the cache lines beside. In 1D, where lines are
    long and updates short, a loop over two usual vectors ends half as often.
    """
    if shape[-1] < FEW:
        return itemsize
    return LONGEST if len(shape) == 1 and shape[-1] >= MANY else VECTOR


@dataclass(frozen=True)
class Lanes:
    """The types of vectors of numbers of a type; bytes: of a vector, a single number at least."""

    dtype: str
    bytes: int = VECTOR

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return SIZE[self.dtype]

    @property
    def count(self) -> int:
        return self.bytes // self.size

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

    @property
    def attributes(self) -> str:
        """Those of functions #0: without them LLVM halves vectors on processors that slow down for the longest."""
        return 'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }'

    def operand(self, number: int) -> list[str]:
        """The address of an operand, and its bytes from line to line."""
        return [
            f"  %p{number} = getelementptr ptr, ptr %p, i64 {number}",
            f"  %b{number} = load ptr, ptr %p{number}",
            f"  %d{number} = getelementptr i64, ptr %s, i64 {number}",
            f"  %s{number} = load i64, ptr %d{number}",
        ]
