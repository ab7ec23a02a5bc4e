"""`peergrid probe`: measure the machine, write the profile, compare it with another."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from peergrid.bench.commit import commit
from peergrid.errors import DeviceFault, UsageError
from peergrid.machine import discover, encode
from peergrid.probe import Probe, compare, measure, show
from peergrid.probe import profile as profiles
from peergrid.runtime.ranks.exchange_times import exchange_times, text
from peergrid.runtime.ranks.gpus import host
from peergrid.runtime.ranks.launcher import own_devices, require_alone, world
from peergrid.runtime.ranks.ranks import Ranks, devices_of_all


def probe(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Experiments or groups (default: all).")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer samples and smaller tables.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write the profile here.")
    ] = None,
    compare_with: Annotated[
        Path | None,
        typer.Option(
            "--compare", metavar="FILE", help="Show the figures that differ from this profile by more than the noise."
        ),
    ] = None,
    recorded: Annotated[
        Path | None, typer.Option("--profile", metavar="FILE", help="Show this recorded profile instead of measuring.")
    ] = None,
    direct: Annotated[
        bool,
        typer.Option("--direct", help="With 'mpi': pass GPU memory to MPI; an MPI not built for that may crash."),
    ] = False,
    catalogue: Annotated[bool, typer.Option("--list", help="List the experiments and measure nothing.")] = False,
) -> None:
    """Measure links, memory, synchronisation and host; with a launcher, 'mpi' measures messages of ranks."""
    from peergrid.probe.registry import PROBES, choose  # imports numba, which is slow

    if names == ["mpi"]:
        _exchanges(as_json, direct)
        return
    if direct:
        raise UsageError("'--direct' is for 'peergrid probe mpi' alone; leave it out.")
    require_alone("probe")
    if catalogue:
        typer.echo(_described(PROBES) if as_json else show.catalogue(PROBES))
        return
    chosen = choose(names or [])
    other = profiles.read(compare_with) if compare_with else None  # before measuring, so that bad input costs no time
    if output is not None:
        profiles.guard(output)
    found = _recorded(recorded, chosen, bool(names)) if recorded else _measure(chosen, quick)
    if output is not None:
        profiles.write(output, found)
    _present(found, other, as_json)
    if output is not None and not as_json:
        typer.echo(f"\nwrote {output}")
    if recorded is None:
        _judge(found)


def _exchanges(as_json: bool, direct: bool) -> None:
    """Measure messages between two ranks by size, from GPU to GPU if every rank has one."""
    comm = world()
    if comm is None:
        raise UsageError("At least two ranks are expected, got one; run: mpiexec -n 2 peergrid probe mpi.")
    own = own_devices("auto", comm)
    ranks = devices_of_all(comm, own)[1] if all(kind == "cuda" for kind in Ranks(comm).allgather(own.kind)) else None
    if direct and ranks is None:
        raise UsageError("'--direct' expects a GPU for every rank, but not every rank has one; leave it out.")
    gpu = None if ranks is None else (ranks, own.ordinals[0])
    found = exchange_times(comm, len(set(Ranks(comm).allgather(host()))), gpu=gpu, direct=direct)
    if comm.rank == 0:
        typer.echo(json.dumps(encode(found), indent=1) if as_json else text(found))


def _described(probes: tuple[Probe, ...]) -> str:
    """The experiments as one JSON object, with the keys of a profile."""
    keys = ("name", "group", "title", "unit", "method", "gpus")
    return json.dumps({"experiments": [{key: getattr(item, key) for key in keys} for item in probes]}, indent=1)


def _recorded(path: Path, chosen: tuple[Probe, ...], named: bool) -> profiles.Profile:
    """A recorded profile: all of it, or the experiments that were named."""
    found = profiles.read(path)
    names = [item.name for item in chosen]
    return replace(found, probes=tuple(item for item in found.probes if item.name in names)) if named else found


def _measure(chosen: tuple[Probe, ...], quick: bool) -> profiles.Profile:
    outcomes = measure(chosen, quick, say=lambda words: typer.echo(words, err=True))
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    return profiles.new(discover(), outcomes, quick, command=command, commit=commit())


def _judge(found: profiles.Profile) -> None:
    """Raise DeviceFault if an experiment failed, after all results were shown and written."""
    broken = [item.name for item in found.probes if item.status in ("failed", "timeout")]
    if broken:
        raise DeviceFault(
            f"All experiments should end, but {len(broken)} of {len(found.probes)} did not ({', '.join(broken)}): "
            "the profile holds each reason."
        )


def _present(found: profiles.Profile, other: profiles.Profile | None, as_json: bool) -> None:
    flagged = compare.flags(found)
    changed = compare.differences(found, other) if other else ()
    if as_json:
        content = encode(found) | {"flags": encode(flagged)}
        if other:
            content["differences"] = encode(changed)
        typer.echo(json.dumps(content, ensure_ascii=False, indent=1))
        return
    typer.echo(show.profile(found))
    if flagged:
        typer.echo("\n" + show.flags(flagged))
    if other:
        label = other.machine.label
        stranger = label if label != found.machine.label else ""
        typer.echo("\n" + show.differences(changed, compare.compared(found, other), stranger))
