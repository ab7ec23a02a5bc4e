"""The model of a GPU for the choice of kernels: its resources, and the sizes at which one kind beats another.

The values of an H200 stand where a GPU does not say otherwise. Sizes are measured ones; docs/measurements says how.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from peergrid.codegen.cuda.stream_shape import StreamShape
from peergrid.costs.machine import Machine
from peergrid.costs.machines import machine_named

BLOCK_SHARED = 160 << 10  # bytes of a block that kernels ask for at most: what an A100 and later ones of its kind give


USUAL = machine_named("h200-x2")
# Several stages in one pass, planes asked for one clock before they are read: room for more rows or columns of a tile.
TENSORS_ONE_AHEAD = (
    StreamShape(256, 10, 2, 1, lead=2, tensor=True, hints=True),
    StreamShape(128, 16, 1, 1, lead=2, tensor=True, hints=True),
)
ONE_AHEAD = (
    StreamShape(256, 10, 2, 1, lead=3),
    StreamShape(256, 8, 2, 1, lead=3),
    StreamShape(128, 12, 1, 1, lead=4),
    StreamShape(64, 16, 1, 1),
    StreamShape(32, 16, 1, 1),
)


@dataclass(frozen=True)
class Streams:
    """Shapes of kernels that stream, for single precision, the fastest first: for updates that read cells two and more
    away, for those with many or few reads of neighbours, for several stages in one pass, whose tiles have as many
    columns more as an access where they lose some, and for such stages with layers at the ends of rows, whose columns
    divide grids of many sizes.
    """

    far: tuple[StreamShape, ...] = (
        StreamShape(128, 24, 2, 2, lead=2, tensor=True, hints=True),
        StreamShape(64, 32, 2, 2, lead=2, tensor=True, hints=True),
        StreamShape(64, 16, 1, 2, lead=2, tensor=True, hints=True),
        StreamShape(64, 32, 2, 2, tensor=True, hints=True),
        StreamShape(128, 24, 2, 2),
        StreamShape(64, 48, 2, 2, lead=3),
        StreamShape(64, 32, 2, 2, lead=3),
        StreamShape(64, 32, 2, 1),
        StreamShape(32, 40, 1, 1),
        StreamShape(64, 16, 1, 1, tensor=True, hints=True),
        StreamShape(64, 16, 1, 1),
        StreamShape(32, 16, 1, 1),
        StreamShape(32, 8, 1, 1),
    )
    many: tuple[StreamShape, ...] = (
        StreamShape(256, 32, 4, 3, own=True, unroll=3, lead=2, around=True, tensor=True, hints=True),
        StreamShape(256, 32, 4, 3, own=True, unroll=3, lead=3, around=True),
        StreamShape(256, 16, 8, 2, lead=2, tensor=True, hints=True),
        StreamShape(256, 16, 8, 2, lead=3),
        StreamShape(128, 16, 2, 3, own=True, unroll=3, lead=3),
        StreamShape(64, 16, 2, 2),
        StreamShape(32, 8, 1, 1),
    )
    few: tuple[StreamShape, ...] = (
        StreamShape(256, 32, 4, 3, own=True, unroll=3, lead=2, tensor=True, hints=True),
        StreamShape(256, 32, 4, 3, lead=3),
        StreamShape(128, 16, 2, 3, own=True, unroll=3, lead=3),
        StreamShape(128, 16, 4, 3),
    )
    several: tuple[StreamShape, ...] = (
        StreamShape(128, 17, 1, 2, lead=2, tensor=True, hints=True),
        StreamShape(128, 16, 2, 2, lead=2, tensor=True, hints=True),
        *TENSORS_ONE_AHEAD,
        *ONE_AHEAD,
    )
    layered: tuple[StreamShape, ...] = (
        *TENSORS_ONE_AHEAD,
        StreamShape(192, 10, 1, 1, tensor=True, hints=True),
        StreamShape(160, 12, 1, 1, tensor=True, hints=True),
        StreamShape(112, 18, 1, 1, tensor=True, hints=True),
        StreamShape(96, 20, 1, 1, tensor=True, hints=True),
        *ONE_AHEAD,
    )


@dataclass(frozen=True)
class GpuModel:
    """A GPU as the choice of kernels sees it.

    multiprocessors: of the whole GPU; registers, shared: registers and bytes of shared memory of a multiprocessor;
    block_shared: bytes of shared memory that a block may have; most_shared: those that a block may have if it asks for
    all; block_reserved: bytes that a block takes beside; tensor_copies: whether it has tensor copies (GPUs have
    them whose blocks may have as many bytes as on an H200);
    bytes_per_clock: of device memory, for each multiprocessor.

    streamed_cells: of a box, from which on a step of several stages is one pass of a streaming kernel; streamed_bytes:
    those of that pass over those of a pass for each stage, at most;
    wide_cells, wide_columns: of a region, from which on it has a kernel and a launch of its own; wide_cube: cells in
    their place of a 3D region that is less than half of all; concurrent_cells: of a region, from which on small ones
    are launched on a stream beside it; narrow_cells: of a remainder of 3D tiles, from which on it is stored densely;
    streamed_share_3d: of the cells of a 3D box, that kernels that stream must serve; stream_start: bytes that memory
    could move while the blocks of their launch fill their pipelines; alone: of the time of a plane of a tile, the least
    that a block takes where few others are at work; many_reads: of neighbours in a plane, from which on they have other
    shapes; one_step_rates: of kernels of one step over theirs, with few and with many reads (see `one_step_rate`);
    long_rows: of an interior tile, in whose time a boundary tile and after it tiles of boundary strips are made (33
    are too few, 58 do); persistent_warps, persistent_rows: warps of a block and rows of a boundary tile to choose from
    for persistent kernels that have interior tiles, too; persistent_passes: of one launch, at most;
    row_blocks: thread blocks of small 3D regions on a multiprocessor, the values of a thread for which it then has
    registers, and the share of cells that may need more;
    thread_values, thread_bytes: values that a thread of a one-step kernel may have in registers before it gets fewer
    rows, and bytes of these from which on each is loaded where it is used, in statements of statement_operations;
    costs: what calls, links and kernels take on a machine of such GPUs.
    """

    multiprocessors: int = 132
    registers: int = 1 << 16
    shared: int = 228 << 10
    block_shared: int = BLOCK_SHARED
    most_shared: int = 227 << 10
    block_reserved: int = 1 << 10
    tensor_copies: bool = True
    bytes_per_clock: float = 14.4
    streamed_cells: int = 3 << 20
    streamed_bytes: float = 0.87
    streamed_share_3d: float = 0.75
    many_reads: int = 12
    one_step_rates: tuple[float, float] = (0.86, 0.6)
    stream_start: int = 12_000_000
    alone: float = 0.4
    wide_cells: int = 1 << 15
    wide_columns: int = 64
    wide_cube: int = 1 << 20
    concurrent_cells: int = 1 << 22
    narrow_cells: int = 1 << 16
    long_rows: int = 48
    persistent_warps: tuple[int, ...] = (8, 4)
    persistent_rows: tuple[int, ...] = (16, 24, 32, 48, 64, 96, 128)
    persistent_passes: int = 4096
    row_blocks: tuple[tuple[int, int, float], ...] = ((6, 80, 0.09), (4, 128, 0.15))
    thread_values: int = 80
    thread_bytes: int = 800
    statement_operations: int = 6
    streams: Streams = Streams()
    costs: Machine = USUAL

    @classmethod
    def of(cls, machine: Machine) -> GpuModel:
        """The model for which kernels of a machine's GPUs are chosen."""
        model = cls(multiprocessors=machine.multiprocessors, costs=machine)
        return model if machine.shared_bytes >= cls.most_shared else model.with_block_shared(machine.shared_bytes)

    def one_step_rate(self, reads: int) -> float:
        """The rate of kernels of one step over that of streaming ones, by the neighbours in a plane that they read.

        Those with few reads reach more of a memory that is slower for each multiprocessor.
        """
        few, many = self.one_step_rates
        if reads >= self.many_reads:
            return many
        usual, own = (one.bandwidth / one.multiprocessors for one in (USUAL, self.costs))
        return few * max(1.0, usual / own)

    def with_block_shared(self, count: int) -> GpuModel:
        """The model of a GPU whose blocks may have that many bytes: on smaller GPUs one block may have them all."""
        tensors = self.tensor_copies and count >= self.most_shared
        found = replace(self, most_shared=min(count, self.most_shared), tensor_copies=tensors)
        if count >= BLOCK_SHARED:
            return found
        return replace(found, block_shared=count, shared=count + self.block_reserved)

    def blocks_by_shared(self, count: int) -> int:
        """Thread blocks of so many bytes of shared memory that a multiprocessor has room for."""
        return self.shared // (count + self.block_reserved)


H200 = GpuModel()
