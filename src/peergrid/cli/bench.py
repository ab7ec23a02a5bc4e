"""`peergrid bench`: rates of the machine's devices on known problems, as a table, JSON and a chart."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from statistics import mean
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from peergrid.bench import own, problems
from peergrid.bench.circumstances import about
from peergrid.bench.measure import Case, Measured, copy_bandwidth, measure, with_efficiency
from peergrid.bench.suites import LARGE, LITTLE, SUITES, Size, Suite
from peergrid.cli.choose import AsJson, DeviceSpec, folder_named
from peergrid.errors import DoesNotFit, UsageError
from peergrid.files import replacing
from peergrid.jobs.folder import Folder
from peergrid.runtime.devices import Devices, parse_devices
from peergrid.schedule import Options

WIDEST = 1000  # columns of a table, far more than any has
UNSTEADY = 0.2  # range of the samples over their median


def bench(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(SUITES)}.")],
    devices: DeviceSpec = "auto",
    counts: Annotated[
        str | None, typer.Option("--counts", metavar="N,...", help="Device counts to measure, such as 1,8.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            parser=folder_named("--output", "no files"),
            help="Write NAME.json and NAME.png here.",
        ),
    ] = None,
    only: Annotated[str, typer.Option("--only", metavar="WORD", help="Only series with this word in their name.")] = "",
    machine: Annotated[
        str | None,
        typer.Option("--machine", metavar="FILE|NAME", help="Predict for this machine: a profile, or h200-x8."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a suite of problems on 1, 2, 4, … devices, or on the counts of '--counts'."""
    if name not in SUITES:
        raise UsageError(f"A benchmark is one of {', '.join(SUITES)}, got '{name}'.")
    if machine is not None:
        _predict(name, machine, devices, counts, output, only, as_json=as_json)
        return
    suite, chosen = SUITES[name], parse_devices(devices)
    measured_on = counts_of(chosen.count) if counts is None else counts_named(counts, chosen.count)
    cases = _cases(name, LARGE if chosen.kind == "cuda" else LITTLE, measured_on, only)
    if output is not None:
        Folder(output).prepare()
    bandwidth = copy_bandwidth(chosen)
    found = {"benchmark": name, "copy_bytes_per_s": bandwidth, "about": asdict(about())}
    console = Console(stderr=True, quiet=as_json)
    rows: tuple[Measured, ...] = ()
    for more in _rows(cases, chosen, bandwidth, console):
        rows = with_efficiency((*rows, *more))
        if output is not None:
            _write(output / f"{name}.json", found, rows)
        for row in rows[-len(more) :]:
            console.print(_line(row), highlight=False, soft_wrap=True)
    if output is not None:
        from peergrid.bench.chart import draw  # imports matplotlib, which is slow

        with replacing(output / f"{name}.png") as partial:
            draw(partial, suite.title, suite.metric, rows)
    if as_json:
        typer.echo(_text(found, rows))
    else:
        _print_whole(_table(suite, rows, bandwidth))
        typer.echo("\n".join(advice(rows)))
        if output is not None:
            typer.echo(f"wrote {output / name}.json\nwrote {output / name}.png")


def advice(rows: Sequence[Measured]) -> list[str]:
    """Sentences on what to do now: how to run each problem on the most devices, and whether to measure again."""
    most = max(row.count for row in rows)
    ways_of: dict[str, list[Measured]] = {}
    for row in rows:
        if row.count == most:
            ways_of.setdefault(row.base or row.series, []).append(row)
    found = []
    for name, ways in ways_of.items():
        best = max(ways, key=lambda row: row.gcells_per_s)
        how = f"--strategy {best.options.strategy} --depth {best.options.depth}"
        found.append(f"{name}: fastest on {best.devices} with {how}, {best.gcells_per_s:,.4g} GCells/s.")
    unsteady = sum(row.spread > UNSTEADY for row in rows)
    if unsteady:
        found.append(
            f"The times of {unsteady} of {len(rows)} cases vary by more than {UNSTEADY:.0%}: another program probably "
            "used the machine, so measure again when it is idle."
        )
    return found


def counts_of(devices: int) -> tuple[int, ...]:
    """1, 2, 4, … and all of them."""
    return tuple(sorted({1 << n for n in range(devices.bit_length()) if 1 << n <= devices} | {devices}))


def counts_named(text: str, devices: int) -> tuple[int, ...]:
    """The numbers in a list such as '1,8', each once, in ascending order.

    Raises UsageError if one of them is not a number from 1 to `devices`.
    """
    known = {str(count): count for count in range(1, devices + 1)}
    named = set(text.split(","))
    if not named <= known.keys():
        usual = ",".join(map(str, counts_of(devices)))
        raise UsageError(
            f"'--counts' takes numbers with commas, each from 1 to the number of devices, here {devices}, "
            f"got '{text}'; leave it out to measure on {usual}."
        )
    return tuple(sorted(known[count] for count in named))


def _cases(name: str, size: Size, counts: tuple[int, ...], only: str) -> list[Case]:
    """The cases of a suite with a device count of `counts` and `only` in the name of their series."""
    found = [case for case in SUITES[name].cases(size, counts) if case.count in counts and only in case.series]
    if not found:
        raise UsageError(
            f"No series of '{name}' has '{only}' in its name (on {','.join(map(str, counts))} devices); leave "
            "'--only' and '--counts' out to see them all."
        )
    return found


def _predict(
    name: str, place: str, devices: str, counts: str | None, output: Path | None, only: str, *, as_json: bool
) -> None:
    """Predict the suite for a machine that need not be here: a table, and NAME-foretold.json."""
    from peergrid.bench.prediction import predicted  # imports compilers, which is slow
    from peergrid.predict.profiles import machine_at

    if devices != "auto":
        raise UsageError(f"'--machine' predicts and uses no devices; leave out '--devices {devices}', or '--machine'.")
    machine = machine_at(place)
    asked = counts_of(machine.gpus) if counts is None else counts_named(counts, machine.gpus)
    cases = _cases(name, LARGE, asked, only)
    if output is not None:
        Folder(output).prepare()
    rows = with_efficiency(predicted(case, machine) for case in cases)
    problems.forget()
    own.forget()
    given = {"benchmark": name, "machine": machine.name, "machine_measured": machine.measured, "about": asdict(about())}
    if output is not None:
        _write(output / f"{name}-foretold.json", given, rows)
    if as_json:
        typer.echo(_text(given, rows))
        return
    title = f"{SUITES[name].title} on machine '{machine.name}', predicted, not measured"
    table = Table(title=title, title_justify="left")
    table.add_column("case", no_wrap=True)
    for head in ("GPUs", "grid", "depth", "µs per step", "GCells/s", "efficiency", "host µs"):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        size, rates = "×".join(map(str, row.shape)), (f"{row.seconds_per_step * 1e6:,.4g}", f"{row.gcells_per_s:,.4g}")
        host = f"{row.host_seconds_per_step * 1e6:.3g}"
        table.add_row(row.series, str(row.count), size, _depth(row.options), *rates, _share(row.efficiency), host)
    _print_whole(table)
    if output is not None:
        typer.echo(f"wrote {output / name}-foretold.json")


def _rows(
    cases: list[Case], devices: Devices, bandwidth: float | None, console: Console
) -> Iterator[tuple[Measured, ...]]:
    """The measured cases; those that need more memory than there is are left out, with a line on standard error.

    Raises DoesNotFit if none has room.
    """
    measured, refused = False, None
    for together in _groups(cases):
        try:
            yield measure(together, devices, bandwidth)
            measured = True
        except DoesNotFit as refusal:
            refused = refusal
            console.print(f"{together[0].series} on {together[0].count}: {refusal}", highlight=False, soft_wrap=True)
    problems.forget()
    own.forget()
    if refused and not measured:
        raise refused


def _groups(cases: list[Case]) -> Iterator[list[Case]]:
    """Group the cases that are measured together."""
    numbered = enumerate(cases)
    for _, group in groupby(numbered, key=lambda item: item[1].group or item[0]):
        yield [case for _, case in group]


def _write(path: Path, found: dict[str, Any], rows: Sequence[Any]) -> None:
    """Replace the file by the results so far."""
    with replacing(path) as partial:
        partial.write_text(_text(found, rows) + "\n")


def _text(found: dict[str, Any], rows: Sequence[Any]) -> str:
    return json.dumps(found | {"rows": [asdict(row) for row in rows]}, indent=2)


def _line(row: Measured) -> str:
    rate, time = f"{row.gcells_per_s:,.4g} GCells/s", f"{row.seconds_per_step * 1e6:,.4g} µs per step"
    more = "" if row.efficiency is None else f", efficiency {row.efficiency:.1%}"
    return f"{row.series} on {row.devices}: {rate}, {time} ± {row.spread / 2:.1%}{more}"


def _print_whole(table: Table) -> None:
    """Print a table with all its figures, also where the terminal has fewer columns."""
    console = Console()
    Console(width=console.measure(table, options=console.options.update(width=WIDEST)).maximum).print(table)


def _table(suite: Suite, rows: tuple[Measured, ...], bandwidth: float | None) -> Table:
    copies = "" if bandwidth is None else f", copy bandwidth of one device {bandwidth / 1e9:,.0f} GB/s"
    compared = any(row.against != 1 for row in rows)
    powers = any(row.watts for row in rows)
    noted = tuple(dict.fromkeys(note for row in rows for note in row.notes))
    caption = "\n".join(f"{number} {note}" for number, note in enumerate(noted, start=1))
    table = Table(title=f"{suite.title}{copies}", title_justify="left", caption=caption, caption_justify="left")
    table.add_column("case", no_wrap=True)
    heads = ["devices", "grid", "depth", "µs per step", "spread", "GCells/s", "of copy", "efficiency", "host µs"]
    predicted = any(row.foretold_seconds_per_step for row in rows)
    given = {"against first": compared, "predicted": predicted, "W per GPU": powers, "notes": bool(noted)}
    for head in (*heads, *(head for head, there in given.items() if there)):
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(
            row.series,
            str(row.count),
            "×".join(map(str, row.shape)),
            _depth(row.options),
            f"{row.seconds_per_step * 1e6:,.4g}",
            _share(row.spread),
            f"{row.gcells_per_s:,.4g}",
            _share(row.of_copy),
            _share(row.efficiency),
            "–" if row.host_seconds_per_step is None else f"{row.host_seconds_per_step * 1e6:.3g}",
            *([_share(row.against)] if compared else []),
            *([_error(row)] if predicted else []),
            *([f"{mean(row.watts):.0f}" if row.watts else "–"] if powers else []),
            *([", ".join(str(1 + noted.index(note)) for note in row.notes)] if noted else []),
        )
    return table


def _depth(options: Options) -> str:
    """Steps between two exchanges, and of a pass where these are fewer."""
    depth, block = options.depth, options.steps_per_pass
    return str(depth) if block == depth else f"{depth} by {block}"


def _error(row: Measured) -> str:
    """The relative error of the predicted time."""
    predicted = row.foretold_seconds_per_step
    return "–" if predicted is None else f"{predicted / row.seconds_per_step - 1:+.1%}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
