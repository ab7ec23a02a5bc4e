"""peergrid: stencil + grid → schedule → verify → predict → run → measure.

The folders are named after that line; `docs/architecture.md` says what is in each.
"""

from typing import TYPE_CHECKING

from peergrid.errors import CheckFailed, DeviceFault, DoesNotFit, PeergridError, Unstable, UsageError
from peergrid.grid import Box, Field, Grid, Signal
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
    tanh,
    where,
)
from peergrid.verification import Proof, verify
from peergrid.version import VERSION

if TYPE_CHECKING:
    from peergrid.stencil import stencil  # at run time the package of this name, which is called alike

__version__ = VERSION

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
    "reduction",
    "run",
    "save",
    "sin",
    "source_of",
    "sqrt",
    "stencil",
    "tanh",
    "traffic",
    "verify",
    "where",
]
