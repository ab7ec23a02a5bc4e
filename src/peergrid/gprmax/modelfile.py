"""The reader of model files of the kind fdtd3d: the items of an input file, from tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from peergrid.errors import UsageError
from peergrid.gprmax.assemble import Plan
from peergrid.gprmax.model import InputModel
from peergrid.gprmax.survey import check_traces, moving
from peergrid.gprmax.tables import Output, Tables
from peergrid.gprmax.text import Command
from peergrid.grid import Index
from peergrid.io.schema import read_table
from peergrid.models.fdtd3d.domain import Component, live
from peergrid.models.model import Snapshots
from peergrid.models.requirements import check_distinct
from peergrid.models.survey import Shift, Survey, check_different, shifts


@dataclass(frozen=True, eq=False)
class TableModel(InputModel):
    """A model file as data; its survey is that of its table."""

    def with_traces(self, traces: int) -> Self:
        """Raises UsageError: the number of traces is that of the file."""
        raise UsageError("'-n' is for input files of gprMax, got a model file; set the table [survey] there.")


def read(table: Mapping[str, Any]) -> TableModel:
    """The model of a file's tables; a `Reader` of `models.model`."""
    tables = read_table(Tables, table)
    _check(tables)
    plan = Plan(tuple(tables.items()))
    survey, flat = tables.survey, plan.frame.flat
    if survey is not None and flat is not None:
        survey = _in_plane(survey, flat)
    model = TableModel(
        plan,
        tables.run,
        _snapshots(tables.output, plan),
        dtype=tables.grid.dtype,
        given=survey,
        pictures=tables.output.drawn,
    )
    _check_survey(model)
    model.check_frames()
    _check_output(tables.output, plan)
    return model


def _snapshots(output: Output, plan: Plan) -> Snapshots:
    there = live(plan.mode)
    for name in output.fields:
        if name not in there:
            raise UsageError(f"output.fields is expected to be fields of mode {plan.mode}, got '{name}'; take it out.")
    usual: Component = "Ez" if "Ez" in there else there[0]
    return Snapshots(output.snapshots, output.fields or (usual,), output.stride)


def _check(tables: Tables) -> None:
    grid = tables.grid
    if (grid.time_window is None) == (grid.steps is None):
        got = "neither" if grid.steps is None else "both"
        raise UsageError(f"grid is expected to have a time_window or a number of steps, got {got}; give one of them.")
    for number, receiver in enumerate(tables.receivers, start=1):
        check_distinct(receiver.outputs, f"receiver[{number}].fields")
    for snapshot in tables.snapshots:
        if (snapshot.time is None) == (snapshot.after is None):
            got = "neither" if snapshot.time is None else "both"
            raise snapshot.command.fault("to have a time, or steps that it is after", got, "give one of them")


def _in_plane(survey: Survey, flat: int) -> Survey:
    """A survey of a plane: of vectors with three numbers those along its two axes."""

    def cut(given: tuple[Any, ...]) -> tuple[Any, ...]:
        if given and isinstance(given[0], tuple):
            return tuple(map(cut, given))
        return given[:flat] + given[flat + 1 :] if len(given) == 3 else given

    changed: dict[str, Any] = {name: cut(given) for name, given in vars(survey).items() if isinstance(given, tuple)}
    return replace(survey, **changed)


def _check_output(output: Output, plan: Plan) -> None:
    frame = plan.frame
    check_distinct(output.fields, "output.fields")
    if output.surfaces and frame.flat is not None:
        raise UsageError("output.surfaces is expected with a model in three dimensions, got a plane; leave it out.")
    if output.surfaces and not output.snapshots:
        raise UsageError(
            f"output.snapshots is expected to be above 0 for output.surfaces = {output.surfaces:g}, got 0; set the "
            "number of steps between two snapshots."
        )
    if output.through is not None:
        frame.source(Command.table("output.through"), output.through)


def _check_survey(model: TableModel) -> None:
    """Check that each trace has its dipoles and receivers in the domain, on other nodes than the trace before."""
    if model.given is None:
        return
    moves = shifts(model)
    check_different(moves, partial(_nodes, model))
    check_traces(model.plan, ((model.nodes(shift.sources), model.nodes(shift.receivers)) for shift in moves))


def _nodes(model: TableModel, shift: Shift) -> tuple[Index, ...]:
    """The nodes by which the dipoles and the receivers of a trace are moved; none where there are no such objects."""
    ways = zip((shift.sources, shift.receivers), moving(model.plan), strict=True)
    return tuple(model.nodes(way) if placed else () for way, placed in ways)
