"""The constants of a plan of streaming kernels that are free to choose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StreamShape:
    """A tile of `rows` rows and `columns` columns, computed by threads with a few rows each.

    ahead: clocks between the copy of a plane and its first use; own: threads keep in registers all planes of their own
    cells, not the older ones alone, and columns beside them are shuffled; unroll: clocks in the body of the loop; lead:
    clocks by which blocks may be apart (0: any); split_barrier: warps of a block may be apart by most of a clock (where
    `own`); around: threads keep the cells around their own, too (where `own`); tensor: planes come by tensor copies;
    hints: the L2 cache keeps what is loaded longer than what is stored.
    """

    columns: int = 64
    rows: int = 32
    rows_each: int = 2
    ahead: int = 3
    own: bool = False
    unroll: int = 1
    lead: int = 0
    split_barrier: bool = False
    around: bool = False
    tensor: bool = False
    hints: bool = False

    def split(self, itemsize: int) -> bool:
        """True where a warp ends within a row: neighbours in it are not always those of the row."""
        return 32 % (self.columns * itemsize // 16) > 0

    def threads(self, itemsize: int) -> int:
        """Threads of a block: whole warps, which copies count on."""
        found = self.columns * itemsize // 16 * self.rows // self.rows_each
        return -(-found // 32) * 32
