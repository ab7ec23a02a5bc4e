"""How many steps a pass makes, and in which shape: chosen from the problem alone, without a compiler or a device.

room: bytes of shared memory that a thread block can have, where they are fewer than shapes were measured with.

A pass of the streaming kernel keeps its rows in registers: `BASE` of them and, for each column of a lane, one (two in
double precision) for every row that some version of a field keeps. The compiler's reports bear this out within a tenth.
The worth of a shape is the steps it makes times the share of its columns that are not redundant; for 3D see `choose3d`.
Which of the lengths a run makes is settled by a trial (`runtime.cuda.trial`); it changes no bit.
"""

from __future__ import annotations

from dataclasses import replace

from peergrid.codegen.cuda.choose3d import pass3d, worth
from peergrid.codegen.cuda.fitted import EDGE_COLUMNS, fitted
from peergrid.codegen.cuda.groups import groups
from peergrid.codegen.cuda.levels import levels
from peergrid.codegen.cuda.norm import NORM_ALIGN, NORM_ROWS
from peergrid.codegen.cuda.pass3d import PassKernel3D
from peergrid.codegen.cuda.pass_kernel import PassKernel
from peergrid.codegen.cuda.shared import MOST_BYTES, RESERVED, multiprocessor
from peergrid.codegen.cuda.stream_parts import Shape
from peergrid.grid import Box, Index
from peergrid.grid.partition import Partition
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

BASE = 24
MOST_REGISTERS = 216  # of 255: what a compiler adds must not spill
FEW_BYTES = 6 << 10  # of shared memory for a warp: then rows are loaded further ahead
LENGTHS = (8, 6, 4, 3, 2)
NORM_LENGTHS = (7, 6, 4, 3, 2)  # the text of 8 steps with norms is too long to be fetched in time
MOST_STEPS = 16
STREAMED_CELLS = 3 << 20  # of a box, from which on one step of several stages is worth a streaming kernel
ROWS = (8, 16, 32, 64)
SHORT, LONG = 4, 128  # rows of tiles in passes of one step: of an edge tile, where there is room; most of a plain one


def supports(problem: Problem, steps: int, room: int = MOST_BYTES) -> bool:
    """Whether one pass can make that many steps: one always, several where the reach leaves columns over."""
    return steps == 1 or several_steps(problem, steps, room=room) is not None


def several_steps(
    problem: Problem, steps: int, norm: str | None = None, room: int = MOST_BYTES
) -> PassKernel | PassKernel3D | None:
    """The kernel that makes `steps` steps of a problem of any dimension in one pass; None where there is none.

    One step is left to other kernels, unless the norm of each step's change is asked for.
    """
    if problem.grid.ndim == 3:
        return pass3d(problem, steps, room) if steps > 1 and norm is None else None
    return pass_kernel(problem, steps, norm, room=room)


@remembered()
def pass_kernel(
    problem: Problem, steps: int, norm: str | None = None, least: int = 2, room: int = MOST_BYTES
) -> PassKernel | None:
    """The kernel that makes `steps` steps of a 2D problem in one pass; None where there is none.

    Fewer than `least` are left to other kernels, unless the norm of each step's change is asked for.
    """
    if problem.grid.ndim != 2 or not (1 if norm else least) <= steps <= MOST_STEPS:
        return None
    widths = (4,) if norm else (4, 2)
    found = [kernel for columns in widths if (kernel := _kernel(problem, steps, columns, norm)) is not None]
    usual = max(found, key=_worth, default=None)
    best = None if usual is None else fitted(usual, room)
    return best if best is None or steps > 1 or norm else replace(_beside(best, room), most_rows=LONG)


def one_step(problem: Problem, cells: int, room: int = MOST_BYTES) -> PassKernel | None:
    """The kernel that makes all stages of one step of a 2D problem in one pass, over boxes of so many cells.

    None where a pass for each stage takes less: edge tiles cost a small box more than a second pass over it.
    """
    if len(groups(problem)) == 1 or cells < STREAMED_CELLS:
        return None
    return pass_kernel(problem, 1, least=1, room=room)


def split_at(problem: Problem, partition: Partition, norm: str | None = None) -> Index:
    """The multiples at which passes split what a device owns, axis by axis; empty where cells that keep their value
    had best go with the rim: to a streaming kernel a strip of those costs more than it spares.
    """
    if norm:
        return NORM_ALIGN
    largest = max(partition.owned(device).size for device in range(partition.devices))
    return () if one_step(problem, largest) is None else (1, 1)


@remembered()
def steps_per_pass(problem: Problem, most: int = MOST_STEPS, norm: str | None = None, room: int = MOST_BYTES) -> int:
    """The number of steps, at most `most`, that passes had best make; 1 where more are not worth it or not possible."""
    return lengths(problem, most, norm, room)[0]


def lengths(
    problem: Problem, most: int = MOST_STEPS, norm: str | None = None, room: int = MOST_BYTES
) -> tuple[int, ...]:
    """The numbers of steps, at most `most`, that a pass may be worth making, the most promising first; 1 if none is."""
    allowed = [steps for steps in (NORM_LENGTHS if norm else LENGTHS) if steps <= most]
    kernels = [kernel for steps in allowed if (kernel := several_steps(problem, steps, norm, room)) is not None]
    worthy = sorted((kernel for kernel in kernels if _worth(kernel) > 1), key=_worth, reverse=True)
    return tuple(kernel.steps for kernel in worthy) or (1,)


def block_of(problem: Problem, depth: int, room: int = MOST_BYTES) -> int:
    """The steps of a pass for `depth` steps between exchanges: the fewest passes there can be, of even length."""
    longest = next(steps for steps in range(depth, 0, -1) if supports(problem, steps, room))
    return -(-depth // -(-depth // longest))


def short_tiles(kernel: PassKernel, box: Box, edge_slots: int, plain_slots: int) -> PassKernel:
    """The kernel with shorter tiles where `box` leaves a device room for more of them: a pass is over when its longest
    tile is. Norms fix the rows of their blocks.

    edge_slots, plain_slots: tiles of each kind that run at once; half of the plain ones keep a device busy.
    """
    if kernel.norm:
        return kernel
    strips = -(-box.shape[1] // kernel.cut.columns)
    coarse = replace(kernel, most_rows=box.shape[0])
    rim = sum(len(launch.regions) for launch in coarse.launches(box, 1) if launch.program is coarse.edge)
    one = kernel.steps == 1  # then hardly a row is redundant
    few = kernel.layer is not None  # edge tiles beside zones: fewer find room sooner
    rows = (SHORT, *ROWS) if one else ROWS[2 * few :]
    edge = next((r for r in rows if rim * kernel.edge_rows <= edge_slots * r), kernel.edge_rows)
    plain = next((r for r in ROWS if 2 * strips * box.shape[0] <= plain_slots * r), kernel.least_rows)
    layer = next((r for r in ROWS if one or strips * box.shape[0] <= 2 * plain_slots * r), kernel.layer_rows)
    return replace(
        kernel,
        edge_rows=min(edge, kernel.edge_rows),
        layer_rows=min(layer, kernel.layer_rows),
        least_rows=min(plain, kernel.least_rows),
    )


def _beside(kernel: PassKernel, room: int) -> PassKernel:
    """The kernel with edge tiles that fit into the shared memory which blocks of plain tiles leave, if they can."""
    left = multiprocessor(room) % (kernel.plain.shared_bytes + RESERVED) - RESERVED
    shorter = (replace(kernel, edge_ahead=ahead) for ahead in range(kernel.edge_ahead, 0, -1))
    return next((made for made in shorter if made.edge.shared_bytes <= left), kernel)


def _worth(kernel: PassKernel | PassKernel3D) -> float:
    if isinstance(kernel, PassKernel3D):
        return worth(kernel)
    return kernel.shape.steps * kernel.cut.columns / kernel.shape.width


def _kernel(problem: Problem, steps: int, columns: int, norm: str | None) -> PassKernel | None:
    rows = sum(version.depth for version in levels(problem, steps, norm=norm).versions)
    if BASE + columns * rows * (problem.itemsize // 4) > MOST_REGISTERS:
        return None
    for width in (64, 128):
        rows = NORM_ROWS if norm else PassKernel.edge_rows
        kernel = PassKernel(problem, _shape(problem, steps, columns, norm), width, norm, rows)
        fits = max(kernel.plain.shared_bytes, kernel.edge.shared_bytes) <= MOST_BYTES
        if fits and kernel.cut.columns > 0 and kernel.cut.edge_columns >= EDGE_COLUMNS:
            return kernel
    return None


def _shape(problem: Problem, steps: int, columns: int, norm: str | None) -> Shape:
    """Kernels with norms have long texts: warps of large blocks stay close together and fetch them once."""
    far = Shape(steps, columns, ahead=6, warps=8) if norm else Shape(steps, columns, ahead=4)
    few = PassKernel(problem, far).plain.shared_bytes <= FEW_BYTES * far.warps
    return far if few else Shape(steps, columns, ahead=2)
