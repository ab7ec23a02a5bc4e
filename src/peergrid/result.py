"""The results of a run: its state after a step, fields and records at its end, and the times of its operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peergrid.arguments import brief
from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.schedule import Schedule
from peergrid.schedule.timeline import Span, Split, chrome, split
from peergrid.stencil.reduction import Series
from peergrid.version import VERSION


@dataclass(frozen=True)
class Records:
    """The records of a run so far: traces by receiver, norms (None: not computed), reductions."""

    traces: Mapping[str, Array] = field(default_factory=dict)
    norms: Array | None = None
    reductions: Mapping[str, Series] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class State:
    """Everything that a run needs to continue after a step, in the coordinates of the grid: on any devices, with any
    options.

    fields: the values of the state fields, and of coefficients that were changed by `Simulation.set`; seconds: of
    stepping so far; identity: digests of the parts of its problem (see `stencil.identity`); version: of peergrid;
    about: further texts, by name.
    """

    step: int
    fields: Mapping[str, Array]
    records: Records
    seconds: float
    identity: Mapping[str, str]
    version: str
    about: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"State after step {self.step}: {named_arrays(self.fields)}"


@dataclass(frozen=True, repr=False)
class Result:
    """The result of a run.

    fields: the state fields at the end, by name; traces: the receivers' records by name, shape (steps,); cells: of the
    grid; seconds: the time of stepping alone; sha256: of all state fields; notes: sentences on options that were chosen
    by trial and on requests that could not be met; norms: the L2 norm of a field's change in each step, shape (steps,),
    or None; reductions: by name, each with `steps` and `values`.
    """

    fields: Mapping[str, Array]
    traces: Mapping[str, Array]
    steps: int
    cells: int
    seconds: float
    sha256: str
    notes: tuple[str, ...] = ()
    norms: Array | None = None
    reductions: Mapping[str, Series] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Result: {named_arrays(self.fields)}; {self.steps} steps, {self.seconds:.3g} s"

    @property
    def cells_per_second(self) -> float:
        return self.cells * self.steps / self.seconds if self.seconds else 0.0


def named_arrays(arrays: Mapping[str, Array]) -> str:
    """Arrays in words, such as 'u 512×512 float32, v 512×512 float32'."""
    return ", ".join(f"{name} {shape_of(values.shape)} {values.dtype}" for name, values in arrays.items())


def shape_of(shape: tuple[int, ...]) -> str:
    """A shape in words, such as 512×512."""
    return "×".join(map(str, shape))


@dataclass(frozen=True)
class Timeline:
    """A schedule with the times of its operations in one execution.

    predicted: the predicted timeline of the same steps.
    """

    schedule: Schedule
    spans: tuple[Span, ...]
    predicted: Timeline | None = None

    def chrome(self) -> dict[str, Any]:
        """The timeline in Chrome's trace format, for Perfetto; predicted spans are shown as further devices."""
        found = chrome(self.schedule.ops, self.spans)
        if self.predicted is not None:
            devices = 1 + max((span.queue.device for span in self.spans), default=0)
            beside = chrome(self.predicted.schedule.ops, self.predicted.spans, ", predicted", devices)
            found["traceEvents"] += beside["traceEvents"]
        return found

    def split(self) -> Split:
        """The times of boundary regions, interiors and exchanges over all its steps."""
        return split(self.schedule.ops, self.spans)


def check_state(state: State, expected: Mapping[str, str], steps: int) -> None:
    """Raise UsageError for what is no state, one of another problem, or of a step after `steps`."""
    if not isinstance(state, State):
        raise UsageError(f"A state is expected, such as peergrid.read_state(path) gives, got {brief(state)}.")
    other = sorted(
        part for part in state.identity.keys() | expected.keys() if state.identity.get(part) != expected.get(part)
    )
    if other:
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        raise UsageError(
            f"The state is expected to be of the same problem, but differs in {', '.join(other[:3])}{more}; continue "
            "with the unchanged problem, or start anew."
        )
    if state.step > steps:
        raise UsageError(
            f"A state up to step {steps}, the last of the run, is expected, got one after step {state.step}; "
            "give the run more steps."
        )


def joined(earlier: Series, later: Series) -> Series:
    """The values of a series in a restored state, followed by later ones."""
    return Series(later.steps, np.concatenate([earlier.values, later.values[len(earlier.values) :]]))


def other_version(state: State) -> tuple[str, ...]:
    """A note about a state that another version wrote; none for this version."""
    sentence = f"The run continues from a state written by peergrid {state.version}; this is {VERSION}."
    return () if state.version == VERSION else (sentence,)
