"""The interface of executors of schedules, the same for all kinds of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol, runtime_checkable

from peergrid.errors import UsageError
from peergrid.grid import Array, Box, FirstValues, Index
from peergrid.runtime.trace.recorder import Recorded
from peergrid.schedule import Layout, Schedule
from peergrid.schedule.timeline import Span
from peergrid.stencil.reduction import Series


@dataclass(frozen=True)
class DeviceArray:
    """An array in the memory of a GPU, which CuPy (`asarray`), PyTorch (`as_tensor`) and Numba accept without a copy.

    owner: an object that keeps the memory alive, unless it is closed.
    """

    __cuda_array_interface__: Mapping[str, Any]
    owner: object = field(repr=False, compare=False)


Views = tuple[tuple[Box, Array | DeviceArray], ...]
"""Boxes, each with its values where they lie."""


class Executor(Protocol):
    """Devices with memory for one layout. The caller keeps track of slot and step (see `Simulation`).

    Every method returns when its work is done; after an error the executor can only be closed.
    """

    layout: Layout

    @property
    def notes(self) -> Sequence[str]:
        """Requests that could not be met, each with its reason."""

    @property
    def host_seconds(self) -> float | None:
        """Seconds in which the busiest thread issued work so far, without waiting; None if it is not measured."""

    def load(self, name: str, values: FirstValues, slot: int) -> None:
        """Set a field everywhere, ghost cells included, from its global array or from a function of a box."""

    def expect(self, schedules: Sequence[Schedule]) -> None:
        """Begin to compile the kernels of schedules; `prepare` waits for them."""

    def prepare(self, schedule: Schedule) -> None:
        """Prepare the kernels and commands of a schedule, so that `execute` only makes its steps."""

    def carried_out(self, schedule: Schedule) -> Schedule:
        """The schedule that devices execute, after all lowering passes."""

    def execute(self, schedule: Schedule, times: int, step: int) -> None:
        """Execute a schedule `times` times, from time step `step` on.

        Raises DeviceFault if a device fails or a wait times out.
        """

    def trace(self, schedule: Schedule, step: int) -> tuple[Span, ...]:
        """Execute a schedule once, and measure the time of every operation that occupies a queue."""

    def gather(self, name: str, slot: int, box: Box | None = None) -> Array:
        """The global array of a state field, or its values on a box within that of the field."""

    def views(self, name: str, slot: int) -> Views:
        """The cells of a state field that each device of this process owns, without a copy; read-only."""

    def traces(self) -> Array:
        """The receivers' records, shape (receivers, all steps); NaN where not yet recorded."""

    def norms(self, steps: int) -> Array:
        """The norms of the first so many steps, float64; raises UsageError for a run without a norm."""

    def reductions(self, steps: int) -> Mapping[str, Series]:
        """The results of the problem's reductions in the first so many steps."""

    def first_nonfinite(self, name: str, slot: int) -> Index | None:
        """The first cell where a state field is NaN or infinite."""

    def busy_seconds(self) -> tuple[float, ...] | None:
        """Seconds in which each device has computed so far; None if it is not measured."""

    def close(self) -> None:
        """Release everything."""


@runtime_checkable
class Recording(Protocol):
    """Devices that can record their operations."""

    def record(self, schedule: Schedule, times: int, step: int) -> Recorded:
        """Execute a schedule as `execute` does; the log of the lowered schedule."""


def refuse_norms() -> NoReturn:
    """Raise UsageError for `norms` of a run without a norm."""
    raise UsageError("This run computes no norm; name a field when it is made, such as norm='u'.")
