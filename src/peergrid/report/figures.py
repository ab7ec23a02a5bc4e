"""Results as figures, by the views: coordinates become rows, columns, lines and words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from peergrid.machine.units import count, digits, quantity, size
from peergrid.probe.experiment import Measurement, Scalar
from peergrid.report.draw import Cell, curves, heat, table
from peergrid.report.views import Answer, Check, Curve, Matrix, View

SIZES = ("bytes", "footprint", "stride")
NAMES = {
    "blocks_per_multiprocessor": "blocks",
    "devices": "GPUs",
    "independent": "loads in flight",
    "size": "threads of the group",
}
PHRASES: dict[tuple[str, Scalar], str] = {
    ("modifier", "ca"): "by ld.ca, which may stay in the L1",
    ("modifier", "cg"): "by ld.cg, which stays in an L2",
    ("modifier", "cv"): "by ld.cv, which is fetched again",
    ("place", "remote touched"): "remote, read by its owner before",
    ("pass", "first"): "first pass",
    ("pass", "again"): "second pass",
    ("route", "host"): "through the host",
    ("separated", "yes"): "separated",
    ("separated", "no"): "not separated",
    ("ways", 1): "one way",
    ("ways", 2): "both ways",
}
SPEAKING = ("source", "target", "reader", "owner")  # matrices whose axes the title names


def figure(view: View, results: Sequence[Measurement]) -> str:
    """One view of the results of one quantity."""
    if isinstance(view, Matrix):
        return _matrices(view, results)
    if isinstance(view, Curve):
        return _curves(view, results)
    if isinstance(view, Check):
        return _card(view.title, _checked(view, results))
    if isinstance(view, Answer):
        return _card(view.title, _answers(view, results))
    return _card(view.title, table_of(results))


def table_of(results: Sequence[Measurement]) -> str:
    """One line per number, one column per coordinate that has any."""
    keys = list(dict.fromkeys(key for item in results for key in item.at))
    kept = [key for key in keys if _varies(results, key)] or keys[:1]
    rows = [(*(_cell(key, r.at.get(key, "")) for key in kept), number(r), error(r)) for r in results]
    return table((*(_name(key) for key in kept), "median", "±"), rows)


def number(item: Measurement) -> str:
    """The median with its unit; a count in full."""
    return quantity(item.median, item.unit) if item.unit else count(item.median)


def error(item: Measurement) -> str:
    """The uncertainty as a share of the median."""
    if not item.uncertainty or not item.median:
        return "0"
    share = 100 * item.uncertainty / abs(item.median)
    return f"{share:.0f} %" if share >= 2 else f"{share:.1f} %"


def label(at: Mapping[str, Scalar]) -> str:
    """Coordinates in a few words: texts speak for themselves, numbers and yes or no keep their names."""
    return ", ".join(_coordinate(key, value) for key, value in at.items())


def _coordinate(key: str, value: Scalar) -> str:
    speaks = isinstance(value, str) and value not in ("with", "without")
    return PHRASES.get((key, value), str(value) if speaks else f"{_name(key)} {_cell(key, value)}")


def _cell(key: str, value: Scalar) -> str:
    return str(value) if isinstance(value, str) or key not in SIZES else size(value)


def _name(key: str) -> str:
    return NAMES.get(key, key).replace("_", " ")


def _card(title: str, content: str) -> str:
    return f'<div class="card"><h4>{escape(title[:1].upper() + title[1:])}</h4>{content}</div>'


def _checked(view: Check, results: Sequence[Measurement]) -> str:
    """The largest distance of the ratios from 1; for copies through the host, which should not use the links,
    from 0.
    """
    across = [item.median for item in results if item.at.get("route") != "host"]
    through_host = [item.median for item in results if item.at.get("route") == "host"]
    off, crossed = _farthest(across, 1.0), _farthest(through_host, 0.0)
    words = []
    if across:
        deviation = f"differ from 1 by at most {digits(100 * off)} %" if off else "are 1"
        words.append(f"{len(across)} ratios {deviation}")
    if through_host:
        share = f"{digits(100 * crossed)} %" if crossed else "none"
        words.append(f"through the host {share} of the bytes crossed a link")
    matrix = Matrix(view.quantity, view.rows, view.columns, view.title, shaded=False)
    folded = f"<details><summary>{len(results)} ratios</summary>{_heat(matrix, results, '')}</details>"
    return f"<p>{escape('; '.join(words))}.</p>{folded}"


def _farthest(values: Sequence[float], goal: float) -> float:
    return max((abs(value - goal) for value in values), default=0.0)


def _matrices(view: Matrix, results: Sequence[Measurement]) -> str:
    parts = _by_others(results, (*view.rows, view.columns))
    return "".join(
        _card(name or view.title, _heat(view, part, view.title if name else "")) for name, part in parts.items()
    )


def _heat(view: Matrix, part: Sequence[Measurement], caption: str) -> str:
    rows = _sorted(tuple(item.at.get(key, "") for key in view.rows) for item in part)
    columns = _sorted((item.at.get(view.columns, ""),) for item in part)
    cells: dict[tuple[str, str], Cell] = {
        (_row(view, item), str(item.at.get(view.columns, ""))): Cell(item.median, error(item)) for item in part
    }
    names = [_words(view.rows, row) for row in rows]
    heads = [str(column[0]) for column in columns]
    corner = "" if view.columns in SPEAKING else _name(view.columns)
    return heat(cells, names, heads, corner, part[0].unit, caption, view.shaded)


def _row(view: Matrix, item: Measurement) -> str:
    return _words(view.rows, tuple(item.at.get(key, "") for key in view.rows))


def _words(keys: Sequence[str], values: tuple[Scalar, ...]) -> str:
    """The name of a row; a single coordinate needs no key, since the title names it."""
    if len(keys) == 1:
        return str(values[0])
    return label({key: value for key, value in zip(keys, values, strict=True) if value != ""})


def _curves(view: Curve, results: Sequence[Measurement]) -> str:
    panels: dict[Scalar, list[Measurement]] = {}
    for item in results:
        panels.setdefault(item.at.get(view.panel, ""), []).append(item)
    cards = []
    for panel, part in panels.items():
        title = f"{view.title}: {label({view.panel: panel})}" if panel != "" else view.title
        lines = _lines(view, part)
        if all(len(points) < 3 for points in lines.values()):
            cards.append(_card(title, table_of(part)))
            continue
        folded = f"<details><summary>{len(part)} numbers</summary>{table_of(part)}</details>"
        drawn = curves(lines, _name(view.x), part[0].unit, title, view.x in SIZES)
        cards.append(_card(title, drawn + folded))
    return "".join(cards)


def _lines(view: Curve, results: Sequence[Measurement]) -> dict[str, list[tuple[float, float]]]:
    """The lines of a picture by name: points (x, median). Lone points would clutter it; they are in the numbers."""
    used = (view.x, view.panel)
    kept = [item for points in _by_others(results, used).values() if len(points) > 1 for item in points]
    return {
        name: [(item.number(view.x), item.median) for item in points] for name, points in _by_others(kept, used).items()
    }


def _answers(view: Answer, results: Sequence[Measurement]) -> str:
    words = dict(view.words)
    rows = [(_subject(view, r) or "here", words.get(r.median, number(r))) for r in results]
    return table(("", "answer"), rows)


def _subject(view: Answer, item: Measurement) -> str:
    """The subject of an answer; other profiles may lack coordinates that the phrase names."""
    try:
        return view.phrase.format(**item.at) or label(item.at)
    except (KeyError, IndexError):
        return label(item.at)


def _varies(results: Sequence[Measurement], key: str) -> bool:
    return len({str(item.at.get(key)) for item in results}) > 1


def _by_others(results: Sequence[Measurement], used: Sequence[str]) -> dict[str, list[Measurement]]:
    """Results by the coordinates that are not `used`; those that never vary are left out of the names."""
    others = [key for key in dict.fromkeys(k for r in results for k in r.at) if key not in used]
    varying = [key for key in others if _varies(results, key)]
    found: dict[str, list[Measurement]] = {}
    for item in results:
        found.setdefault(label({key: item.at[key] for key in varying if key in item.at}), []).append(item)
    return found


def _sorted(values: Iterable[tuple[Scalar, ...]]) -> list[tuple[Scalar, ...]]:
    """Distinct coordinates: numbers by size, texts in the order of measuring."""
    distinct = list(dict.fromkeys(values))
    order = {value: at for at, value in enumerate(distinct)}
    return sorted(distinct, key=lambda v: [(1, order[v]) if isinstance(one, str) else (0, one) for one in v])
