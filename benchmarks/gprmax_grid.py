"""Run gprMax on an input file and keep its grid: media, the medium of every edge, absorbers, seconds of stepping.

    PYTHON_OF_GPRMAX benchmarks/gprmax_grid.py MODEL.in GRID.npz [single|double]

It needs gprMax 4.0.1 alone, in an environment of its own; `gprmax3d.py` starts it.
"""

import json
import sys
import time

import gprMax
import numpy as np
from gprMax.model import Model

solve = Model.solve


def kept(self, *args, **kwargs):
    """Solve as ever, and write what was solved."""
    grid = self.G
    media = [
        {
            "name": medium.ID,
            "numbers": [float(value) for value in (medium.er, medium.se, medium.mr, medium.sm)],
            "poles": [
                [float(x) for x in (w.real, w.imag, q.real, q.imag, -w.real if "drude" in medium.type else 0.0)]
                for w, q in zip(getattr(medium, "w", ()), getattr(medium, "q", ()), strict=True)
                if w
            ],
        }
        for medium in grid.materials
    ]
    slabs = [(slab.direction, int(slab.thickness), float(slab.CFS[0].sigma.max)) for slab in grid.pmls["slabs"]]
    began = time.perf_counter()
    found = solve(self, *args, **kwargs)
    about = {
        "media": media, "slabs": slabs, "dt": float(grid.dt), "samples": int(grid.iterations),
        "spacing": [float(d) for d in (grid.dx, grid.dy, grid.dz)],
        "cells": [int(n) for n in (grid.nx, grid.ny, grid.nz)],
        "seconds": time.perf_counter() - began,
    }  # fmt: skip
    np.savez(sys.argv[2], ids=np.asarray(grid.ID), about=json.dumps(about))
    return found


Model.solve = kept
precision = sys.argv[3] if len(sys.argv) > 3 else "double"
gprMax.run(inputfile=sys.argv[1], n=1, cpu_precision=precision, hide_progress_bars=True, log_level=30)
