"""The vectors of row functions as LLVM writes their types, and what all row functions have of them."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.grid import Index

VECTOR = 64  # bytes
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
    return 2 * VECTOR if len(shape) == 1 and shape[-1] >= MANY else VECTOR


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

    def masked_functions(self) -> list[str]:
        """The functions of LLVM that load and store some cells of a vector."""
        return [
            f"declare {self.vector} @llvm.masked.load.{self.suffix}.p0(ptr, i32, {self.mask}, {self.vector})",
            f"declare {self.words} @llvm.masked.load.{self.words_suffix}.p0(ptr, i32, {self.mask}, {self.words})",
            f"declare void @llvm.masked.store.{self.suffix}.p0({self.vector}, ptr, i32, {self.mask})",
        ]

    def operand(self, number: int) -> list[str]:
        """The address of an operand, and its bytes from line to line."""
        return [
            f"  %p{number} = getelementptr ptr, ptr %p, i64 {number}",
            f"  %b{number} = load ptr, ptr %p{number}",
            f"  %d{number} = getelementptr i64, ptr %s, i64 {number}",
            f"  %s{number} = load i64, ptr %d{number}",
        ]

    def first(self, name: str, cells: str) -> list[str]:
        """The mask of so many first cells of a vector, fewer than it has."""
        numbers = ", ".join(f"i32 {cell}" for cell in range(self.count))
        return [
            f"{name}.count = trunc i64 {cells} to i32",
            f"{name}.one = insertelement <{self.count} x i32> poison, i32 {name}.count, i64 0",
            f"{name}.all = shufflevector <{self.count} x i32> {name}.one, <{self.count} x i32> poison, "
            f"<{self.count} x i32> zeroinitializer",
            f"{name} = icmp ult <{self.count} x i32> <{numbers}>, {name}.all",
        ]
