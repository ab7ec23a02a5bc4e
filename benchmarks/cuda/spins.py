"""Relaxation of binary variables on a random bipartite graph: rates of each exchange, the same bits, the energy.

    python benchmarks/cuda/spins.py [--devices 0,1,2] [--colour 16777216] [--seconds 70] [--out spins.json]
    mpiexec -n 2 python benchmarks/cuda/spins.py --ranks [--colour 16777216] [--out spins-ranks.json]

Exchanges `passes, …` are those of `Relaxation`, whose half steps are passes of a schedule; with --ranks a process has
a GPU, and the exchanges are by address, by NCCL and by MPI. A sample is 100 half steps from the host's clock, the best
of three; `flips_per_ns` counts every variable drawn, `exchanged_bits` what all GPUs get in a half step.
Parts are left out where the time is over.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid import Options  # noqa: E402
from peergrid.errors import PeergridError  # noqa: E402
from peergrid.spins import BipartiteGraph, Relaxation, gpu_kernel, gpus, random_graph  # noqa: E402
from peergrid.spins.exact import bethe_energy  # noqa: E402

COUPLING, SEED, HALF_STEPS, WARM = 0.3, 7, 100, 20


PASSES = "passes, "


TWICE = "one GPU as two devices, "
"""What the exchanges of `--devices 0` begin with."""


def cases(counts: list[int]) -> Iterator[tuple[int, str]]:
    """The counts of GPUs and the exchanges that make a difference; 0: one GPU as two devices."""
    ways = {0: tuple(f"{TWICE}{route}" for route in ("copy", "store", "host")), 1: ("store", f"{PASSES}copy")}
    several = ("store", "copy", "nccl", f"{PASSES}copy", f"{PASSES}store")
    for count in counts:
        yield from ((max(1, count), exchange) for exchange in ways.get(count, several))


@contextmanager
def opened(graph: BipartiteGraph, count: int, exchange: str) -> Iterator[Any]:
    """A relaxation on so many GPUs."""
    if not exchange.startswith((PASSES, TWICE)):
        with gpus.gpu_relaxation(graph, COUPLING, SEED, count, exchange) as run:  # type: ignore[arg-type]
            yield run
        return
    options = Options("async", route=exchange.removeprefix(PASSES).removeprefix(TWICE))  # type: ignore[arg-type]
    devices = "0,0" if exchange.startswith(TWICE) else ",".join(map(str, range(count)))
    with Relaxation(graph, COUPLING, SEED, f"cuda:{devices}", options) as run:
        yield run


def bits(counts: list[int]) -> list[dict[str, Any]]:
    """A small graph on virtual devices and on GPUs: digests after 33 half steps."""
    graph, found = random_graph(1 << 15, 1), []
    with Relaxation(graph, COUPLING, SEED, "cpu:2") as run:
        run.advance(33)
        wanted = run.sha256()
    for count, exchange in cases(counts):
        row: dict[str, Any] = {"gpus": count, "exchange": exchange}
        try:
            with opened(graph, count, exchange) as run:
                run.advance(33)
                row["same_as_cpu"] = run.sha256() == wanted and (
                    isinstance(run, Relaxation) or all(run.sha256(gpu) == wanted for gpu in range(count))
                )
        except PeergridError as error:
            row["refused"] = str(error)
        found.append(row)
    return found


def rate(graph: BipartiteGraph, count: int, exchange: str, energy: bool = False) -> dict[str, Any]:
    """One arrangement, or why there is none."""
    try:
        return measured(graph, count, exchange, energy)
    except PeergridError as error:
        return {"variables": 2 * graph.per_colour, "gpus": count, "exchange": exchange, "refused": str(error)}


def measured(graph: BipartiteGraph, count: int, exchange: str, energy: bool) -> dict[str, Any]:
    """The rate, the digest after the same number of half steps, the energy if asked for."""
    with opened(graph, count, exchange) as run:
        samples = sampled(run)
        row = {
            "variables": 2 * graph.per_colour,
            "gpus": count,
            "exchange": exchange,
            "exchanged_bits": (count - 1 + exchange.startswith(TWICE)) * graph.per_colour,
            "microseconds": [round(1e6 * sample, 2) for sample in samples],
            "flips_per_ns": round(graph.per_colour / min(samples) * 1e-9, 3),
            "sha256": run.sha256() if isinstance(run, Relaxation) else run.sha256(count - 1),
        }
        if energy:
            row |= {"energy": run.energy(), "bethe": bethe_energy(COUPLING)}
        return row


def sampled(run: Any) -> list[float]:
    """Seconds of a half step, of three samples."""
    run.advance(WARM)
    samples = []
    for _ in range(3):
        started = time.perf_counter()
        run.advance(HALF_STEPS)
        samples.append((time.perf_counter() - started) / HALF_STEPS)
    return samples


def over_ranks(comm: Any, colour: int, out: Path) -> None:
    """A GPU for each rank, by each route; rank 0 writes the slowest rank's times."""
    graph, rows = random_graph(colour, 1), []
    for route in (None, "nccl", "mpi", "mpi-direct"):
        row: dict[str, Any] = {"variables": 2 * colour, "ranks": comm.size, "route": route or "by address"}
        try:
            options = Options("async", route=route)  # type: ignore[arg-type]
            with Relaxation(graph, COUPLING, SEED, f"cuda:{comm.rank}", options, comm) as run:
                seconds = list(map(max, zip(*comm.allgather(sampled(run)), strict=True)))
                row |= {"flips_per_ns": round(colour / min(seconds) * 1e-9, 3), "sha256": run.sha256()}
                row |= {"microseconds": [round(1e6 * one, 2) for one in seconds], "notes": list(run.notes)}
        except PeergridError as error:
            row["refused"] = str(error)
        rows.append(row)
        if comm.rank == 0:
            print(row, flush=True)
            found = {**about(("peergrid", "numpy", "cuda-bindings", "mpi4py")), "coupling": COUPLING, "ranks": rows}
            out.write_text(json.dumps(found, indent=1) + "\n")


def variants(graph: BipartiteGraph) -> Iterator[dict[str, Any]]:
    """Other texts of the kernel on one GPU."""
    own = gpus.source()
    loop = "  for (u32 q = 0; q < GROUP / 4"
    changes = {
        "words of a warp: 8": ("#define GROUP 16", "#define GROUP 8"),
        "words of a warp: 32": ("#define GROUP 16", "#define GROUP 32"),
        "neighbours cached": ("__ldcs(neighbours", "__ldg(neighbours"),
        "gathers through L2 alone": ("return words[variable >> 5]", "return __ldcg(words + (variable >> 5))"),
        "quads unrolled": (loop, f"#pragma unroll\n{loop}"),
    }
    texts = {name: own.replace(*change) for name, change in changes.items()}
    for name, text in texts.items():
        gpus.source = lambda text=text: text  # type: ignore[assignment]
        gpu_kernel.GROUP = 8 if name.endswith(": 8") else 32 if name.endswith(": 32") else 16
        yield {"variant": name, **rate(graph, 1, "store")}
    gpus.source, gpu_kernel.GROUP = lambda: own, 16  # type: ignore[assignment]


def parts(counts: list[int], colour: int) -> Iterator[tuple[str, Any]]:
    """The parts of the record, the most important first."""
    yield "bits", bits(counts)
    graph = random_graph(colour, 1)
    for number, (count, exchange) in enumerate(cases(counts)):
        yield "rates", rate(graph, count, exchange, energy=number == 0)
    for row in variants(graph):
        yield "variants", row
    for small in (1 << 18, 1 << 20, 1 << 22):
        graph = random_graph(small, 1)
        for count, exchange in cases(counts):
            yield "sizes", rate(graph, count, exchange)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", default="1,2", help="counts of GPUs; 0: one GPU as two devices")
    parser.add_argument("--colour", type=int, default=1 << 24, help="variables of a colour")
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--out", type=Path, default=Path("spins.json"))
    parser.add_argument("--ranks", action="store_true", help="a GPU for each process of mpiexec")
    given = parser.parse_args()
    if given.ranks:
        from mpi4py import MPI

        over_ranks(MPI.COMM_WORLD, given.colour, given.out)
        return
    started, found = time.monotonic(), {**about(("peergrid", "numpy", "cuda-bindings")), "coupling": COUPLING}
    for name, row in parts([int(text) for text in given.devices.split(",")], given.colour):
        found.setdefault(name, []).extend(row if isinstance(row, list) else [row])
        print(f"{time.monotonic() - started:.1f} s", name, row, flush=True)
        given.out.write_text(json.dumps(found, indent=1) + "\n")
        if time.monotonic() - started > given.seconds:
            print("the time is over", flush=True)
            return


if __name__ == "__main__":
    main()
