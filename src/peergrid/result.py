"""The results of a run: its state after a step, fields and records at its end, the times of its operations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.schedule import Schedule
from peergrid.schedule.timeline import Span, Split, chrome, split
from peergrid.stencil.reduction import Series
from peergrid.version import VERSION


@dataclass(frozen=True)
class Records:
    """The records of a run in its first steps: traces by receiver, norms where it was made with them, reductions."""

    traces: Mapping[str, Array] = field(default_factory=dict)
    norms: Array | None = None
    reductions: Mapping[str, Series] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class State:
    """All that a run needs to go on after a step, in the coordinates of the grid: on any devices, in any arrangement.

    fields: the values of the state fields, and of coefficients that were given others; seconds: of stepping so far;
    identity: digests of the parts of its problem (see `stencil.identity`); version: of peergrid; about: texts of
    whoever keeps it, by name.
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
    """The result of a run: the final state fields, the receivers' records, and the time of stepping alone.

    notes: options chosen by trial, and requests that could not be met, in sentences; norms: the L2 norm of
    a field's change in each step, where the run was made with one; reductions: by their names, each
    with `steps` and `values`.
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
    """Arrays as people name them: u 512×512 float32, v 512×512 float32."""
    return ", ".join(f"{name} {shape_of(values.shape)} {values.dtype}" for name, values in arrays.items())


def shape_of(shape: tuple[int, ...]) -> str:
    """A shape as people read it: 512×512."""
    return "×".join(map(str, shape))


@dataclass(frozen=True)
class Timeline:
    """A schedule as it was carried out once: when each operation ran.

    foretold: the same as a forecast says it, for the same steps.
    """

    schedule: Schedule
    spans: tuple[Span, ...]
    foretold: Timeline | None = None

    def chrome(self) -> dict[str, Any]:
        """In Chrome's format, as Perfetto shows it: what is foretold beside what was measured, devices of its own."""
        found = chrome(self.schedule.ops, self.spans)
        if self.foretold is not None:
            devices = 1 + max((span.queue.device for span in self.spans), default=0)
            beside = chrome(self.foretold.schedule.ops, self.foretold.spans, ", foretold", devices)
            found["traceEvents"] += beside["traceEvents"]
        return found

    def split(self) -> Split:
        """The times of boundary regions, interiors and exchanges in all its steps."""
        return split(self.schedule.ops, self.spans)


def check_state(state: State, expected: Mapping[str, str], steps: int) -> None:
    """Raise UsageError where a state is not of the problem with this identity, or beyond so many steps."""
    other = sorted(
        part for part in state.identity.keys() | expected.keys() if state.identity.get(part) != expected.get(part)
    )
    if other:
        more = f" and {len(other) - 3} more parts" if len(other) > 3 else ""
        raise UsageError(
            f"The state is expected to be of the same problem, got another in {', '.join(other[:3])}{more}; go on with "
            "the problem as it was, or start anew."
        )
    if state.step > steps:
        raise UsageError(f"The state is that after step {state.step}, and the run has {steps}; give it more steps.")


def joined(earlier: Series, later: Series) -> Series:
    """The values of a series that a restored state has, and those found since."""
    return Series(later.steps, np.concatenate([earlier.values, later.values[len(earlier.values) :]]))


def other_version(state: State) -> tuple[str, ...]:
    """The sentence about a state that another version kept; nothing of one that this version did."""
    sentence = f"The state that the run goes on from was kept by peergrid {state.version}, this is {VERSION}."
    return () if state.version == VERSION else (sentence,)
