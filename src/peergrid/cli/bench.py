"""`peergrid bench`: rates of the machine's devices on known problems, as a table, JSON and a chart."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from peergrid.bench.chart import draw
from peergrid.bench.circumstances import about
from peergrid.bench.measure import Measured, copy_bandwidth, measure
from peergrid.bench.problems import forget
from peergrid.bench.suites import LARGE, LITTLE, SUITES, Suite
from peergrid.cli.choose import AsJson, DeviceSpec
from peergrid.errors import DoesNotFit, UsageError
from peergrid.io.atomic import replacing
from peergrid.runtime.devices import Devices, parse_devices

WIDTH = 140  # columns of a table that goes to a file


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help="ladder, jacobi, fdtd or small.")],
    devices: DeviceSpec = "auto",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write NAME.json and NAME.png here.")
    ] = None,
    only: Annotated[str, typer.Option("--only", metavar="WORD", help="Only series with this word in their name.")] = "",
    as_json: AsJson = False,
) -> None:
    """Measure known problems on 1, 2, 4, … devices."""
    if name not in SUITES:
        raise UsageError(f"A benchmark is one of {', '.join(SUITES)}, got '{name}'.")
    suite, chosen = SUITES[name], parse_devices(devices)
    bandwidth = copy_bandwidth(chosen)
    console = Console(stderr=True, quiet=as_json)
    rows: list[Measured] = []
    for row in _rows(suite, chosen, bandwidth, only, console):
        rows.append(row)
        console.print(_line(row), highlight=False)
    if not rows:
        raise UsageError(f"No series of '{name}' has '{only}' in its name; leave '--only' out to see them all.")
    found = {"benchmark": name, "copy_bytes_per_s": bandwidth, "about": asdict(about())}
    text = json.dumps(found | {"rows": [asdict(row) for row in rows]}, indent=2)
    if output is not None:
        with replacing(output / f"{name}.json") as partial:
            partial.write_text(text + "\n")
        with replacing(output / f"{name}.png") as partial:
            draw(partial, suite.title, suite.metric, rows)
    if as_json:
        typer.echo(text)
    else:
        Console(width=None if sys.stdout.isatty() else WIDTH).print(_table(suite, rows, bandwidth))


def counts_of(devices: int) -> tuple[int, ...]:
    """1, 2, 4, … and all of them."""
    return tuple(sorted({1 << n for n in range(devices.bit_length()) if 1 << n <= devices} | {devices}))


def _rows(suite: Suite, devices: Devices, bandwidth: float | None, only: str, console: Console) -> Iterator[Measured]:
    """The measured cases; those that need more memory than there is are passed over, and said so."""
    size = LARGE if devices.kind == "cuda" else LITTLE
    single: dict[str, float] = {}
    for case in suite.cases(size, counts_of(devices.count)):
        if only not in case.series:
            continue
        try:
            row = measure(case, devices, bandwidth, single.get(case.base))
        except DoesNotFit as refusal:
            console.print(f"{case.series} on {case.count}: {refusal}", highlight=False)
            continue
        if case.count == 1:
            single.setdefault(case.series, row.gcells_per_s * 1e9)
        yield row
    forget()


def _line(row: Measured) -> str:
    rate, time = f"{row.gcells_per_s:,.4g} GCells/s", f"{row.seconds_per_step * 1e6:,.4g} µs per step"
    return f"{row.series} on {row.devices}: {rate}, {time}"


def _table(suite: Suite, rows: list[Measured], bandwidth: float | None) -> Table:
    copies = "" if bandwidth is None else f", copy bandwidth of one device {bandwidth / 1e9:,.0f} GB/s"
    table = Table(title=f"{suite.title}{copies}", title_justify="left")
    table.add_column("case", no_wrap=True)
    for head in ("devices", "grid", "depth", "µs per step", "GCells/s", "of copy", "efficiency", "spread"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.series,
            str(row.count),
            "×".join(map(str, row.shape)),
            str(row.depth) if row.block == row.depth else f"{row.depth} by {row.block}",
            f"{row.seconds_per_step * 1e6:,.4g}",
            f"{row.gcells_per_s:,.4g}",
            _share(row.of_copy),
            _share(row.efficiency),
            _share(row.spread),
        )
    return table


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
