"""Sparse products beside cuSPARSE's in turns, with nonzeros near the diagonal and anywhere; ways to hold the vector.

    python benchmarks/cuda/sparse.py [--rows 4194304] [--width 16] [--dtype float32] [--gpus 0,1] [--seconds 150]
        [--out sparse.json]

Rows have `width` nonzeros. On one GPU, `ours` are both kernels, `cusparse` is CuPy's product of the same matrix and a
vector, all in turns and timed by the host over 50 products in a row; `against_cusparse` is the faster of ours over it.
On two GPUs and more a product and its exchange are timed alike, and the vectors compared by their bits.
`gflops` counts two operations for each nonzero. Without CuPy its rows are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from matrices import BANDS, drawn  # noqa: E402
from record import about  # noqa: E402

from peergrid import Options  # noqa: E402
from peergrid.errors import PeergridError  # noqa: E402
from peergrid.runtime.devices import gpu_count  # noqa: E402
from peergrid.sparse import CsrMatrix, Products, RangeProducts, SlicedMatrix  # noqa: E402

ROUNDS, REPEATS = 5, 50
Run = Products | RangeProducts


def per_product(run: Run, repeats: int) -> float:
    """Seconds of a product with its exchange, from the host's clock."""
    run.advance(2)
    started = time.perf_counter()
    run.advance(repeats)
    return (time.perf_counter() - started) / repeats


def cusparse(matrix: CsrMatrix, vector: Any) -> tuple[Callable[[int], float], Callable[[], Any]] | None:
    """Seconds of so many products by cuSPARSE, and their result; None without CuPy."""
    try:
        import cupy
        from cupyx import cusparse as library
        from cupyx.scipy import sparse
    except ImportError as error:
        print(f"no CuPy: {error}", flush=True)
        return None
    starts, columns = matrix.starts.astype(np.int32), matrix.columns.astype(np.int32)
    gpu = cupy.cuda.Device(0)
    with gpu:
        held = sparse.csr_matrix(tuple(map(cupy.asarray, (matrix.values, columns, starts))), shape=(matrix.rows,) * 2)
        x = cupy.asarray(vector)
        y = held @ x

    def seconds(repeats: int) -> float:
        with gpu:
            gpu.synchronize()
            started = time.perf_counter()
            for _ in range(repeats):
                library.spmv(held, x, y)
            gpu.synchronize()
            return (time.perf_counter() - started) / repeats

    def product() -> Any:
        with gpu:
            return cupy.asnumpy(held @ x)

    return seconds, product


def one_gpu(matrix: CsrMatrix, vector: Any, columns: str) -> dict[str, Any]:
    """Both kernels and cuSPARSE in turns on GPU 0."""
    other, times = cusparse(matrix, vector), dict[str, list[float]]()
    with (
        Products(matrix, vector, "cuda:0") as rows,
        Products(SlicedMatrix.of(matrix), vector, "cuda:0") as slices,
    ):
        ours: dict[str, Run] = {"rows": rows, "slices": slices}
        for _ in range(ROUNDS):
            for name, run in ours.items():
                times.setdefault(name, []).append(per_product(run, REPEATS))
            if other is not None:
                times.setdefault("cusparse", []).append(other[0](REPEATS))
        digests = {name: digest(run, vector) for name, run in ours.items()}
    medians = {name: statistics.median(found) for name, found in times.items()}
    best = min(medians[name] for name in ours)
    found: dict[str, Any] = {"columns": columns, "seconds": medians, "same_bits": len(set(digests.values())) == 1}
    found["gflops"] = {name: round(2e-9 * matrix.nonzeros / one, 1) for name, one in medians.items()}
    found["read_gb_per_s"] = round(1e-9 * matrix.nonzeros * (4 + matrix.values.itemsize) / best)
    if other is not None:
        found["against_cusparse"] = round(medians["cusparse"] / best, 4)
        with Products(matrix, vector, "cuda:0") as run:
            run.advance(1)
            found["largest_difference"] = float(np.abs(run.vector() - other[1]()).max())
    return found


def digest(run: Run, vector: Any) -> str:
    """Of the vector after three products from the first one."""
    run.set(vector)
    run.advance(3)
    return hashlib.sha256(run.vector().tobytes()).hexdigest()


def ways(devices: str) -> dict[str, Callable[[CsrMatrix | SlicedMatrix, Any], Run]]:
    """How several GPUs hold the vector."""
    return {
        "gathered by copies": lambda m, v: Products(m, v, devices, Options("async", route="copy")),
        "replicated by stores": lambda m, v: Products(m, v, devices, Options("async", route="store")),
        "one range": lambda m, v: RangeProducts(m, v, devices),
    }


def several(matrix: CsrMatrix, vector: Any, columns: str, gpus: str) -> Iterator[dict[str, Any]]:
    """The three ways on GPUs, with the faster kernel of each."""
    devices = f"cuda:{gpus}"
    slices = SlicedMatrix.of(matrix)
    for way, make in ways(devices).items():
        row: dict[str, Any] = {"columns": columns, "gpus": gpus, "vector": way, "seconds": {}}
        for name, held in (("rows", matrix), ("slices", slices)):
            try:
                with make(held, vector) as run:
                    seconds = [per_product(run, REPEATS) for _ in range(ROUNDS)]
                    row["seconds"][name] = statistics.median(seconds)
                    row.setdefault("sha256", []).append(digest(run, vector))
            except PeergridError as error:
                row["refused"] = str(error)
        yield row


def parts(given: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """All rows: those of one GPU first."""
    gpus, made = given.gpus or ",".join(map(str, range(gpu_count()))), {}
    for columns, band in BANDS.items():
        matrix = made[columns] = drawn(given.rows, given.width, band, given.dtype)
        vector = np.random.default_rng(2).random(given.rows, dtype=matrix.values.dtype)
        yield "one", one_gpu(matrix, vector, columns)
    for columns, matrix in made.items() if "," in gpus else ():
        vector = np.random.default_rng(2).random(given.rows, dtype=matrix.values.dtype)
        for row in several(matrix, vector, columns, gpus):
            yield "several", row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1 << 22)
    parser.add_argument("--width", type=int, default=16, help="nonzeros of a row")
    parser.add_argument("--dtype", choices=("float32", "float64"), default="float32")
    parser.add_argument("--gpus", default="", help="such as 0,1 (default: all); 0,0 is one GPU as two devices")
    parser.add_argument("--seconds", type=float, default=150)
    parser.add_argument("--out", type=Path, default=Path("sparse.json"))
    given = parser.parse_args()
    started = time.monotonic()
    found = {**about(("peergrid", "numpy", "cuda-bindings", "cupy-cuda13x")), "rows": given.rows, "width": given.width}
    found["dtype"] = given.dtype
    for name, row in parts(given):
        found.setdefault(name, []).append(row)
        print(f"{time.monotonic() - started:.1f} s", name, row, flush=True)
        given.out.write_text(json.dumps(found, indent=1) + "\n")
        if time.monotonic() - started > given.seconds:
            print("the time is over", flush=True)
            return


if __name__ == "__main__":
    main()
