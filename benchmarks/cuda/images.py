"""A grey image divided by three, in four ways, beside a copy of the same bytes.

    python benchmarks/cuda/images.py [--devices cuda] [--bytes 1073741824] [--out images.json]

On all processors; on one GPU with a pixel for each thread; on one GPU with loads of 16 bytes; on all GPUs; a formula
that is no line also with its table in shared memory. Rates count the bytes read and written; the median of the
repetitions after the first three. Transfers: copies of the whole image from and to pageable memory of the host, by the
driver. Every result is compared with that of NumPy.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "benchmarks")]

from record import about  # noqa: E402

from peergrid import images  # noqa: E402
from peergrid.images.formula import parse  # noqa: E402
from peergrid.images.gpus import on_gpus  # noqa: E402
from peergrid.images.table import table  # noqa: E402
from peergrid.runtime.cuda.bandwidth import copy_bandwidth  # noqa: E402
from peergrid.runtime.devices import cores, parse_devices  # noqa: E402

FORMULAS = {"line": "x / 3", "table": "sqrt(x) * 16"}
REPETITIONS, WARM = 13, 3
WAYS = {
    "each": "a pixel a thread",
    "packed": "16 bytes a thread",
    "shared": "16 bytes a thread, table in shared memory",
}


def on_processors(image: np.ndarray[Any, Any], formula: str) -> dict[str, Any]:
    threads = cores()
    images.apply(formula, image, f"cpu:{threads}")
    began = perf_counter()
    images.apply(formula, image, f"cpu:{threads}")
    seconds = perf_counter() - began
    return {"way": f"{threads} processors", "formula": formula, "dtype": str(image.dtype), "seconds": seconds}


def measured(image: np.ndarray[Any, Any], formula: str, ordinals: tuple[int, ...], variant: Any) -> dict[str, Any]:
    values = table(parse(formula), image.dtype)
    found, seconds = on_gpus(image, values, ordinals, variant, REPETITIONS)
    assert np.array_equal(found[:2], values[image[:2]])
    assert np.array_equal(found[-2:], values[image[-2:]])
    return {
        "way": f"{len(ordinals)} GPU, {WAYS[variant]}",
        "formula": formula,
        "dtype": str(image.dtype),
        "seconds": statistics.median(seconds.kernels[WARM:]),
        "to_devices": seconds.to_devices,
        "from_devices": seconds.from_devices,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--devices", default="cuda")
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--out", type=Path, default=Path("images.json"))
    given = parser.parse_args()
    ordinals = parse_devices(given.devices).ordinals
    copied = copy_bandwidth(ordinals[0])
    rows: list[dict[str, Any]] = []
    for dtype in (np.uint8, np.uint16):
        width = 16385  # odd: rows do not begin at whole loads
        height = given.bytes // np.dtype(dtype).itemsize // width
        image = np.random.default_rng(1).integers(0, np.iinfo(dtype).max + 1, (height, width), dtype)
        rows.append(on_processors(image, FORMULAS["line"]))
        for formula in FORMULAS.values():
            one = ordinals[:1]
            ways = dict.fromkeys([(one, "each"), (one, "packed"), (one, "shared"), (ordinals, "packed")])  # each once
            for some, variant in ways:
                if variant != "shared" or formula == FORMULAS["table"]:
                    rows.append(measured(image, formula, some, variant))
        for row in rows:
            row.setdefault("gbytes_per_second", 2 * image.nbytes / row["seconds"] / 1e9)
            print(json.dumps(row), flush=True)
        found = {"about": about(), "copy_gbytes_per_second": copied and copied / 1e9, "rows": rows}
        given.out.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
