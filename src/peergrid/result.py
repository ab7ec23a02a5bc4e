"""What a run leaves: the fields and records at its end, and when each operation of a schedule ran."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from peergrid.grid import Array
from peergrid.schedule import Schedule
from peergrid.schedule.timeline import Span, chrome
from peergrid.stencil.reduction import Series


@dataclass(frozen=True)
class Result:
    """What a finished run leaves: the final state fields, the receivers' records, and the time of stepping alone.

    notes: what was chosen by trial, and what was arranged otherwise than asked for, in sentences; norms: the L2 norm of
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

    @property
    def cells_per_second(self) -> float:
        return self.cells * self.steps / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Timeline:
    """A schedule as it was carried out once: when each operation ran."""

    schedule: Schedule
    spans: tuple[Span, ...]

    def chrome(self) -> dict[str, Any]:
        """In Chrome's format, as Perfetto shows it."""
        return chrome(self.schedule.ops, self.spans)
