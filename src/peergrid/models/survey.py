"""Surveys: one model, its sources and receivers at many places, a trace or a shot from each.

The table `[survey]` is any of the dataclasses here. A kind of model that has surveys has a field `survey`, can move its
sources and receivers (`SurveyedModel`), and writes all traces together (`SurveyedBuilt`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, ClassVar, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np

from peergrid.errors import UsageError
from peergrid.grid import Array, Dtype
from peergrid.io.rule import Finite, Rule
from peergrid.models.model import BuiltModel, Model

MOST = 100_000
Vector = tuple[Finite, ...]
Traces = Annotated[int, Rule(f"a whole number from 1 to {MOST}", lambda v: 1 <= v <= MOST)]
Places = Annotated[tuple[Vector, ...], Rule(f"a list of 1 to {MOST} positions", lambda v: 1 <= len(v) <= MOST)]


@dataclass(frozen=True)
class CommonOffset:
    """Sources and receivers move together, by `step` metres from each trace to the next."""

    kind: ClassVar[str] = "common_offset"
    traces: Traces
    step: Vector


@dataclass(frozen=True)
class CommonMidpoint:
    """Receivers move by `step` metres from each trace to the next, sources by as much in the opposite direction."""

    kind: ClassVar[str] = "common_midpoint"
    traces: Traces
    step: Vector


@dataclass(frozen=True)
class Steps:
    """Sources and receivers each move by their own step, metres."""

    kind: ClassVar[str] = "steps"
    traces: Traces
    source_step: Vector
    receiver_step: Vector


@dataclass(frozen=True)
class Positions:
    """A trace for every position of the first source, metres; the other sources keep their distance to it.

    receivers: as many positions of the first receiver; by default receivers do not move.
    """

    kind: ClassVar[str] = "positions"
    sources: Places
    receivers: Places | None = None


Survey = CommonOffset | CommonMidpoint | Steps | Positions
Wanted = Callable[[Path], bool]
"""A choice of files to write."""


@dataclass(frozen=True)
class Shift:
    """The displacements of the sources and the receivers of a trace, metres along each axis."""

    sources: Vector
    receivers: Vector


@dataclass(frozen=True)
class Trace:
    """One trace, or shot, of a survey.

    sources, receivers: positions as placed, metres; values: of each receiver, SI units, shape (receivers, steps);
    findings: further results, by name (`FoundBuilt`).
    """

    sources: tuple[Vector, ...]
    receivers: tuple[Vector, ...]
    values: Array
    findings: Mapping[str, Array] = field(default_factory=dict)


class SurveyedModel(Model, Protocol):
    """A model whose sources and receivers can be moved."""

    @property
    def survey(self) -> Survey | None:
        """The survey of the file; None for a single run."""

    @property
    def anchors(self) -> tuple[Vector, Vector]:
        """Positions in metres of the first source and the first receiver that move."""

    def moved(self, shift: Shift) -> Self:
        """The same model without its survey, with sources and receivers moved; unbounded sources stay."""

    def build(self) -> SurveyedBuilt:
        """As in `Model`."""


@runtime_checkable
class OpenModel(Model, Protocol):
    """A model whose file leaves open the number of traces, the precision and the pictures."""

    def with_traces(self, traces: int) -> Self:
        """The same model with a survey of `traces` traces. Raises UsageError if it cannot have one."""

    def with_dtype(self, dtype: Dtype) -> Self:
        """The same model in a precision."""

    def without_pictures(self) -> Self:
        """The same model without pictures."""


class SurveyedBuilt(BuiltModel, Protocol):
    """A problem that is one trace of a survey."""

    @property
    def sources(self) -> tuple[Vector, ...]:
        """Positions of the sources as placed, metres."""

    @property
    def receivers(self) -> Mapping[str, Vector]:
        """Positions of the receivers as placed, metres, by their names in the problem, in the same order for all
        traces.
        """

    def write_survey(self, folder: Path, traces: Sequence[Trace], about: Mapping[str, str | int]) -> Path:
        """Write all traces into one file, the merged one; returns it.

        traces: read from the disk on access; about: attributes of the survey for the file, which do not depend on
        devices.
        """

    def write_others(self, merged: Path, wanted: Wanted) -> tuple[Path, ...]:
        """Write the other files of a survey, such as pictures, beside the merged one and from it; returns all of them,
        also those that are not wanted and stay as they are.
        """


@runtime_checkable
class FoundBuilt(BuiltModel, Protocol):
    """A problem with further results, which are computed from the final fields of a trace."""

    def findings(self, field: Callable[[str], Array]) -> Mapping[str, Array]:
        """The further results, arrays by name; field: a function from a field's name to its final values."""


MODEL = TypeVar("MODEL", bound=SurveyedModel)


def surveyed(model: Model) -> SurveyedModel | None:
    """The model if it describes a survey, else None."""
    return cast(SurveyedModel, model) if getattr(model, "survey", None) is not None else None


def shifts(model: SurveyedModel) -> tuple[Shift, ...]:
    """The shift of every trace. Raises UsageError for vectors of other dimensions than the model's."""
    assert model.survey is not None
    _check_axes(model.survey, len(model.shape))
    return tuple(_shifts(model.survey, *model.anchors))


def traces(model: MODEL) -> Iterator[MODEL]:
    """The model of each trace."""
    return (model.moved(shift) for shift in shifts(model))


def check_different(moves: Sequence[Shift], nodes: Callable[[Shift], object]) -> None:
    """Check that consecutive traces with different shifts have something on different nodes; nodes: those of a trace.

    Raises UsageError.
    """
    for number, (one, other) in enumerate(pairwise(moves), start=1):
        if one != other and nodes(one) == nodes(other):
            raise UsageError(
                f"survey: traces {number} and {number + 1} are expected to have sources or receivers on different "
                "nodes, got the same ones; take a longer step or a finer grid."
            )


def distances(sources: Array, receivers: Array) -> tuple[str, tuple[float, ...]]:
    """The axis of a section, its label and its value for each trace, metres: the midpoint of a source and a receiver
    or, if that does not move, their distance. The source is the first one that moves, or the first.

    sources: of each trace, shape (traces, sources, axes); receivers: shape (traces, axes).
    """
    moves = np.ptp(sources, axis=0).any(axis=1)
    first = sources[:, moves.argmax()] if moves.size else receivers
    middles, apart = (first + receivers) / 2, np.linalg.norm(receivers - first, axis=1)
    way = np.concatenate([[0.0], np.linalg.norm(np.diff(middles, axis=0), axis=1).cumsum()])
    if way[-1] > 0.1 * np.ptp(apart):
        moving = np.flatnonzero(np.ptp(middles, axis=0))
        if len(moving) == 1:
            return f"{'xyz'[moving[0]]} of the midpoint (m)", tuple(middles[:, moving[0]].tolist())
        return "distance along the survey (m)", tuple(way.tolist())
    return "distance of source and receiver (m)", tuple(apart.tolist())


def _shifts(survey: Survey, source: Vector, receiver: Vector) -> Iterator[Shift]:
    if isinstance(survey, Positions):
        placed = survey.receivers or (receiver,) * len(survey.sources)
        for one, two in zip(survey.sources, placed, strict=True):
            yield Shift(_less(one, source), _less(two, receiver))
        return
    if isinstance(survey, Steps):
        sources, receivers = survey.source_step, survey.receiver_step
    else:
        receivers = survey.step
        sources = survey.step if isinstance(survey, CommonOffset) else tuple(-x for x in survey.step)
    for number in range(survey.traces):
        yield Shift(tuple(number * x for x in sources), tuple(number * x for x in receivers))


def _check_axes(survey: Survey, axes: int) -> None:
    vectors: dict[str, Sequence[Vector]]
    if isinstance(survey, Positions):
        vectors = {"sources": survey.sources, "receivers": survey.receivers or ()}
        if survey.receivers is not None and len(survey.receivers) != len(survey.sources):
            raise UsageError(
                f"survey.receivers is expected to hold as many positions as survey.sources, got "
                f"{len(survey.receivers)} for {len(survey.sources)}; give as many, or leave it out."
            )
    elif isinstance(survey, Steps):
        vectors = {"source_step": (survey.source_step,), "receiver_step": (survey.receiver_step,)}
    else:
        vectors = {"step": (survey.step,)}
    for name, given in vectors.items():
        wrong = next((one for one in given if len(one) != axes), None)
        if wrong is not None:
            raise UsageError(
                f"survey.{name} is expected to have a number for each of the {axes} axes, got {len(wrong)}; correct it."
            )


def _less(one: Vector, two: Vector) -> Vector:
    return tuple(a - b for a, b in zip(one, two, strict=True))
