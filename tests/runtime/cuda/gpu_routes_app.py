"""Two ranks with a GPU each: the cases whose bits differ from those of one virtual device, by one route between them.

mpiexec -n 2 python gpu_routes_app.py nvshmem
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import cast

from mpi4py import MPI
from runtime_problems import PROBLEMS

from peergrid import Options, Simulation
from peergrid.runtime.ranks.launcher import abort_on_error
from peergrid.schedule.ops import Carrier

NAMES = ("heat_periodic", "heat_cube", "radius_four", "yee", "string", "media_plane")
STEPS = 11


@cache
def expected(name: str) -> str:
    with Simulation(PROBLEMS[name](), STEPS, devices="cpu:1", options=Options("serial"), kernel="reference") as alone:
        alone.run(STEPS)
        return alone.sha256()


def different(route: Carrier | None) -> Iterator[str]:
    for name, strategy, depth in product(NAMES, ("async", "overlap", "graph"), (1, 2)):
        options = Options(strategy, depth, route=route)
        with Simulation(PROBLEMS[name](), STEPS, devices="cuda", options=options, comm=MPI.COMM_WORLD) as simulation:
            simulation.run(4)
            simulation.run(STEPS - 4)
            if simulation.sha256() != expected(name):
                yield f"{name} {strategy} {depth}"


if __name__ == "__main__":
    abort_on_error(MPI.COMM_WORLD)
    given = None if sys.argv[1] == "address" else cast(Carrier, sys.argv[1])
    found = list(different(given))
    if MPI.COMM_WORLD.rank == 0:
        print(json.dumps(found))
