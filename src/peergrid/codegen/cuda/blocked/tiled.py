"""A kernel that cuts boxes into tiles, as an executor knows it, whatever its dimension and whatever it exchanges."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from numpy.typing import NDArray

from peergrid.codegen.cuda.blocked.tiles import Tiles
from peergrid.codegen.cuda.common.program import Launch, Program, numbered, regions_of, serving
from peergrid.grid import Box
from peergrid.stencil import Problem


class TiledKernel(ABC):
    """A frozen, hashable value: the programs of `steps` steps in one pass, and the tiles of a box.

    norm: a field the norm of whose change every pass sums up, by `sums` behind the others; interior, boundary, layer:
    the programs of interior tiles, of boundary tiles and of boundary strips; leaves_remainder: whether `remainder` is
    ever more than nothing.
    """

    if TYPE_CHECKING:  # fields of frozen values, in whose way properties would stand

        @property
        def problem(self) -> Problem: ...
        @property
        def steps(self) -> int: ...

    @property
    @abstractmethod
    def interior(self) -> Program: ...

    @property
    def norm(self) -> str | None:
        return None

    @property
    def boundary(self) -> Program | None:
        return None

    @property
    def layer(self) -> Program | None:
        return None

    @property
    def sums(self) -> Program | None:
        return None

    @property
    def leaves_remainder(self) -> bool:
        return False

    def tensors(self, given: Any, stored: Callable[[str], Any], encode: Callable[..., Any]) -> tuple[NDArray[Any], ...]:
        """The last struct of launches, if planes come by tensor copies; arguments as of `stream3d.tensors`."""
        return ()

    @abstractmethod
    def tiles(self, box: Box, slots: int, recorded: tuple[int, ...]) -> Tiles:
        """The tiles that advance a box; slots: interior ones that run at once; recorded: the receivers in the box."""

    def launches(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Launch, ...]:
        """The launches over complementary tiles that advance a box, in any order and at the same time, one for each
        program; slots: interior tiles that run at once; recorded: the receivers of the device.
        """
        return tuple(launch for launch in self._launches(box, slots, recorded) if len(launch.regions))

    def _launches(self, box: Box, slots: int, recorded: Sequence[int]) -> Iterator[Launch]:
        here = self.problem.receivers_in(box, recorded)
        found = self.tiles(box, slots, here)
        yield Launch(self.interior, regions_of(found.interior))
        if self.boundary is not None:
            yield Launch(self.boundary, *serving(self.problem, found.boundary, here))
        if self.layer is not None:
            yield Launch(self.layer, numbered(found.layer))

    def remainder(self, box: Box, slots: int, recorded: Sequence[int] = ()) -> tuple[Box, ...]:
        """The cells of a box that tiles leave to kernels of one step; arguments as for `launches`."""
        if self.boundary is not None:
            return ()
        return self.tiles(box, slots, self.problem.receivers_in(box, recorded)).boundary

    def shorter(self, box: Box, boundary_slots: int, interior_slots: int) -> Self:
        """The kernel with tiles as short as the device has room for; slots: of each kind that run at once."""
        return self

    def around(self, registers: int) -> Self:
        """The kernel whose boundary strips take the registers that interior tiles of so many leave."""
        return self
