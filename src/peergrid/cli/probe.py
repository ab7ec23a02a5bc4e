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
    names: Annotated[list[str] | None, typer.Argument(help="Experiments or groups; all of them if none.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer samples and smaller tables.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write the profile here.")] = None,
    compare_with: Annotated[
        Path | None, typer.Option("--compare", help="Show what differs from this profile by more than the noise.")
    ] = None,
    recorded: Annotated[
        Path | None, typer.Option("--profile", help="Take this recorded profile instead of measuring.")
    ] = None,
    direct: Annotated[
        bool,
        typer.Option("--direct", help="With 'mpi': give it GPU memory, too; an MPI not built for that may crash."),
    ] = False,
    catalogue: Annotated[bool, typer.Option("--list", help="List the experiments and measure nothing.")] = False,
) -> None:
    """Measure links, memory, synchronisation and host of this machine; 'mpi' with a launcher: messages of ranks."""
    from peergrid.probe.registry import PROBES, choose  # takes numba along, which is slow to come

    if names == ["mpi"]:
        _exchanges(as_json, direct)
        return
    if direct:
        raise UsageError("'--direct' belongs to 'peergrid probe mpi'.")
    require_alone("probe")
    if catalogue:
        typer.echo(_described(PROBES) if as_json else show.catalogue(PROBES))
        return
    chosen = choose(names or [])
    other = profiles.read(compare_with) if compare_with else None  # before measuring: bad input costs nothing
    if output is not None:
        profiles.guard(output)
    found = _recorded(recorded, chosen, bool(names)) if recorded else _measure(chosen, quick)
    if output is not None:
        profiles.write(output, found)
    _present(found, other, as_json)
    if recorded is None:
        _judge(found)


def _exchanges(as_json: bool, direct: bool) -> None:
    """Messages between two ranks against their size, from GPU to GPU where every rank has one."""
    comm = world()
    if comm is None:
        raise UsageError("Messages need two ranks, got one: mpiexec -n 2 peergrid probe mpi.")
    own = own_devices("auto", comm)
    ranks = devices_of_all(comm, own)[1] if all(kind == "cuda" for kind in Ranks(comm).allgather(own.kind)) else None
    if direct and ranks is None:
        raise UsageError("'--direct' gives GPU memory to MPI, but not every rank has a GPU.")
    gpu = None if ranks is None else (ranks, own.ordinals[0])
    found = exchange_times(comm, len(set(Ranks(comm).allgather(host()))), gpu=gpu, direct=direct)
    if comm.rank == 0:
        typer.echo(json.dumps(encode(found), indent=1) if as_json else text(found))


def _described(probes: tuple[Probe, ...]) -> str:
    """The experiments as one JSON object, each as a profile describes it."""
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
    """Everything was shown and written; the exit code still says that something broke."""
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
