"""Sparse products on virtual devices beside SciPy's, in turn: nonzeros near the diagonal and anywhere.

    python benchmarks/sparse_cpu.py [--rows 1048576] [--width 16] [--rounds 7] [--out FILE]

Float64 values, a sample is four products in a row, a time the median over the rounds. SciPy's product works in one
thread. Both add a row up in the same order: the vectors have the same bits. Writes benchmarks/results/sparse_cpu.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from matrices import BANDS, drawn
from record import about, save
from scipy import sparse

from peergrid.sparse import CsrMatrix, Products, SlicedMatrix

PRODUCTS = 4


def measured(matrix: CsrMatrix, columns: str, rounds: int) -> dict[str, Any]:
    """Seconds of a product by each, and whether the bits are the same."""
    vector = np.random.default_rng(2).random(matrix.rows)
    indices = matrix.columns.astype(np.int32), matrix.starts.astype(np.int32)
    theirs = sparse.csr_array((matrix.values, *indices), shape=(matrix.rows,) * 2)

    def scipy() -> Any:
        found = vector
        for _ in range(PRODUCTS):
            found = theirs @ found
        return found

    def by(run: Products) -> Callable[[], Any]:
        return lambda: run.advance(PRODUCTS)

    with ExitStack() as runs:
        ways: dict[str, Callable[[], Any]] = {"SciPy": scipy}
        ours = {}
        for name, held in (("rows", matrix), ("slices", SlicedMatrix.of(matrix))):
            for devices in ("cpu:1", "cpu:2"):
                run = ours[f"{name}, {devices}"] = runs.enter_context(Products(held, vector, devices))
                ways[f"{name}, {devices}"] = by(run)
        times: dict[str, list[float]] = {name: [] for name in ways}
        for run in ours.values():
            run.advance(PRODUCTS)
        same = all(run.vector().tobytes() == scipy().tobytes() for run in ours.values())
        for _ in range(rounds):
            for name, way in ways.items():
                started = time.perf_counter()
                way()
                times[name].append((time.perf_counter() - started) / PRODUCTS)
    medians = {name: statistics.median(found) for name, found in times.items()}
    return {"columns": columns, "nonzeros": matrix.nonzeros, "seconds": medians, "samples": times, "same_bits": same}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1 << 20)
    parser.add_argument("--width", type=int, default=16, help="nonzeros of a row")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    rows = []
    for columns, band in BANDS.items():
        rows.append(measured(drawn(given.rows, given.width, band, "float64"), columns, given.rounds))
        print({key: rows[-1][key] for key in ("columns", "seconds", "same_bits")}, flush=True)
    found = {**about(("peergrid", "numpy", "numba", "scipy")), "rows": given.rows, "width": given.width, "found": rows}
    if given.out:
        given.out.write_text(json.dumps(found, indent=2) + "\n")
    else:
        save("sparse_cpu", found)


if __name__ == "__main__":
    main()
