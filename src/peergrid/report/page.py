"""The page itself: topology, then one section per group with its pictures, tables and what follows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from peergrid.machine import picture
from peergrid.machine.units import digits, quantity, size
from peergrid.probe.compare import Flag, flags
from peergrid.probe.experiment import Result, Scalar
from peergrid.probe.profile import Outcome, Profile
from peergrid.probe.show import place
from peergrid.report.draw import curves, heat, table
from peergrid.report.follows import follows
from peergrid.report.papers import PAPERS, Paper
from peergrid.report.style import STYLE
from peergrid.report.views import GROUPS, VIEWS, Curve, Matrix, Table, View

SIZES = ("bytes", "footprint", "stride")


def page(profile: Profile) -> str:
    """The whole HTML document; it loads nothing and runs no script."""
    title = escape(f"Machine profile: {profile.machine.label}")
    body = "".join([_head(profile), _topology(profile), *(_group(profile, group) for group in _groups(profile))])
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'  # a browser asks for one otherwise, and the page would not be alone
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def _groups(profile: Profile) -> list[str]:
    """The known groups, then those of a profile with more experiments than this version knows."""
    return list(dict.fromkeys([*GROUPS, *(outcome.group for outcome in profile.probes)]))


def _anchor(group: str) -> str:
    return group.replace(" ", "-")


def _head(profile: Profile) -> str:
    links = "".join(f'<a href="#{_anchor(group)}">{escape(group)}</a> ' for group in _groups(profile))
    kind = "quick" if profile.quick else "full"
    software = profile.machine.software
    facts = ", ".join(
        f"{name} {value}"
        for name, value in (
            ("driver", software.driver),
            ("CUDA", software.cuda),
            ("Python", software.python),
            ("peergrid", profile.peergrid),
        )
        if value
    )
    return (
        f"<header><h1>{escape(profile.machine.label)}</h1>"
        f'<p class="faint">A {kind} profile of {escape(profile.created)}; {escape(facts)}.</p>'
        f"<nav>{links}</nav>{_flags(flags(profile))}</header>"
    )


def _flags(found: Sequence[Flag]) -> str:
    return "".join(
        f'<p class="slow">Slow: {escape(item.quantity.replace("_", " "))} at {escape(place(item.at))} is '
        f"{quantity(item.found, item.unit)}, expected about {quantity(item.expected, item.unit)}.</p>"
        for item in found
    )


def _topology(profile: Profile) -> str:
    machine = profile.machine
    lost = "".join(f"<li>{escape(item.what)}: {escape(item.why)}</li>" for item in machine.missing)
    costs = [item for item in machine.settings if item.cost]
    costly = "".join(f"<li>{escape(f'{item.name}={item.value}')}: {escape(item.cost)}</li>" for item in costs)
    return (
        f'<section><h2>The machine</h2><figure class="wide">{picture(machine)}</figure>'
        + (f"<p>Not there, and why:</p><ul>{lost}</ul>" if lost else "")
        + (f"<p>Settings in force that cost performance:</p><ul>{costly}</ul>" if costly else "")
        + "</section>"
    )


def _group(profile: Profile, group: str) -> str:
    outcomes = [outcome for outcome in profile.probes if outcome.group == group]
    told = f'<p class="follows">{escape(follows(profile, group))}</p>' if group in GROUPS else ""
    body = "".join(_outcome(outcome) for outcome in outcomes)
    return (
        f'<section id="{_anchor(group)}"><h2>{escape(group.capitalize())}</h2>{told}{body}'
        f"{_papers(profile, group)}</section>"
    )


def _outcome(outcome: Outcome) -> str:
    rows = ", ".join(outcome.rows)
    head = f"<h3>{escape(outcome.title)}</h3>"
    if outcome.reason:
        why = "Not given" if outcome.status == "done" else outcome.status.capitalize()
        head += f"<p>{escape(why)}: {escape(outcome.reason)}.</p>"
    known = [view for view in VIEWS if any(item.quantity == view.quantity for item in outcome.results)]
    shown = {view.quantity for view in known}
    rest = list(dict.fromkeys(item.quantity for item in outcome.results if item.quantity not in shown))
    views: list[View] = [*known, *(Table(name, name.replace("_", " ")) for name in rest)]
    body = "".join(_view(view, [r for r in outcome.results if r.quantity == view.quantity]) for view in views)
    return f'{head}{body}<p class="method">{escape(outcome.method)} Rows {escape(rows)}.</p>'


def _view(view: View, results: Sequence[Result]) -> str:
    if isinstance(view, Matrix):
        return f"<p>{escape(view.title)}</p>" + _matrices(view, results)
    if isinstance(view, Curve):
        return f"<p>{escape(view.title)}</p>" + _curves(view, results)
    return f"<p>{escape(view.title)}</p>" + _table(results)


def _matrices(view: Matrix, results: Sequence[Result]) -> str:
    parts = []
    for name, part in _by_others(results, (view.rows, view.columns)).items():
        rows, columns = (_sorted(item.at.get(key, "") for item in part) for key in (view.rows, view.columns))
        cells = {(str(i.at.get(view.rows, "")), str(i.at.get(view.columns, ""))): i.median for i in part}
        corner = f"{view.rows} \\ {view.columns}".replace("_", " ")
        parts.append(f"<h4>{escape(name)}</h4>" if name else "")
        parts.append(heat(cells, rows, columns, corner, part[0].unit))
    return "".join(parts)


def _curves(view: Curve, results: Sequence[Result]) -> str:
    by_line = _by_others(results, (view.x,))
    if any(len(part) > 1 for part in by_line.values()):  # lone points clutter the legend; they are in the numbers
        by_line = {name: part for name, part in by_line.items() if len(part) > 1}
    lines = {name: [(float(r.at.get(view.x, 0)), r.median) for r in part] for name, part in by_line.items()}
    return curves(lines, view.x, results[0].unit) + _detail(results)


def _table(results: Sequence[Result]) -> str:
    rows = [(place(_readable(r.at)) or "here", quantity(r.median, r.unit), _error(r)) for r in results]
    return table(("at", "median", "±"), rows)


def _detail(results: Sequence[Result]) -> str:
    """The numbers behind curves, folded away on the screen."""
    return f"<details><summary>{len(results)} numbers</summary>{_table(results)}</details>"


def _error(item: Result) -> str:
    return quantity(item.uncertainty, item.unit) if item.uncertainty else "0"


def _readable(at: dict[str, Scalar]) -> dict[str, Scalar]:
    return {key: size(float(value)) if key in SIZES else value for key, value in at.items()}


def _by_others(results: Iterable[Result], used: Sequence[str]) -> dict[str, list[Result]]:
    """Results by the coordinates that are not `used`; those that never vary are left out of the names."""
    items = list(results)
    others = [key for key in dict.fromkeys(k for r in items for k in r.at) if key not in used]
    varying = [key for key in others if len({str(r.at.get(key)) for r in items}) > 1]
    found: dict[str, list[Result]] = {}
    for item in items:
        at = _readable({key: item.at[key] for key in varying if key in item.at})
        found.setdefault(place(at), []).append(item)
    return found


def _sorted(values: Iterable[Scalar]) -> list[str]:
    """Distinct coordinates as text, numbers by size."""
    return [str(v) for v in sorted(set(values), key=lambda v: (isinstance(v, str), v if isinstance(v, str) else +v))]


def _papers(profile: Profile, group: str) -> str:
    mine = [paper for paper in PAPERS if paper.group == group]
    if not mine:
        return ""
    rows = [(paper.what, _figures(paper), _today(profile, paper), paper.source) for paper in mine]
    return "<h3>Beside the documents</h3>" + table(("what", "document", "this machine", "source"), rows)


def _figures(paper: Paper) -> str:
    return ", ".join(f"{quantity(value, paper.unit)} ({name})" for name, value in paper.figures.items())


def _today(profile: Profile, paper: Paper) -> str:
    found = profile.find(paper.quantity, paper.at)
    if found is None:
        return "not measured"
    number = quantity(found.median, found.unit) if found.unit else digits(found.median)
    return f"{number} ± {quantity(found.uncertainty, found.unit)}"
