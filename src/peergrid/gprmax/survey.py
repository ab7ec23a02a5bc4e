"""Surveys of an input file: the places of dipoles and receivers in each trace, by #src_steps and #rx_steps, or #study.

All dipoles move together, and all receivers; voltage sources and transmission lines stay.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from math import isfinite

from peergrid.errors import UsageError
from peergrid.files import read_plain, reason
from peergrid.gprmax.assemble import Plan
from peergrid.gprmax.items import ReceiverNode, ReceiverRows, Source, SourceKind, Study
from peergrid.gprmax.objects import Place
from peergrid.gprmax.shapes import nearest
from peergrid.gprmax.text import Command
from peergrid.grid import Index
from peergrid.io.rule import shown
from peergrid.models.fdtd3d.check import fault_of_node
from peergrid.models.survey import Positions, Steps, Vector

DIPOLES: Mapping[str, SourceKind] = {"hertzian_dipole": "electric_dipole", "magnetic_dipole": "magnetic_dipole"}
MOVED = ("dipoles", "receivers")
POSITION = ("x_m", "y_m", "z_m")
LARGEST = 1 << 26  # bytes of a table
Row = Mapping[str, str]


def anchors(plan: Plan) -> tuple[Vector, Vector]:
    """Positions of the first dipole and the first receiver, metres along the axes of the grid; without one 0."""
    dipoles, receivers = (_at(plan, next(iter(objects.values()), (0, 0, 0))) for objects in _objects(plan))
    return dipoles, receivers


def moving(plan: Plan) -> tuple[list[tuple[Command, Place]], list[tuple[Command, Place]]]:
    """The commands and places of what traces move: dipoles, and receivers with the corners of their rows."""
    dipoles = [(one.command, one.at) for one in plan.of(Source) if one.kind in DIPOLES.values()]
    heard = [(one.command, one.at) for one in plan.of(ReceiverNode)]
    heard += [(one.command, corner) for one in plan.of(ReceiverRows) for corner in (one.lo, one.hi)]
    return dipoles, heard


def stepping(plan: Plan, traces: int) -> Steps:
    """`traces` traces by #src_steps and #rx_steps.

    Raises UsageError if nothing moves, or if something would leave the domain.
    """
    found = [
        tuple(nearest(s / d) for s, d in zip(plan.settings.get(name, (0.0,) * 3), plan.frame.spacing, strict=True))
        for name in ("src_steps", "rx_steps")
    ]
    if not any(any(step) and placed for step, placed in zip(found, moving(plan), strict=True)):
        raise UsageError(
            f"A survey of {traces} traces is expected to have a line '#src_steps: …' or '#rx_steps: …' that moves its "
            "dipoles or receivers, got none; add one, or leave out '-n'."
        )
    check_traces(plan, ((_times(n, found[0]), _times(n, found[1])) for n in range(traces)))
    sources, receivers = (_at(plan, step) for step in found)
    return Steps(traces, sources, receivers)


def check_traces(plan: Plan, ways: Iterable[tuple[Index, Index]]) -> None:
    """Check that dipoles and receivers stay on nodes of theirs; ways: the nodes by which each trace moves either.

    Raises UsageError about the first trace in which one does not.
    """
    frame, (_, heard) = plan.frame, moving(plan)
    dipoles = [(one, frame.source(one.command, one.at)) for one in plan.of(Source) if one.kind in DIPOLES.values()]
    receivers = [(command, frame.source(command, point)) for command, point in heard]
    for number, (way, way_of_receivers) in enumerate(ways, start=1):
        for dipole, node in dipoles:
            if fault := fault_of_node(_further(node, way), dipole.component, frame.nodes, frame.flat):
                raise UsageError(f"{dipole.command.of_trace(number).what}{fault}.")
        for command, node in receivers:
            frame.inside(command.of_trace(number), _further(node, way_of_receivers))


def _times(number: int, step: Index) -> Index:
    return tuple(number * s for s in step)


def _further(node: Index, way: Index) -> Index:
    return tuple(i + s for i, s in zip(node, way, strict=True))


def positions(plan: Plan, study: Study) -> Positions:
    """The cases of a #study, each a trace. Raises UsageError if it changes more than positions."""
    cases: dict[str, dict[str, tuple[str, Index]]] = {}
    for where, row in _rows(study):
        given = [name for name, value in row.items() if value and name not in ("case_id", "object_id", *POSITION)]
        if given:
            raise UsageError(
                f"{where}: a study is expected to give positions alone, got {shown(given[0])} = "
                f"'{shown(row[given[0]])}'; run that case on its own."
            )
        case = cases.setdefault(row["case_id"], {})
        if row["object_id"] in case:
            raise UsageError(
                f"{where}: '{shown(row['object_id'])}' is expected once in a case, got it again; leave one."
            )
        case[row["object_id"]] = where, _node(plan, study, where, row)
    if not cases:
        raise study.command.fault("to name a table with cases", "none", "add a row for each trace")
    dipoles, receivers = _objects(plan)
    for states in cases.values():
        for name, (where, _) in states.items():
            if name not in dipoles and name not in receivers:
                known = ", ".join((*dipoles, *receivers))
                raise UsageError(
                    f"{where}: object_id is expected to be one of {known}, got '{shown(name)}'; correct it."
                )
    ways = [(_way(dipoles, case, "dipoles"), _way(receivers, case, "receivers")) for case in cases.values()]
    check_traces(plan, ways)
    first, second = (next(iter(objects.values()), (0, 0, 0)) for objects in (dipoles, receivers))
    return Positions(
        tuple(_at(plan, _further(first, way)) for way, _ in ways),
        tuple(_at(plan, _further(second, way)) for _, way in ways),
    )


def _objects(plan: Plan) -> tuple[dict[str, Index], dict[str, Index]]:
    """The nodes of dipoles and of receivers by their names in a study."""
    dipoles: dict[str, Index] = {}
    for word, kind in DIPOLES.items():
        own = [one for one in plan.of(Source) if one.kind == kind]
        dipoles |= {f"{word}_{n}": plan.frame.source(one.command, one.at) for n, one in enumerate(own, start=1)}
    receivers = {
        f"rx_{n}": plan.frame.source(one.command, one.at) for n, one in enumerate(plan.of(ReceiverNode), start=1)
    }
    return dipoles, receivers


def _way(objects: Mapping[str, Index], case: Mapping[str, tuple[str, Index]], what: str) -> Index:
    """The nodes by which some objects move in a case. All move together; those not named stay."""
    if not objects:
        return (0, 0, 0)
    ways = {
        tuple(a - b for a, b in zip(case[name][1] if name in case else node, node, strict=True))
        for name, node in objects.items()
    }
    if len(ways) > 1:
        where = next(where for where, _ in case.values())
        raise UsageError(f"{where}: all {what} are expected to move together, got {len(ways)} ways; name all of them.")
    return ways.pop()


def _rows(study: Study) -> Iterable[tuple[str, Row]]:
    """The rows of a table, each with its place in words."""
    try:
        rows = list(csv.reader(read_plain(study.file, LARGEST).decode("utf-8-sig").splitlines()))
    except (OSError, ValueError, csv.Error) as error:
        raise study.command.fault("to name a table that can be read", reason(error), "correct the path") from None
    head = [name.strip() for name in rows[0]] if rows else []
    if not {"case_id", "object_id", *POSITION} <= set(head):
        raise study.command.fault(
            f"to name a table with the columns case_id, object_id, {', '.join(POSITION)}",
            shown(",".join(head)) or "none", "add what is missing",
        )  # fmt: skip
    for number, words in enumerate(rows[1:], start=2):
        if any(words):
            row = dict(zip(head, (word.strip() for word in [*words, *[""] * len(head)]), strict=False))
            yield f"{study.file.name}, line {number}", row


def _node(plan: Plan, study: Study, where: str, row: Row) -> Index:
    try:
        x, y, z = (float(row[name]) for name in POSITION)
    except ValueError:
        x = y = z = float("nan")
    if not all(map(isfinite, (x, y, z))):
        got = ", ".join(shown(row[name]) for name in POSITION)
        raise UsageError(f"{where}: x_m, y_m and z_m are expected to be finite numbers, got '{got}'; correct them.")
    return plan.frame.source(Command(study.command.name, study.command.text, where), (x, y, z))


def _at(plan: Plan, node: Index) -> Vector:
    """Metres of a node along the axes of the grid."""
    found = zip(node, plan.frame.spacing, strict=True)
    return tuple(i * d for axis, (i, d) in enumerate(found) if axis != plan.frame.flat)
