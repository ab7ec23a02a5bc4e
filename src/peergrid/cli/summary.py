"""The figures that `peergrid run` prints at its end, as an object and as text."""

from __future__ import annotations

from dataclasses import dataclass

from peergrid.cli.stop import StopRequest
from peergrid.models import BuiltModel
from peergrid.progress import duration, megacells
from peergrid.runtime.cpu.bandwidth import copy_bandwidth
from peergrid.runtime.devices import Devices, cores
from peergrid.runtime.fit import free_memory
from peergrid.runtime.traffic import Moved, Traffic
from peergrid.simulate import Simulation
from peergrid.stencil.cost import minimal_bytes

MEASURED = 1 << 30  # free bytes needed to measure bandwidth


@dataclass(frozen=True)
class Summary:
    """The keys of `run --json`.

    rows: of each device along the first axis; seconds: stepping alone; host_seconds: the part of it in which the
    busiest host thread issued work to GPUs, without waiting; predicted_seconds: for GPUs; prediction_error: its
    relative error; predicted_by: the known machine most like this one, whose figures the prediction uses; route: of all
    halos between devices (None: the cheapest one for each); nvlink_bytes: of each GPU while it stepped, from NVML;
    interrupted_by: the signal that ended the run early, or ''; resumed_from: the step of the checkpoint from which it
    continued, or 0; notes: options that were chosen by trial or differ from the requested ones, with reasons.
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
    route: str | None
    split: tuple[int, ...]
    rows: tuple[int, ...]
    seconds: float
    host_seconds: float | None
    predicted_seconds: float | None
    prediction_error: float | None
    predicted_by: str | None
    gcells_per_s: float
    roofline_fraction: float | None
    exposed_communication: float | None
    nvlink_bytes: dict[str, Moved] | None
    sha256: str
    interrupted_by: str
    resumed_from: int
    notes: tuple[str, ...]
    outputs: tuple[str, ...]


def summary(
    name: str, built: BuiltModel, simulation: Simulation, stop: StopRequest, resumed: int, moved: Traffic
) -> Summary:
    """The figures of a run that has ended, without the files; resumed: the step from which it continued."""
    grid, options = built.problem.grid, simulation.options
    rate = grid.box.size * simulation.step / simulation.seconds if simulation.seconds else 0.0
    predicted, machine = _predicted(simulation, resumed)
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
        route=options.route,
        split=simulation.partition.parts,
        rows=tuple(simulation.partition.owned(device).shape[0] for device in range(simulation.partition.devices)),
        seconds=simulation.seconds,
        host_seconds=simulation.host_seconds,
        predicted_seconds=predicted,
        prediction_error=predicted / simulation.seconds - 1 if predicted and simulation.seconds else None,
        predicted_by=machine,
        gcells_per_s=rate / 1e9,
        roofline_fraction=_roofline_fraction(built, simulation.devices, rate),
        exposed_communication=simulation.exposed_communication(),
        nvlink_bytes=dict(moved.gpus) or None,
        sha256=simulation.sha256(),
        interrupted_by=stop.name if stop else "",
        resumed_from=resumed,
        notes=simulation.notes,
        outputs=(),
    )


def _predicted(simulation: Simulation, resumed: int) -> tuple[float | None, str | None]:
    """The predicted seconds of this run, and the machine whose figures were used; None on virtual devices."""
    if simulation.devices.kind == "cpu":
        return None, None
    from peergrid.predict.here import machine_here, seconds_per_step  # imports compilers, which is slow

    each = seconds_per_step(simulation.problem, simulation.devices, simulation.options, simulation.partition)
    machine = machine_here(simulation.devices)
    return (None, None) if each is None or machine is None else (each * (simulation.step - resumed), machine.name)


def _roofline_fraction(built: BuiltModel, devices: Devices, rate: float) -> float | None:
    """The rate over the memory roofline of one step per pass (temporal blocking can exceed 1); None if not measured."""
    moved = minimal_bytes(built.problem)
    if devices.kind == "cpu":
        enough = free_memory() > MEASURED
        bandwidth = copy_bandwidth(min(devices.count, cores()), moved) if enough else None
    else:
        from peergrid.runtime.cuda import bandwidth as cuda

        gpus = sorted(set(devices.ordinals))
        one = cuda.copy_bandwidth(gpus[0])
        bandwidth = None if one is None else one * len(gpus)
    return None if bandwidth is None else rate * moved / built.problem.grid.box.size / bandwidth


def text(found: Summary) -> str:
    """The figures as text."""
    ended = f", ended by {found.interrupted_by}" if found.interrupted_by else ""
    predicted = (
        ""
        if found.predicted_seconds is None
        else f", {duration(found.predicted_seconds)} predicted from figures of '{found.predicted_by}'"
    )
    share = found.roofline_fraction
    roof = "" if share is None else f", {share:.0%} of what memory bandwidth allows at one step per pass"
    lines = [
        f"{' × '.join(map(str, found.shape))} cells, {found.steps} steps on {found.devices} "
        f"({found.strategy}, depth {found.depth}){ended}",
        f"{duration(found.seconds)}, {megacells(found.gcells_per_s * 1e9)}{roof}{predicted}",
        f"sha256 {found.sha256}",
        *found.outputs,
    ]
    return "\n".join(lines)
