"""Figures of documents compared with those of this machine, one table per place in a document."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from peergrid.machine.units import digits, quantity
from peergrid.probe.experiment import Measurement
from peergrid.probe.profile import Profile
from peergrid.report.draw import table
from peergrid.report.figures import error, number
from peergrid.report.papers import PAPERS, STUDY, SYNC, Paper


def beside(profile: Profile, group: str) -> str:
    """The tables of one group; empty if no document has figures for it, or none of them was measured."""
    by_source: dict[str, list[Paper]] = {}
    for paper in PAPERS:
        if paper.group == group:
            by_source.setdefault(paper.source, []).append(paper)
    if not any(profile.find(paper.quantity, paper.at) for papers in by_source.values() for paper in papers):
        return ""
    tables = "".join(_table(profile, source, papers) for source, papers in by_source.items())
    source = f'<p class="method">{STUDY}</p>' if any(name.startswith(SYNC) for name in by_source) else ""
    return f'<h3>Beside the documents</h3><div class="cards">{tables}</div>{source}' if tables else ""


def _table(profile: Profile, source: str, papers: Sequence[Paper]) -> str:
    hardware = list(dict.fromkeys(name for paper in papers for name in paper.figures))
    rows = [
        (
            paper.what,
            *(quantity(paper.figures[name], paper.unit) if name in paper.figures else "–" for name in hardware),
            *_today(profile, paper),
        )
        for paper in papers
    ]
    head = ("", *hardware, "this machine", "±", "now / then")
    return f'<div class="card"><h4>{escape(source)}</h4>{table(head, rows)}</div>'


def _today(profile: Profile, paper: Paper) -> tuple[str, str, str]:
    """The number, its uncertainty, and its ratio to the document's first figure."""
    found = profile.find(paper.quantity, paper.at)
    if found is None:
        return "not measured", "", ""
    return number(found), error(found), _ratio(found, next(iter(paper.figures.values())))


def _ratio(found: Measurement, then: float) -> str:
    return f"× {digits(found.median / then)}" if then else ""
