"""What ranks do in tests: runs of problems, whose digests rank 0 prints, and faults.

mpiexec -n 3 python ranks_app.py matrix '[["overlap", 2]]'
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import sys
import threading
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from runtime_problems import heat_3d, radius_four_on, random_heat, values, wave_1d, yee_with_absorber

import peergrid
from peergrid import Box, Grid, Options, Problem, Simulation, reduction, stencil
from peergrid.cli import app
from peergrid.runtime.ranks.launcher import abort_on_error
from peergrid.runtime.ranks.ranks import Ranks

STEPS = 11


@stencil
def smooth(u, k):
    u.next[0, 0] = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


@reduction("sum", every=2)
def total(u):
    return u[0, 0]


@reduction("max")
def last(u):
    return u[0, 0]


def counted(factor: float = 0.2) -> Problem:
    """A problem with a reduction, on a grid whose norm bands and leaves the cuts go through, and one of the last rows
    alone.
    """
    grid = Grid((67, 45), ("periodic", "fixed"))
    u = grid.field("u", np.random.default_rng(3).random(grid.shape))
    return Problem.of([smooth(u, factor)], reductions=[total(u), last(u).within(Box((60, 3), (67, 9)))])


def matrix(cases: list[tuple[str, int]], devices: int = 1, places: list[list[int]] | None = None) -> None:
    """Several problems by strategies and depths: digests of all that each leaves, with its traces and norms.

    places: the ranks that share a grid, one set after the other (none: all of them); rank 0 prints what each found.
    """
    world = MPI.COMM_WORLD
    places = places or [list(range(world.size))]
    joined = {place: comm for place, ranks in enumerate(places) if (comm := among(world, ranks, place)) is not None}
    found: dict[int, dict[str, set[str]]] = {place: {} for place in joined}
    for name, problem in problems().items():
        for strategy, depth in cases:
            for place, comm in joined.items():  # one after the other: places with as many ranks have the same proofs
                bits = left(problem, Options(strategy, depth), devices, comm)
                found[place].setdefault(name, set()).add(bits)
    everyone = world.Ibarrier()
    while not everyone.Test():  # who has no more to do leaves the processors to the others
        time.sleep(0.01)
    answers = world.gather({place: {name: sorted(bits) for name, bits in one.items()} for place, one in found.items()})
    if answers is not None:
        print(json.dumps([[one[place] for one in answers if place in one] for place in range(len(places))]))


def among(world: MPI.Intracomm, ranks: list[int], tag: int) -> MPI.Intracomm | None:
    """What joins some ranks; None on others."""
    return world.Create_group(world.group.Incl(ranks), tag) if world.rank in ranks else None


def left(problem: Problem, options: Options, devices: int, comm: MPI.Intracomm) -> str:
    """The digest of all that a run leaves."""
    norm = next(iter(problem.state)) if problem.grid.ndim == 2 else None
    given = {"devices": f"cpu:{devices}", "options": options, "norm": norm}
    with Simulation(problem, STEPS, comm=comm, **given) as simulation:
        simulation.run(4)
        simulation.run(STEPS - 4)
        simulation.check()
        bits = hashlib.sha256(simulation.sha256().encode())
        for series in (*simulation.traces().values(), *([] if norm is None else [simulation.norms()])):
            bits.update(series.tobytes())
    return bits.hexdigest()


def problems() -> dict[str, Problem]:
    """A radar's scheme with an absorber, heat in 3D, a periodic plane, a radius of four and a string, of which four
    ranks have slabs thick enough for depth 8.
    """
    cube, line = Grid((64, 6, 5), ("fixed", "periodic", "reflecting")), Grid(67)
    return {
        "radar": yee_with_absorber((64, 18)),
        "heat in 3D": Problem.of([heat_3d(cube.field("u", values(cube.shape)), 0.1)]),
        "periodic": random_heat((64, 19), "periodic"),
        "radius of four": radius_four_on((160, 14), ("periodic", "fixed")),
        "string": Problem.of(wave_1d(line.field("u", values((67,))), 0.25)),
    }


def norms() -> None:
    with Simulation(counted(), STEPS, devices="cpu:2", comm=MPI.COMM_WORLD, norm="u") as simulation:
        simulation.run(STEPS)
        values = [simulation.norms().tobytes().hex()]
        values += [series.values.tobytes().hex() for series in simulation.reductions().values()]
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(values))


def by_boxes(path: str) -> None:
    """A field whose first values a function gives, and which every rank writes for itself: none asks for all of it."""
    largest = 0

    def values(box: Box) -> np.ndarray:
        nonlocal largest
        largest = max(largest, box.size)
        rows, columns = (np.arange(lo, hi) for lo, hi in zip(box.lo, box.hi, strict=True))
        return np.sin(rows[:, np.newaxis] * 0.3 + columns * 0.1)

    grid = Grid((240, 45), ("periodic", "fixed"))
    problem = Problem.of([smooth(grid.field("u", values), 0.2)])
    with Simulation(problem, STEPS, devices="cpu:2", comm=MPI.COMM_WORLD) as simulation:
        simulation.run(STEPS)
        peergrid.save(simulation, path)
        digest = simulation.sha256()
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps([digest, largest / grid.box.size]))


def models(given: list[Any]) -> None:
    """Models go on from their checkpoints by the command line; what it prints goes to files."""
    folder, names = Path(given[0]), given[1]
    for name in names:
        line = ["run", str(folder / name), "--json", "--devices", "cpu:1", "--resume"]
        line += ["--no-pictures"] * name.endswith(".in")
        told = folder / f"told-{name}" if MPI.COMM_WORLD.rank == 0 else Path(os.devnull)
        with told.open("w") as file, redirect_stdout(file):
            app([*line, "-o", str(folder / f"two-{name}")], standalone_mode=False)


def commands(lines: list[list[str]]) -> None:
    """What the command line prints for each of these, one after the other."""
    told = list[str]()
    for line in lines:
        with redirect_stdout(io.StringIO()) as out:
            app(line, standalone_mode=False)
        told.append(out.getvalue())
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(told))


def different(what: str) -> None:
    """Ranks that do not run the same problem, from the same values, as long, on devices of one kind."""
    comm = MPI.COMM_WORLD
    odd = what if comm.rank == 1 else ""
    rng = np.random.default_rng(odd == "values")
    grid = Grid((67, 45), ("periodic", "fixed"))
    problem = Problem.of([smooth(grid.field("u", rng.random(grid.shape)), 0.1 + 0.1 * (odd == "problem"))])
    kernel = "reference" if odd == "kernel" else "compiled"
    devices = "cuda" if what == "kinds" and not odd else "cpu:1"
    with Simulation(problem, 10 + (odd == "steps"), devices=devices, kernel=kernel, comm=comm) as simulation:
        simulation.run(3 + (odd == "calls"))


def broken() -> None:
    """A rank that fails while the others go on."""
    with Simulation(counted(), 1000, devices="cpu:1", comm=MPI.COMM_WORLD) as simulation:
        simulation.run(10)
        if MPI.COMM_WORLD.rank == 1:
            raise RuntimeError("planted")
        simulation.run(900)


def killed() -> None:
    """A rank that is gone in the middle of a run."""
    with Simulation(counted(), 1_000_000, devices="cpu:1", comm=MPI.COMM_WORLD) as simulation:
        simulation.run(10)
        print(f"begun {os.getpid()}", flush=True)
        if MPI.COMM_WORLD.rank == 1:
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGKILL)
        simulation.run(900_000)


def hung() -> None:
    """A rank that is alive and silent; the others give up after a second instead of a minute."""
    with Simulation(counted(), 1_000_000, devices="cpu:1", comm=MPI.COMM_WORLD) as simulation:
        simulation._executor._inner._waits._timeout = 1.0
        simulation.run(10)
        print(f"begun {os.getpid()}", flush=True)
        if MPI.COMM_WORLD.rank == 1:
            threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGSTOP)).start()
        simulation.run(900_000)


def late(where: str) -> None:
    """A rank that does not come to where the others wait: rank 0 while it decides for all, in the middle of what it
    leads, or at the end of that; or rank 1 before the steps that others take, since it hangs or has left the script.
    """
    comm = MPI.COMM_WORLD
    print(f"begun {os.getpid()}", flush=True)
    abort_on_error(comm)
    comm.Barrier()  # from here on silence counts: processes start at different times
    os.environ["PEERGRID_RANK_TIMEOUT"] = "2"
    if where == "deciding":
        Ranks(comm).decided(stop)
    with Simulation(counted(), 1000, devices="cpu:1", comm=comm) as simulation:
        if where in ("leading", "ending") and comm.rank:
            simulation.follow()
            return
        if where in ("leading", "ending"):
            simulation.lead()
        if (where, comm.rank) in (("leading", 0), ("stepping", 1)):
            stop()
        if (where, comm.rank) == ("leaving", 1):
            sys.exit(0)
        simulation.run(10)
        simulation.sha256()
        if where == "ending":
            simulation._executor._inner.close = stop


def stop() -> None:
    time.sleep(0.1)  # the launcher takes what was printed
    os.kill(os.getpid(), signal.SIGSTOP)


def endless(devices: str = "cpu:1", strategy: str = "overlap") -> None:
    """A run that others end; SIGUSR1 is an exception in the middle of it, and silence is noticed after a second, on
    GPUs after those of their executor.
    """

    def fail(number: int, frame: object) -> None:
        raise RuntimeError("planted")

    signal.signal(signal.SIGUSR1, fail)
    options = Options(strategy)
    with Simulation(counted(), 100_000_000, devices=devices, options=options, comm=MPI.COMM_WORLD) as simulation:
        if devices.startswith("cpu"):
            simulation._executor._inner._waits._timeout = 1.0
        object.__setattr__(simulation._ranks, "timeout", 1.0)
        simulation.run(10)
        print(f"begun {os.getpid()}", flush=True)
        while True:
            simulation.run(100)


if __name__ == "__main__":
    globals()[sys.argv[1]](*(json.loads(text) for text in sys.argv[2:]))
