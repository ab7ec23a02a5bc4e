"""Texts that are no case of the catalogue, for they depend on no problem: of products, half steps, images, probes."""

from __future__ import annotations

import numpy as np

from catalogue.sample import Piece
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.images import gpus as images
from peergrid.images.table import Line
from peergrid.probe.cuda.compile import HEADED, SOURCES, text
from peergrid.sparse import CsrMatrix
from peergrid.sparse.gpus import GpuProduct
from peergrid.sparse.problem import products
from peergrid.spins import gpus as spins
from peergrid.spins import random_graph
from peergrid.spins.gpu_kernel import GpuHalfStep
from peergrid.spins.problem import half_steps
from peergrid.spins.rule import first_words, thresholds


def own_texts() -> tuple[Piece, ...]:
    """One of each kind and type of value."""
    found = {f"probe {name}": text(name) for name in SOURCES if name not in HEADED}
    for dtype in ("float32", "float64"):
        matrix = CsrMatrix.of(np.eye(2, dtype=dtype))
        found[f"products, {dtype}"] = expanded(GpuProduct(matrix, products(matrix, np.ones(2))).program.source)
    limits = thresholds(0.4)
    found["half steps, alone"] = spins.source()
    half_step = GpuHalfStep(random_graph(64, 1), limits, 1, half_steps(first_words(2, 1)))
    found["half steps, as passes"] = expanded(half_step.program.source)
    for dtype, line in ((np.uint8, None), (np.uint16, None), (np.uint16, Line(1, 2))):
        found[f"images, {np.dtype(dtype)}, {line}"] = images.source(np.dtype(dtype), line)
    return tuple(Piece(name, source) for name, source in found.items())
