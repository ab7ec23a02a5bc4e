"""`peergrid run`: carry out a model file and write its results."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from peergrid.cli.choose import AsJson, CommandLineOptions, ModelFile, arranging
from peergrid.cli.notes import tell
from peergrid.cli.outputs import Folder
from peergrid.cli.progress import Reporter, megacells
from peergrid.cli.stop import StopRequest, stop_on_signal
from peergrid.errors import UsageError
from peergrid.io.film import film_library
from peergrid.io.modelfile import read
from peergrid.models.fdtd import Built, build
from peergrid.pauses import advance
from peergrid.runtime.cpu.bandwidth import copy_bandwidth
from peergrid.runtime.devices import Devices, cores
from peergrid.simulate import Simulation
from peergrid.stencil.cost import minimal_bytes

FEW = 20  # parts of a run of which one may be measured operation by operation


@dataclass(frozen=True)
class Summary:
    """What `run --json` prints.

    rows: of each device along the first axis; seconds: stepping alone; host_seconds: how much of it the busiest thread
    issued work to GPUs, without waiting; interrupted_by: the signal that ended the run early, or ''; notes: what was
    chosen by trial, or arranged otherwise than asked for, and why.
    """

    model: str
    shape: tuple[int, ...]
    cells: int
    steps: int
    dtype: str
    devices: str
    strategy: str
    depth: int
    order: str
    split: tuple[int, ...]
    rows: tuple[int, ...]
    seconds: float
    host_seconds: float | None
    gcells_per_s: float
    roofline_fraction: float | None
    exposed_communication: float | None
    sha256: str
    interrupted_by: str
    notes: tuple[str, ...]
    outputs: tuple[str, ...]


@arranging
def run(
    model: ModelFile,
    arguments: CommandLineOptions,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Folder for the results (default: results/NAME)."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", metavar="N", help="Run N steps in place of the model's.")
    ] = None,
    write: Annotated[bool, typer.Option("--write/--no-write", help="Whether to write results at all.")] = True,
    keep_sources: Annotated[
        Path | None,
        typer.Option("--keep-sources", metavar="DIR", help="Keep the CUDA C++ of the kernels there, for profilers."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a model and write its traces, fields, snapshots and pictures."""
    described = read(model)
    if steps is not None:
        if steps < 1:
            raise UsageError(f"'--steps' takes a whole number above 0, got {steps}.")
        described = replace(described, grid=replace(described.grid, steps=steps, time_window=None))
    requested = arguments.requested(described)
    folder = Folder(output or Path("results") / model.stem) if write else None
    if folder is not None:
        folder.prepare()
        if described.output.animation == "mp4":
            film_library()
    built = build(described)
    for warning in built.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    chosen = requested.resolve(built, quiet=as_json)
    with requested.simulation(built, chosen, built.steps, keep_sources) as simulation, stop_on_signal() as stop:
        with _recording(folder, built, simulation) as pauses:
            _advance(simulation, built, pauses, stop, quiet=as_json)
        simulation.check()
        tell(simulation.notes)
        summary = _summary(str(model), built, simulation, stop)
        if folder is not None:
            written = folder.finish(built, simulation, summary.sha256)
            summary = replace(summary, outputs=tuple(str(path) for path in written))
    typer.echo(json.dumps(asdict(summary), indent=2) if as_json else _text(summary))


@dataclass(frozen=True)
class Pauses:
    """Where the run stops to look around, and what takes the snapshots."""

    check_every: int
    snapshot_every: int
    snap: Snap | None


class Snap:
    """Takes a snapshot of the fields the model asks for."""

    def __init__(self, folder: Folder, built: Built, simulation: Simulation) -> None:
        self._fields, self._simulation = built.model.output.fields, simulation
        self.writer = folder.snapshot_writer(built)

    def __call__(self) -> None:
        self.writer.put(self._simulation.step, {name: self._simulation.gather(name) for name in self._fields})


@contextmanager
def _recording(folder: Folder | None, built: Built, simulation: Simulation) -> Iterator[Pauses]:
    """The pauses of a run; snapshots get their file's name when the block is left, however it is left."""
    every = built.model.output.snapshots
    if folder is None or every == 0:
        yield Pauses(built.model.run.check_every, 0, None)
        return
    snap = Snap(folder, built, simulation)
    with snap.writer:
        yield Pauses(built.model.run.check_every, every, snap)


def _advance(simulation: Simulation, built: Built, pauses: Pauses, stop: StopRequest, *, quiet: bool) -> None:
    """Step to the end, or to the pause after a signal."""
    _look_at_overlap(simulation, built.steps, pauses)
    with Reporter(built.steps, built.problem.grid.box.size, quiet) as reporter:
        for step in advance(simulation, built.steps, (pauses.check_every, pauses.snapshot_every)):
            reporter.update(step)
            if step % pauses.check_every == 0:
                simulation.check()
            if pauses.snap is not None and step % pauses.snapshot_every == 0:
                pauses.snap()
            if stop:
                return


def _look_at_overlap(simulation: Simulation, steps: int, pauses: Pauses) -> None:
    """Take the time of one early period, where devices do not measure by themselves and it is a small part of all."""
    period = 2 * simulation.options.depth
    room = [steps // FEW, *(every for every in (pauses.check_every, pauses.snapshot_every) if every)]
    if simulation.devices.kind == "cuda" and 2 * period < min(room):
        simulation.run(period)
        simulation.trace(period)


def _summary(name: str, built: Built, simulation: Simulation, stop: StopRequest) -> Summary:
    grid, options = built.problem.grid, simulation.options
    rate = grid.box.size * simulation.step / simulation.seconds if simulation.seconds else 0.0
    return Summary(
        model=name,
        shape=grid.shape,
        cells=grid.box.size,
        steps=simulation.step,
        dtype=grid.dtype,
        devices=str(simulation.devices),
        strategy=options.strategy,
        depth=options.depth,
        order=options.order,
        split=simulation.partition.parts,
        rows=tuple(simulation.partition.owned(device).shape[0] for device in range(simulation.partition.devices)),
        seconds=simulation.seconds,
        host_seconds=simulation.host_seconds,
        gcells_per_s=rate / 1e9,
        roofline_fraction=_roofline_fraction(built, simulation.devices, rate),
        exposed_communication=simulation.exposed_communication(),
        sha256=simulation.sha256(),
        interrupted_by=stop.name if stop else "",
        notes=simulation.notes,
        outputs=(),
    )


def _roofline_fraction(built: Built, devices: Devices, rate: float) -> float | None:
    """The rate over what the memory allows one step at a time (temporal blocking can pass 1); None if not measured."""
    if devices.kind == "cpu":
        bandwidth: float | None = copy_bandwidth(min(devices.count, cores()))
    else:
        from peergrid.runtime.cuda import bandwidth as cuda

        gpus = sorted(set(devices.ordinals))
        one = cuda.copy_bandwidth(gpus[0])
        bandwidth = None if one is None else one * len(gpus)
    bytes_per_cell = minimal_bytes(built.problem) / built.problem.grid.box.size
    return None if bandwidth is None else rate * bytes_per_cell / bandwidth


def _text(found: Summary) -> str:
    ended = f", ended by {found.interrupted_by}" if found.interrupted_by else ""
    roof = "" if found.roofline_fraction is None else f", {found.roofline_fraction:.0%} of the one-pass roofline"
    lines = [
        f"{' × '.join(map(str, found.shape))} cells, {found.steps} steps on {found.devices} "
        f"({found.strategy}, depth {found.depth}){ended}",
        f"{found.seconds:.3g} s, {megacells(found.gcells_per_s * 1e9)}{roof}",
        f"sha256 {found.sha256}",
        *found.outputs,
    ]
    return "\n".join(lines)
