"""Stencil computations on all processor cores or NVIDIA GPUs of a machine, with the same bits on any.

    import peergrid

    @peergrid.stencil
    def heat(u, k):
        u.next[0, 0] = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])

    u = peergrid.Grid((512, 512)).field("u", init=1.0)
    result = peergrid.run(heat(u, k=0.2), steps=100)

Start with `stencil`, `Grid`, `run` and `Simulation`; `run_model` runs model files. `peergrid.models`,
`peergrid.inverse`, `peergrid.spins`, `peergrid.images` and `peergrid.sparse` are libraries of their own.
`peergrid docs` prints the documents of this version, and `peergrid docs api` lists the names below.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from peergrid.version import VERSION

if TYPE_CHECKING:
    from peergrid.errors import CheckFailed, DeviceFault, DoesNotFit, PeergridError, Unstable, UsageError
    from peergrid.grid import Box, Field, Grid, Signal, Table
    from peergrid.io.checkpoint import read_state, write_state
    from peergrid.jobs import run_model, run_survey
    from peergrid.result import Result
    from peergrid.runtime.retain import hold
    from peergrid.runtime.traffic import Moved, Traffic, traffic
    from peergrid.saved import save
    from peergrid.schedule import Options
    from peergrid.simulate import Simulation, run
    from peergrid.sources import source_of
    from peergrid.stencil import (
        Cell,
        Clock,
        Expr,
        Lookup,
        Problem,
        Receiver,
        Reduction,
        Stage,
        cos,
        equal,
        exp,
        log,
        maximum,
        minimum,
        reduction,
        sin,
        sqrt,
        stencil,  # at run time this name is the package, which can be called like the decorator
        tanh,
        where,
    )
    from peergrid.verification import Proof, verify

__version__ = VERSION
_NAMES = {
    "errors": "CheckFailed DeviceFault DoesNotFit PeergridError Unstable UsageError",
    "grid": "Box Field Grid Signal Table",
    "io.checkpoint": "read_state write_state",
    "jobs": "run_model run_survey",
    "result": "Result",
    "runtime.retain": "hold",
    "runtime.traffic": "Moved Traffic traffic",
    "saved": "save",
    "schedule": "Options",
    "simulate": "Simulation run",
    "sources": "source_of",
    "stencil": (
        "Cell Clock Expr Lookup Problem Receiver Reduction Stage cos equal exp log maximum minimum reduction sin sqrt "
        "tanh where"
    ),
    "verification": "Proof verify",
}
"""The names of each module, which is imported when one of them is first used: the command line ends without a traceback
if it is interrupted while it is loaded.
"""
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}
_PACKAGES = ("errors", "grid", "images", "inverse", "models", "runtime", "schedule", "sparse", "spins", "stencil")

__all__ = [
    "Box",
    "Cell",
    "CheckFailed",
    "Clock",
    "DeviceFault",
    "DoesNotFit",
    "Expr",
    "Field",
    "Grid",
    "Lookup",
    "Moved",
    "Options",
    "PeergridError",
    "Problem",
    "Proof",
    "Receiver",
    "Reduction",
    "Result",
    "Signal",
    "Simulation",
    "Stage",
    "Table",
    "Traffic",
    "Unstable",
    "UsageError",
    "cos",
    "equal",
    "exp",
    "hold",
    "log",
    "maximum",
    "minimum",
    "read_state",
    "reduction",
    "run",
    "run_model",
    "run_survey",
    "save",
    "sin",
    "source_of",
    "sqrt",
    "stencil",
    "tanh",
    "traffic",
    "verify",
    "where",
    "write_state",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"peergrid.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module 'peergrid' has no attribute '{name}'")
    found = globals()[name] = getattr(import_module(f"peergrid.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_PACKAGES})
