"""The grid and its fields as descriptions: shapes, boundaries, first values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import signature
from math import prod
from typing import Any, Literal, NoReturn, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from peergrid.arguments import MOST, brief, check_name, is_one_of, is_whole, whole
from peergrid.errors import UsageError
from peergrid.grid.box import Box, Index

Boundary = Literal["fixed", "periodic", "reflecting"]
Dtype = Literal["float32", "float64"]
Array = NDArray[np.floating]
FirstValues = Array | Callable[[Box], Array]
"""The values of a field: its global array, or what gives them on a box."""


@dataclass(frozen=True)
class Grid:
    """A regular grid in one to three dimensions: cells along each axis, 'float32' or 'float64' for all its fields.

    boundary, one for all axes or one per axis:

    - fixed: a cell that would read beyond the edge is not updated and keeps its value;
    - periodic: the grid wraps around, index -1 is cell N-1, index N is cell 0;
    - reflecting: the grid is mirrored at the edge, index -1 is cell 0, index N is cell N-1.

    Raises UsageError for any other shape, boundary or dtype.
    """

    shape: Index
    boundary: tuple[Boundary, ...]
    dtype: Dtype

    def __init__(
        self,
        shape: Sequence[int] | int,
        boundary: Boundary | Sequence[Boundary] = "fixed",
        dtype: DTypeLike = "float32",
    ) -> None:
        extent = whole((shape,) if is_whole(shape) else shape)
        if extent is None or not 1 <= len(extent) <= 3 or min(extent) < 1:
            raise UsageError(f"A grid's shape is expected to be one to three positive integers, got {brief(shape)}.")
        if prod(extent) > MOST:
            raise UsageError(f"A grid has at most {MOST:,} cells, got {prod(extent):,}.")
        each = isinstance(boundary, Sequence) and not isinstance(boundary, str)
        kinds = tuple(boundary) if each else (boundary,) * len(extent)
        if len(kinds) != len(extent):
            raise UsageError(f"A grid of {len(extent)} axes takes one boundary or {len(extent)}, got {len(kinds)}.")
        for kind in kinds:
            if not is_one_of(kind, get_args(Boundary)):
                raise UsageError(f"A boundary is 'fixed', 'periodic' or 'reflecting', got {brief(kind)}.")
        object.__setattr__(self, "shape", extent)
        object.__setattr__(self, "boundary", kinds)
        object.__setattr__(self, "dtype", _dtype(dtype))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @cached_property
    def box(self) -> Box:
        return Box.of(self.shape)

    @cached_property
    def periodic(self) -> tuple[bool, ...]:
        return tuple(kind == "periodic" for kind in self.boundary)

    def clip(self, box: Box) -> Box:
        """The box without its cells beyond edges that are not periodic."""
        lo = tuple([a if p or a > 0 else 0 for a, p in zip(box.lo, self.periodic, strict=True)])
        hi = tuple([b if p or b < n else n for b, n, p in zip(box.hi, self.shape, self.periodic, strict=True)])
        return Box(lo, hi)

    def folded(self, box: Box) -> list[Box]:
        """The cells of a box, those beyond reflecting edges mirrored back."""
        parts = [box]
        for axis, extent in enumerate(self.shape):
            if self.boundary[axis] == "reflecting":
                lo, hi, twice = box.lo[axis], box.hi[axis], 2 * extent
                spans = [(max(lo, 0), min(hi, extent)), (max(-hi, 0), -lo), (twice - hi, min(twice - lo, extent))]
                parts = [part.with_axis(axis, a, b) for part in parts for a, b in spans if a < b]
        return parts

    def images(self, box: Box, window: Box) -> tuple[Box, ...]:
        """The parts of `window` that are `box` or one of its periodic copies."""
        return tuple(image & window for image, _ in self.shifted_images(box, window))

    def shifted_images(self, box: Box, window: Box) -> tuple[tuple[Box, Index], ...]:
        """The images that `window` overlaps, uncut, each with its shift."""
        found: list[tuple[Box, Index]] = []
        for shift in _shifts(self.shape, self.periodic, box, window):
            image = box.shift(shift) if any(shift) else box
            if image.overlaps(window):
                found.append((image, shift))
        return tuple(found)

    def field(
        self,
        name: str,
        init: ArrayLike | Callable[[Box], ArrayLike] = 0.0,
        *,
        prev: ArrayLike | Callable[[Box], ArrayLike] | None = None,
        within: Box | None = None,
    ) -> Field:
        """A field with one value for each cell of the grid, or of the box `within` alone.

        init: the first values. A number; or an array of the box's shape, which is converted to the grid's dtype, and
        copied unless it is read-only (`array.flags.writeable = False`), as well as what it is a view of, so that later
        writes to it have no effect; or a function from any box within that one to its values, for example read from a
        file, so that no process has to hold the whole array.
        prev: the values one step earlier, given in the same way, for stencils that read `u.prev`; default: `init`.
        Raises UsageError for values of another shape or kind, or that the dtype cannot hold.
        """
        check_name("A field", name)
        box = self.box if within is None else within
        if not isinstance(box, Box) or not box.lies_in(self.ndim):
            raise UsageError(
                f"Field '{name}' is confined to a peergrid.Box such as Box((0, 0), (8, 8)), got {brief(box)}."
            )
        if box.empty or not self.box.covers(box):
            raise UsageError(f"Field '{name}' is confined to {box}, which is not inside the grid {self.box}.")
        for axis in range(self.ndim):
            if self.periodic[axis] and box.shape[axis] != self.shape[axis]:
                raise UsageError(f"Field '{name}' cannot be confined along the periodic axis {axis}: {box}.")
        begun = self._begun(name, box, init)
        return begun if prev is None else replace(begun, earlier=self._begun(name, box, prev))

    def _begun(self, name: str, box: Box, init: ArrayLike | Callable[[Box], ArrayLike]) -> Field:
        axes = tuple(range(self.ndim))
        if callable(init):
            _check_takes_a_box(name, init)
            return Field(name, self, box, axes, np.zeros((), self.dtype), init)
        return Field(name, self, box, axes, _values(name, self, box.shape, init))

    def profile(self, name: str, axis: int, values: ArrayLike) -> Field:
        """A coefficient that varies along one axis only; `values` has shape (cells along that axis,)."""
        check_name("A profile", name)
        if not is_whole(axis) or not 0 <= axis < self.ndim:
            raise UsageError(f"Profile '{name}' names axis {brief(axis)}; the grid has axes 0 to {self.ndim - 1}.")
        return Field(name, self, self.box, (axis,), _values(name, self, (self.shape[axis],), values))

    def signal(self, name: str, samples: ArrayLike, slopes: Sequence[int] = (), first: int = 0) -> Signal:
        """A number for each time step, shape (steps,), read in a stencil as `signal.now`; zero after its last sample.

        With slopes, a whole number per axis, it differs from cell to cell, as a plane wave does. Samples then have
        shape (steps, places), and cell (i, j, k) reads place first + slopes[0] i + slopes[1] j + slopes[2] k.
        """
        check_name("A signal", name)
        with np.errstate(over="ignore"):
            array = np.atleast_1d(_real(name, samples).astype(self.dtype, order="C"))
        if not np.isfinite(array).all():
            raise UsageError(f"Signal '{name}' takes finite numbers, got some that {self.dtype} cannot hold; scale it.")
        along = whole(slopes)
        if along is None or len(along) not in (0, self.ndim) or not is_whole(first):
            raise UsageError(
                f"Signal '{name}' takes slopes of {self.ndim} whole numbers, got {brief(slopes)} and {brief(first)}."
            )
        if any(slope and wraps for slope, wraps in zip(along, self.periodic, strict=False)):
            raise UsageError(f"Signal '{name}' takes no slope along a periodic axis, got {slopes}.")
        if array.ndim != (2 if along else 1):
            expected = "one number for each step and place" if along else "a one-dimensional array"
            raise UsageError(f"Signal '{name}' takes {expected}, got shape {array.shape}.")
        return Signal(name, self, array, along, int(first))

    def table(self, name: str, values: ArrayLike) -> Table:
        """Numbers that a stencil looks up by a whole number, as `table[index[0, 0]]`; shape (entries,).

        They are converted to the grid's dtype, and copied unless they are read-only. There are at most as many as the
        dtype has whole numbers in a row: 2^24 in single precision, 2^31 in double.
        """
        check_name("A table", name)
        entries, most = _converted(name, self, values), 2 ** min(np.finfo(self.dtype).nmant + 1, 31)
        if entries.ndim != 1 or not 0 < len(entries) <= most:
            raise UsageError(f"Table '{name}' takes a list of 1 to {most} numbers, got shape {entries.shape}.")
        if not np.isfinite(entries).all():
            raise UsageError(f"Table '{name}' takes finite numbers, got some that are not.")
        return Table(name, self, entries)


class _Argument:
    """Base of what a stencil is called with: inside, stand-ins take its place, and it has no values of its own."""

    name: str

    def _refuse(self, *_: object) -> NoReturn:
        raise UsageError(
            f"A stencil reads what it is called with, got '{self.name}' from outside; make it an argument, as in "
            "heat(u, k)."
        )

    __getitem__ = __setitem__ = _refuse
    now = next = prev = property(_refuse)


@dataclass(frozen=True, repr=False)
class Field(_Argument):
    """A named quantity on a grid: where it exists, along which axes it varies, and its first values.

    box: the cells that have a value; axes: the axes along which it varies (all for a field, one for a profile);
    init: the values at step 0, shape = extent of the box along `axes`, or a single number (shape ()); made_by: a
    function from a box to these values, used instead of `init`; earlier: the field one step before step 0 (None: the
    same values).
    """

    name: str
    grid: Grid
    box: Box
    axes: tuple[int, ...]
    init: Array = field(compare=False, repr=False)
    made_by: Callable[[Box], ArrayLike] | None = field(default=None, compare=False, repr=False)
    earlier: Field | None = field(default=None, compare=False, repr=False)

    def __repr__(self) -> str:
        extent = "×".join(str(self.box.shape[axis]) for axis in self.axes)
        return f"Field('{self.name}', {extent} {self.grid.dtype})"

    @property
    def full(self) -> bool:
        """True if the field varies along every axis."""
        return len(self.axes) == self.grid.ndim

    def first_values(self) -> Array:
        """The values at step 0, shape = extent of the box along the field's axes; not to be written to."""
        if self.made_by is not None:
            return self.values(self.box)
        return np.broadcast_to(self.init, tuple(self.box.shape[a] for a in self.axes))

    def values(self, box: Box) -> Array:
        """The values at step 0 on a box within that of the field; not to be written to."""
        if self.made_by is not None:
            values = _values(self.name, self.grid, box.shape, self.made_by(box))
            return np.broadcast_to(values, box.shape)
        spans = box.slices(self.box.lo)
        return self.first_values()[tuple(spans[axis] for axis in self.axes)]

    def with_values(self, values: ArrayLike) -> Field:
        """The same field with other first values: a number, or an array of its shape."""
        shape = tuple(self.box.shape[axis] for axis in self.axes)
        return replace(self, init=_values(self.name, self.grid, shape, values), made_by=None)

    def global_array(self) -> Array:
        """A fresh array of the values at step 0."""
        return np.array(self.first_values(), dtype=self.grid.dtype, order="C")


@dataclass(frozen=True)
class Signal(_Argument):
    """A number per time step: the same for all cells or, with slopes, one per place (see `Grid.signal`)."""

    name: str
    grid: Grid
    samples: Array = field(compare=False, repr=False)
    slopes: Index = ()
    first: int = 0

    def places(self, box: Box) -> tuple[int, int]:
        """The lowest and the highest place of the cells of a box."""
        ends = [sorted((s * lo, s * (hi - 1))) for s, lo, hi in zip(self.slopes, box.lo, box.hi, strict=True)]
        return self.first + sum(low for low, _ in ends), self.first + sum(high for _, high in ends)


@dataclass(frozen=True, repr=False)
class Table(_Argument):
    """Numbers that a stencil looks up by a whole number, such as what a medium has by the medium's (see `Grid.table`).

    An index between two whole numbers counts as the lower one; one below 0, or NaN, finds the first entry, one beyond
    the last finds that.
    """

    name: str
    grid: Grid
    values: Array = field(compare=False)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"Table('{self.name}', {len(self)} {self.grid.dtype})"


def _check_takes_a_box(name: str, function: Callable[[Box], ArrayLike]) -> None:
    try:
        given = signature(function)
    except (TypeError, ValueError):  # a function in C without a signature
        return
    try:
        given.bind(None)
    except TypeError:
        raise UsageError(
            f"'{name}' takes a function of one box, such as lambda box: numpy.zeros(box.shape), got one of {given}."
        ) from None


def _values(name: str, grid: Grid, shape: Index, init: ArrayLike) -> Array:
    array = _converted(name, grid, init)
    if array.ndim and array.shape != shape:
        raise UsageError(f"'{name}' takes a number or an array of shape {shape}, got shape {array.shape}.")
    return array


def _converted(name: str, grid: Grid, values: ArrayLike) -> Array:
    with np.errstate(over="raise"):
        try:
            real = _real(name, values)
            array: Array = np.array(real, dtype=grid.dtype, copy=_may_change(real) or None)
        except FloatingPointError:
            raise UsageError(
                f"'{name}' takes numbers that {grid.dtype} can hold, got larger ones; scale them."
            ) from None
    array.flags.writeable = False
    return array


def _may_change(array: NDArray[Any]) -> bool:
    """True if an array, or one that it is a view of, can be written to."""
    view: object = array
    while isinstance(view, np.ndarray):
        if view.flags.writeable:
            return True
        view = view.base
    return False


def _real(name: str, values: ArrayLike) -> NDArray[Any]:
    array = _on_host(name, values)
    if np.ma.is_masked(values):
        raise UsageError(
            f"'{name}' takes a value for each cell, got an array with masked ones; fill them, as .filled(0)."
        )
    if array.dtype.kind not in "biuf":
        raise UsageError(f"'{name}' takes real numbers, got a {type(values).__name__} of dtype {array.dtype}.")
    return array


def _on_host(name: str, values: Any) -> NDArray[Any]:
    """An array from numbers, or from an object with NumPy's array interface or DLPack."""
    if isinstance(values, np.ndarray) or hasattr(values, "__array_interface__") or not hasattr(values, "__dlpack__"):
        try:
            return np.asarray(values)
        except ValueError:
            raise UsageError(f"'{name}' takes numbers in rows of equal lengths, got {brief(values)}.") from None
    try:
        return np.from_dlpack(values)
    except (RuntimeError, BufferError, TypeError, ValueError) as error:
        raise UsageError(
            f"'{name}' takes values in the host's memory, got a {type(values).__name__} that NumPy cannot take: "
            f"{error}; copy it to the host."
        ) from None


def _dtype(given: DTypeLike) -> Dtype:
    """The name of a dtype, from any form that NumPy accepts."""
    try:
        name = np.dtype(given).name
    except (TypeError, ValueError):
        name = ""
    for known in get_args(Dtype):
        if name == known and given is not None:
            return cast(Dtype, known)
    raise UsageError(f"A grid's dtype is 'float32' or 'float64', got {brief(given)}.")


def _shifts(shape: Index, periodic: tuple[bool, ...], box: Box, window: Box) -> list[Index]:
    """The shifts by whole periods that may move the box into the window."""
    shifts: list[Index] = [()]
    for axis, (extent, wraps) in enumerate(zip(shape, periodic, strict=True)):
        if wraps:
            first = -((box.hi[axis] - 1 - window.lo[axis]) // extent)
            last = (window.hi[axis] - 1 - box.lo[axis]) // extent
            steps = range(first, last + 1)
        else:
            steps = range(1)
        shifts = [(*head, k * extent) for head in shifts for k in steps]
    return shifts
