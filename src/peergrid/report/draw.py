"""Heat maps, curves and tables as HTML and inline SVG, for any quantity."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from peergrid.machine.units import count, digits, prefixed, quantity, scale, size

WIDE, HIGH, LEFT, RIGHT, BELOW, TOP = 640, 300, 64, 36, 56, 30
COLOURS = tuple(f"var(--line-{at})" for at in range(8))
DASHES = ("", "6 3", "2 3", "8 3 2 3")

LEAST = 1e-30

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Cell:
    """A number of a matrix, and its uncertainty in words."""

    value: float
    error: str


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts; the first column names the row."""
    top = "".join(f'<th scope="col">{escape(word)}</th>' for word in head)
    body = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(cell)}</th>' if at == 0 else f"<td>{escape(cell)}</td>"
            for at, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'


def heat(
    cells: Mapping[tuple[str, str], Cell],
    rows: Sequence[str],
    columns: Sequence[str],
    corner: str,
    unit: str,
    caption: str = "",
    shaded: bool = True,
) -> str:
    """A matrix of numbers with one unit prefix, on a darker ground for larger numbers.

    Numbers that differ by less than a tenth look alike, so that noise makes no pattern.
    """
    finite = [cell.value for cell in cells.values() if math.isfinite(cell.value)]
    high = max(finite, default=0.0)
    low = min([*finite, 0.9 * high])
    factor, prefix = _prefix(high, unit)
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in columns)
    body = ""
    for row in rows:
        line = "".join(_cell(cells.get((row, column)), low, high, factor, shaded) for column in columns)
        body += f'<tr><th scope="row">{escape(row)}</th>{line}</tr>'
    kind = "heat" if shaded else "plain"
    words = ", ".join(filter(None, [caption, prefixed(prefix, unit)]))
    top = f"<caption>{escape(words)}</caption>" if words else ""
    return (
        f'<div class="wide"><table class="{kind}">{top}<thead><tr>'
        f"<th>{escape(corner)}</th>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell | None, low: float, high: float, factor: float, shaded: bool) -> str:
    if cell is None or not math.isfinite(cell.value):
        return "<td>–</td>"
    share = (cell.value - low) / (high - low) if high > low else 0.5
    shade = f' style="--heat:{8 + 52 * share:.0f}%"' if shaded else ""
    shown = count(cell.value) if factor == 1.0 else digits(cell.value / factor, full=True)
    return f'<td{shade} title="± {escape(cell.error)}">{shown}</td>'


def curves(
    lines: Mapping[str, Sequence[Point]], x_name: str, unit: str, title: str = "", x_in_bytes: bool = False
) -> str:
    """Lines over logarithmic axes, with a legend below; points that no such axis can hold are left out."""
    kept = {name: [p for p in points if all(LEAST < x < 1 / LEAST for x in p)] for name, points in lines.items()}
    everything = [point for points in kept.values() for point in points]
    if not everything:
        return "<p>No positive number to draw.</p>"
    xs, ys = _range([p[0] for p in everything]), _rounded(_range([p[1] for p in everything]))
    parts = [_axes(xs, ys, x_name, unit, x_in_bytes)]
    parts += [_line(at, points, xs, ys) for at, points in enumerate(kept.values())]
    legend = "".join(_legend(at, name) for at, name in enumerate(kept)) if len(kept) > 1 or "" not in kept else ""
    return (
        f'<figure><svg viewBox="0 0 {WIDE} {HIGH + BELOW + TOP}" role="img" class="curve">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
        f'<figcaption class="legend">{legend}</figcaption></figure>'
    )


def _range(values: Sequence[float]) -> Point:
    """The interval of all values, with a little room at both ends."""
    low, high = min(values), max(values)
    if high / low < 1.001:
        return low / 2, high * 2
    margin = (high / low) ** 0.04
    return low / margin, high * margin


def _rounded(span: Point) -> Point:
    """A span that ends at a labelled value where one is near, so that lines at its edge can be read."""
    low, high = span
    steps = _steps(low / 10, high * 10)
    below, above = steps[bisect.bisect(steps, low) - 1], steps[bisect.bisect_left(steps, high)]
    return (below if low < 1.5 * below else low), (above if above < 1.5 * high else high)


def _steps(low: float, high: float, times: Sequence[int] = (1, 2, 5)) -> list[float]:
    """So many times powers of ten, between `low` and `high`."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [value for at in decades for value in (n * 10.0**at for n in times) if low <= value <= high]


def _place(point: Point, xs: Point, ys: Point) -> Point:
    across = math.log(point[0] / xs[0]) / math.log(xs[1] / xs[0])
    up = math.log(point[1] / ys[0]) / math.log(ys[1] / ys[0])
    return LEFT + across * (WIDE - LEFT - RIGHT), TOP + HIGH * (1 - up)


def _line(at: int, points: Sequence[Point], xs: Point, ys: Point) -> str:
    colour, dash = COLOURS[at % len(COLOURS)], DASHES[at // len(COLOURS) % len(DASHES)]
    places = [_place(point, xs, ys) for point in sorted(points)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="{colour}"/>' for x, y in places)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>{dots}'


def _axes(xs: Point, ys: Point, x_name: str, unit: str, x_in_bytes: bool) -> str:
    parts = []
    for value in _ticks(xs, 2):
        x, _ = _place((value, ys[0]), xs, ys)
        label = size(value) if x_in_bytes else digits(value)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{TOP + HIGH}"/>')
        parts.append(f'<text class="tick" x="{x:.1f}" y="{TOP + HIGH + 24}">{label}</text>')
    factor, prefix = _prefix(math.sqrt(ys[0]) * math.sqrt(ys[1]), unit)
    for value in _ticks(ys, 10):
        _, y = _place((xs[0], value), xs, ys)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDE - RIGHT}"/>')
        parts.append(f'<text class="tick end" x="{LEFT - 6}" y="{y + 4:.1f}">{digits(value / factor)}</text>')
    parts.append(f'<text class="tick start" x="4" y="14">{escape(prefixed(prefix, unit))}</text>')
    parts.append(f'<text class="tick" x="{(WIDE + LEFT) / 2}" y="{TOP + HIGH + 46}">{escape(x_name)}</text>')
    return "".join(parts)


def _ticks(span: Point, base: int) -> list[float]:
    """Powers of the base inside the span, at most about eight; round numbers between when decades are few."""
    low, high = math.log(span[0], base), math.log(span[1], base)
    step = max(1, math.ceil((high - low) / 7))
    powers = [float(base) ** at for at in range(math.ceil(low), math.floor(high) + 1, step)]
    if base == 10 and len(powers) < 3:
        powers = _steps(*span)
    if len(powers) < 2:
        powers = _steps(*span, range(1, 10))
    if len(powers) < 2:
        powers = [span[0] * (span[1] / span[0]) ** share for share in (0.1, 0.5, 0.9)]
    return powers


def _legend(at: int, name: str) -> str:
    colour, dash = COLOURS[at % len(COLOURS)], DASHES[at // len(COLOURS) % len(DASHES)]
    sample = (
        f'<svg viewBox="0 0 24 8" width="24" height="8" aria-hidden="true"><path d="M0 4H24" stroke="{colour}" '
        f'stroke-width="3" stroke-dasharray="{dash}"/></svg>'
    )
    return f"<span>{sample} {escape(name or 'all')}</span> "


def _prefix(value: float, unit: str) -> tuple[float, str]:
    """The factor and prefix of a whole matrix; units without prefixes stay as they are."""
    if quantity(1e9, unit).startswith("1 G"):
        return scale(value)
    return 1.0, ""
