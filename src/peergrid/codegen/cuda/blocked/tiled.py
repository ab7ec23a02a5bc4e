"""A kernel that cuts boxes into tiles, as an executor knows it, whatever its dimension and whatever it exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

from peergrid.codegen.cuda.blocked.program import Launch, Program
from peergrid.grid import Box
from peergrid.stencil import Problem


class TiledKernel(Protocol):
    """A frozen, hashable value: the programs of `steps` steps in one pass, and the tiles of a box.

    norm: a field the norm of whose change every pass sums up, by `sums` behind the others; plain, edge, layer: the
    programs of interior tiles, of boundary tiles and of boundary strips; leaves_remainder: whether `remainder` is ever
    more than nothing.
    """

    @property
    def problem(self) -> Problem: ...
    @property
    def steps(self) -> int: ...
    @property
    def norm(self) -> str | None: ...
    @property
    def plain(self) -> Program: ...
    @property
    def edge(self) -> Program | None: ...
    @property
    def layer(self) -> Program | None: ...
    @property
    def sums(self) -> Program | None: ...
    @property
    def leaves_remainder(self) -> bool: ...

    def launches(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Launch, ...]:
        """The tiles that advance a box, a launch for each program; slots: interior tiles that run
        at once; recorded: the receivers of the device.
        """

    def remainder(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Box, ...]:
        """The cells of a box that tiles leave to kernels of one step."""

    def shorter(self, box: Box, edge_slots: int, plain_slots: int) -> Self:
        """The kernel with tiles as short as the device has room for; slots: of each kind that run at once."""

    def around(self, registers: int) -> Self:
        """The kernel whose boundary strips take the registers that interior tiles of so many leave."""
