"""The chart of a suite: a panel for each grid, a colour for each strategy, a star at the best."""

from __future__ import annotations

from peergrid import Options
from peergrid.bench.chart import chart
from peergrid.bench.measure import Measured


def row(series: str, base: str, count: int, seconds: float) -> Measured:
    given = {"host_seconds_per_step": None, "of_copy": None, "efficiency": None, "against": None, "watts": None}
    sizes = (f"cpu:{count}", count, (4, 4), Options("overlap"), 2, (seconds,), seconds, 0.0, 1 / seconds)
    return Measured(series, base, *sizes, notes=(), **given)  # type: ignore[arg-type]


def test_grids_of_other_sizes_have_panels_of_their_own() -> None:
    rows = [
        row(f"{size} {strategy}{deep}", f"{size}{deep}", count, seconds * (2 if deep else 3))
        for size, seconds in (("64² each", 1e-6), ("512²", 1e-5))
        for strategy in ("async", "peer")
        for deep in ("", ", deep")
        for count in (1, 2)
    ]
    figure = chart("Small grids", "seconds_per_step", rows)
    assert [place.get_title() for place in figure.axes] == ["64² each", "512²"]
    for place, best in zip(figure.axes, (2.0, 20.0), strict=True):
        lines = {line.get_label(): line for line in place.get_lines()}
        assert lines.keys() == {"async", "async, deep", "peer", "peer, deep", "best"}
        assert lines["async"].get_color() == lines["async, deep"].get_color() != lines["peer"].get_color()
        stars = [line for line in place.get_lines() if line.get_label() == "best"]
        assert [(*line.get_xdata(), *line.get_ydata()) for line in stars] == [(1, best), (2, best)]


def test_the_best_rate_is_the_largest() -> None:
    rows = [row("radar: peer", "", 1, 0.5), row("radar: async", "", 1, 0.25)]
    (place,) = chart("Radar", "gcells_per_s", rows).axes
    assert [list(line.get_ydata()) for line in place.get_lines() if line.get_label() == "best"] == [[4.0]]
