"""Small tiles that a thread block holds in shared memory for several steps: a plan of `skeletons/block2d.cuh`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple

from peergrid.codegen.cuda.blocked.reach import reach
from peergrid.codegen.cuda.blocked.updates import Applied, Updates, applied_in, ended
from peergrid.codegen.cuda.common.structs import constants, numbers, plan
from peergrid.grid import Index
from peergrid.stencil import Growth, Problem, Stage, footprint
from peergrid.stencil.remember import remembered


class Profile(NamedTuple):
    """A coefficient along one axis: where its values begin in shared memory, how many there are, and how many of them
    lie before the first row or column of the tile's arrays.
    """

    start: int
    length: int
    pad: int


@dataclass(frozen=True)
class Block2D:
    """The tiles of one problem: an array for each field, two where a stage reads it beside what it writes.

    steps: of a pass; width: columns of a tile and those around it, a multiple of 32; rows: most of a tile; warps: of a
    block.
    """

    problem: Problem
    steps: int
    width: int = 64
    rows: int = 16
    warps: int = 16

    @cached_property
    def reach(self) -> Growth:
        """The extent of what one step reads around the cells that it makes, of any field."""
        return reach(self.problem, 1)

    @property
    def columns(self) -> int:
        """Columns of a tile."""
        return self.width - self.steps * (self.reach.below[1] + self.reach.above[1])

    @property
    def height(self) -> int:
        """Rows of a tile and those around it."""
        return self.rows + self.steps * (self.reach.below[0] + self.reach.above[0])

    @property
    def values(self) -> int:
        """Values of one array in shared memory."""
        return self.height * self.width

    @property
    def double(self) -> tuple[str, ...]:
        """The fields that a stage both writes and reads at other cells: it reads one array and writes another."""
        return _in_two_arrays(self.problem)

    @cached_property
    def starts(self) -> dict[str, int]:
        """The place where the (first) array of each field begins in shared memory, in values."""
        found, at = dict[str, int](), 0
        for name in _in_arrays(self.problem):
            found[name] = at
            at += self.values * (2 if name in self.double else 1)
        return found

    @cached_property
    def profiles(self) -> dict[str, Profile]:
        """The coefficients along one axis, which lie behind the arrays, in the order of the fields' arguments."""
        found, at = dict[str, Profile](), self._array_values
        for name, axis, pad in _read_along_an_axis(self.problem):
            found[name] = Profile(at, (self.height, self.width)[axis] + 2 * pad, pad)
            at += found[name].length
        return found

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return (self._array_values + sum(profile.length for profile in self.profiles.values())) * self.problem.itemsize

    @property
    def _array_values(self) -> int:
        """Values of all arrays."""
        return self.values * (len(_in_arrays(self.problem)) + len(self.double))

    @property
    def applied(self) -> tuple[Applied, ...]:
        """All updates of the stages."""
        return tuple(applied for stage in self.problem.stages for applied in applied_in(stage))

    def source(self, updates: Updates) -> str:
        """The stages and the plan; updates: the functions."""
        stages = (self._stage(updates, number) for number in range(len(self.problem.stages)))
        return plan("Block", stages, *self._members(updates))

    def _stage(self, updates: Updates, number: int) -> tuple[str, str]:
        stage, final = self.problem.stages[number], ended(self.problem, number)
        applied, targets = applied_in(stage), list(stage.targets)
        growth = reduce(Growth.__or__, footprint(self.problem, 1).targets[0][number].values())
        writes = ((updates.number(name), int(_mixed(stage, name)), int(name in final)) for name in targets)
        given = constants(WRITTEN=len(targets), UPDATES=len(applied), REACHED=_sides(growth), WRITES=writes)
        return given, updates.chosen(applied, targets)

    def _members(self, updates: Updates) -> tuple[str, str]:
        names, number = self.problem.fields, updates.number
        given = constants(
            STEPS=self.steps,
            STAGES=len(self.problem.stages),
            WIDTH=self.width,
            WARPS=self.warps,
            VALUES=self.values,
            REACH=_sides(self.reach),
            LONGEST_PROFILE=max((profile.length for profile in self.profiles.values()), default=0),
            START=[self.starts.get(name, 0) for name in names],
            PROFILES=[self.profiles.get(name, (0, 0, 0)) for name in names],
            DOUBLE=[name in self.double for name in names],
        )
        return given, numbers(Loaded=map(number, self.starts), Profiles=map(number, self.profiles))


@remembered()
def _in_arrays(problem: Problem) -> tuple[str, ...]:
    """The fields that have an array in shared memory, in the order of the arguments."""
    return tuple(name for name, field in problem.fields.items() if name in problem.state or field.full)


@remembered()
def _in_two_arrays(problem: Problem) -> tuple[str, ...]:
    """The fields that some stage both writes and reads at other cells."""
    return tuple(name for name in problem.state if any(_mixed(stage, name) for stage in problem.stages))


@remembered()
def _read_along_an_axis(problem: Problem) -> tuple[tuple[str, int, int], ...]:
    """The coefficients along one axis in the order of the arguments: name, axis, and how far reads are off a cell."""
    reads = {read for stage in problem.stages for read in stage.reads}
    far, found = dict[str, list[Index]](), list[tuple[str, int, int]]()
    for read in reads:
        far.setdefault(read.field, []).append(read.offset)
    for name in problem.fields:
        if name in far and name not in _in_arrays(problem):
            (axis,) = problem.fields[name].axes
            found.append((name, axis, max(abs(offset[axis]) for offset in far[name])))
    return tuple(found)


def _mixed(stage: Stage, name: str) -> bool:
    """True where a stage writes a field and reads it at other cells."""
    return name in stage.targets and any(read.field == name and any(read.offset) for read in stage.reads)


def _sides(growth: Growth) -> tuple[int, ...]:
    return growth.below[0], growth.above[0], growth.below[1], growth.above[1]
