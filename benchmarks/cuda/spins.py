"""Relaxation of binary variables on a random bipartite graph: rates of each exchange, the same bits, the energy.

    python benchmarks/cuda/spins.py [--devices 1,2] [--colour 16777216] [--seconds 70] [--out spins.json]

A sample is 100 half steps from the host's clock, the best of three; `flips_per_ns` counts every variable drawn.
`speed_up` is against one GPU. Parts are left out where the time is over.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid.errors import PeergridError  # noqa: E402
from peergrid.spins import BipartiteGraph, Relaxation, gpu_kernel, gpus, random_graph  # noqa: E402
from peergrid.spins.exact import bethe_energy  # noqa: E402

COUPLING, SEED, HALF_STEPS, WARM = 0.3, 7, 100, 20


def cases(counts: list[int]) -> Iterator[tuple[int, gpus.Exchange]]:
    """The counts of GPUs and the exchanges that make a difference."""
    for count in counts:
        yield from ((count, exchange) for exchange in (("store",) if count == 1 else ("store", "copy", "nccl")))


def bits(counts: list[int]) -> list[dict[str, Any]]:
    """A small graph on virtual devices and on GPUs: digests after 33 half steps."""
    graph, found = random_graph(1 << 15, 1), []
    with Relaxation(graph, COUPLING, SEED, "cpu:2") as run:
        run.advance(33)
        wanted = run.sha256()
    for count, exchange in cases(counts):
        row: dict[str, Any] = {"gpus": count, "exchange": exchange}
        try:
            with gpus.gpu_relaxation(graph, COUPLING, SEED, count, exchange) as run:
                run.advance(33)
                row["same_as_cpu"] = all(run.sha256(gpu) == wanted for gpu in range(count))
        except PeergridError as error:
            row["refused"] = str(error)
        found.append(row)
    return found


def rate(graph: BipartiteGraph, count: int, exchange: gpus.Exchange, energy: bool = False) -> dict[str, Any]:
    """One arrangement, or why there is none."""
    try:
        return measured(graph, count, exchange, energy)
    except PeergridError as error:
        return {"variables": 2 * graph.per_colour, "gpus": count, "exchange": exchange, "refused": str(error)}


def measured(graph: BipartiteGraph, count: int, exchange: gpus.Exchange, energy: bool) -> dict[str, Any]:
    """The rate, the digest after the same number of half steps, the energy if asked for."""
    with gpus.gpu_relaxation(graph, COUPLING, SEED, count, exchange) as run:
        run.advance(WARM)
        samples = []
        for _ in range(3):
            started = time.perf_counter()
            run.advance(HALF_STEPS)
            samples.append((time.perf_counter() - started) / HALF_STEPS)
        row = {
            "variables": 2 * graph.per_colour,
            "gpus": count,
            "exchange": exchange,
            "microseconds": [round(1e6 * sample, 2) for sample in samples],
            "flips_per_ns": round(graph.per_colour / min(samples) * 1e-9, 3),
            "sha256": run.sha256(count - 1),
        }
        if energy:
            row |= {"energy": run.energy(), "bethe": bethe_energy(COUPLING)}
        return row


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
    parser.add_argument("--devices", default="1,2")
    parser.add_argument("--colour", type=int, default=1 << 24, help="variables of a colour")
    parser.add_argument("--seconds", type=float, default=70)
    parser.add_argument("--out", type=Path, default=Path("spins.json"))
    given = parser.parse_args()
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
