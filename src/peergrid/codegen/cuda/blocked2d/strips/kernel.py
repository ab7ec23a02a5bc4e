"""The kernel of all strips along a grid's sides: a function for each (see `layer`), a warp for each tile.

Blocks are small and find room beside those of interior tiles, if their threads keep to the registers that these leave.
How many that is, the compiler's report on interior tiles says: it differs by compiler and with the exchange in kernels.
Where interior tiles leave none, blocks are large: small ones would keep a block of interior tiles from a multiprocessor
each.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from peergrid.codegen.cuda.blocked.kernel import TileKernel
from peergrid.codegen.cuda.blocked2d.shape import Shape
from peergrid.codegen.cuda.blocked2d.strips.plan import StripPlan2D
from peergrid.codegen.cuda.blocked2d.strips.region import BoundaryStrip, boundary_strips
from peergrid.codegen.cuda.blocked2d.tiles import Cut
from peergrid.codegen.cuda.common.names import listed
from peergrid.stencil import Problem
from peergrid.stencil.remember import remembered

REGISTERS = 512  # of each of a scheduler's lanes: 16384 for 32 of them
GRAIN = 8  # registers of a thread are given by so many
LEAST = 80  # registers of a tile's thread that are asked for in any case
USUAL = 112  # left by interior tiles of 193 to 200 registers
BASE = 4  # registers of a thread beside rows and pointers: what it does with when bounded
SPARE = 20  # registers more than by the count that pointers need; with fewer, addresses take fewer instructions
MOST = 164  # registers by the count of rows up to which a strip has a kernel at all
LARGE_BLOCK = 8  # tiles of a large block
COLUMNS = (1, 2, 4)
USEFUL = 16  # columns of a tile that are not redundant, at least


def left(registers: int, instead: int = 1) -> int:
    """Registers of a strip's tile of which one finds room beside interior tiles of so many, and `instead` in place of
    one.

    All are those of a thread; no fewer than `LEAST`, with which hardly any strip spills.
    """
    beside = _beside(registers)
    return max(LEAST, min(beside, (beside + _granted(registers)) // instead) // GRAIN * GRAIN)


def tiles_in_block(registers: int) -> int:
    """Tiles of strips in a block: one, if that finds room beside interior tiles of so many registers."""
    return 1 if _beside(registers) >= LEAST else LARGE_BLOCK


def displaced(registers: int, warps: int) -> int:
    """Interior tiles, of blocks with so many warps and registers of a thread, whose room a block of strips takes: none
    where it finds room beside them.
    """
    large = tiles_in_block(registers)
    if large == 1:
        return 0
    interior, strips = (
        4 * REGISTERS // (each * count) for each, count in ((_granted(registers), warps), (USUAL, large))
    )
    return -(-interior // max(1, strips)) * warps


def _beside(registers: int) -> int:
    """Registers that as many interior tiles as there is room for leave over."""
    return REGISTERS % _granted(registers)


def _granted(registers: int) -> int:
    """Registers that a thread of so many takes."""
    return -(-registers // GRAIN) * GRAIN


def layer(
    problem: Problem, steps: int, strip: BoundaryStrip, name: str, norm: str | None, *, wide: bool
) -> StripPlan2D | None:
    """The function of a strip, with as few columns to a lane as leave some useful; None where registers do not do.

    Rows move from register to register: that takes the fewest, so that blocks fit beside those of interior tiles. wide:
    they need not; along axis 0 a lane has as many columns as registers do for, which leaves fewer redundant.
    """
    shapes = (Shape(steps, columns, ahead=2, rotate=False) for columns in COLUMNS)
    made = (StripPlan2D(problem, shape, name, norm, pointers=False, strip=strip) for shape in shapes)
    found = [one for one in made if one.useful >= USEFUL and _registers(one) <= MOST and one.in_registers]
    return found[-1 if wide and strip.axis == 0 else 0] if found else None


def _registers(made: StripPlan2D) -> int:
    rows = sum(value.depth for value in made.levels.made)
    pointers = len(made.levels.inputs) + len(made.levels.finals) if made.runs else 0
    sums = made.shape.steps if made.norm else 0
    return BASE + 4 * pointers // 3 + (made.shape.columns * rows + sums) * (made.problem.itemsize // 4)


@remembered()
def layers(problem: Problem, steps: int, cut: Cut, beside: int, norm: str | None, warps: int) -> StripKernel2D | None:
    """The kernel of all strips, with pointers if `beside` registers are ample for them; None where there is none."""
    places = enumerate(boundary_strips(problem, steps, cut))
    found = (layer(problem, steps, strip, f"Strip{n}", norm, wide=warps > 1) for n, strip in places)
    parts = tuple(part for part in found if part is not None)
    faster = tuple(replace(part, pointers=True) for part in parts)
    if all(_registers(part) + SPARE <= beside for part in faster):
        parts = faster
    return StripKernel2D(problem, parts, beside, warps, norm) if parts else None


@dataclass(frozen=True)
class StripKernel2D:
    """All strips of a problem in one kernel, a warp for each tile; beside: registers of a thread that are left to it;
    warps: of a block.
    """

    problem: Problem
    parts: tuple[StripPlan2D, ...]
    beside: int
    warps: int
    norm: str | None

    @property
    def kernel(self) -> TileKernel:
        """The kernel itself, bounded to the registers that are left where it has to find room, and they do.

        Elsewhere one block on a multiprocessor is enough: else compilers take as few registers as they can, and a row's
        shuffles wait for each other (39 registers in place of 46, a third more time).
        """
        bounded = self.warps == 1 and max(map(_registers, self.parts)) <= self.beside
        warp_bytes = max(-(-part.warp_bytes // 128) * 128 for part in self.parts)
        return TileKernel(
            self.parts[0].shape.steps,
            self.norm,
            "layer2d",
            ("stream2d.cuh", "strip2d.cuh", *(("strip_norm2d.cuh",) if self.norm else ())),
            self.parts,
            f"StripTiles<{listed(part.name for part in self.parts)}>",
            "warp",
            f"__maxnreg__({self.beside})" if bounded else f"__launch_bounds__({32 * self.warps}, 1)",
            32 * self.warps,
            self.warps * warp_bytes,
            self.warps,
            alike=True,
        )
