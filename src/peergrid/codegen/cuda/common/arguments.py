"""What a generated kernel is given: one struct for each problem, in C++ text and as the NumPy dtype that fills it.

Every pointer to a field is shifted so that the cell (i, j, k) of the grid lies at `p[i * pitch[0] + j * pitch[1] + k]`
(2D: `p[i * pitch[0] + j]`, 1D: `p[i]`; a profile: `p[index along its axis]`), whatever box the device stores. In
the slot that they write, kernels of one step find it by `into`: that may be of another shape (see `blocked3d.shell`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from peergrid.codegen.cuda.common.expressions import CTYPES
from peergrid.stencil import Problem

REGION = np.dtype([("lo", "<i4", 3), ("hi", "<i4", 3), ("variant", "<i4"), ("first", "<i4")])
"""A box of cells for one variant of a kernel; `first` is the first thread block that works on it."""

FIELD = np.dtype([("slot", "<u8", 2), ("pitch", "<i8", 2), ("into", "<i8", 2)])
"""Where a field is: its slots, and the pitches by which they are read, and written by kernels of one step."""

RECEIVER = np.dtype([("cell", "<i4", 3), ("field", "<i4"), ("number", "<i4")])
"""A receiver: its cell, its field's place in `Arguments.fields`, and its row of the traces."""

TEMPLATE = """\
typedef {real} R;
struct Field {{ R* slot[2]; long long pitch[2]; long long into[2]; }};
struct Signal {{ const R* samples; long long count; }};
struct Region {{ int lo[3]; int hi[3]; int variant; int first; }};
struct Receiver {{ int cell[3]; int field; int number; }};
struct Arguments {{
  Field fields[{fields}];
  R* scratch[{scratch}];
  Signal signals[{signals}];
  const Region* regions;
  const Receiver* receivers;
  R* traces;
  const long long* clock;
  long long total_steps;
  long long step;
  R params[{params}];
  int lo[3];
  int hi[3];
  int count;
  int source;
  int target;
}};
"""


@dataclass(frozen=True)
class Arguments:
    """The struct of a problem's kernels; `scratch` counts the fields that need a third block (see `onestep.groups`)."""

    problem: Problem
    scratch: int = 0

    @cached_property
    def fields(self) -> tuple[str, ...]:
        """The fields in the order of the struct."""
        return tuple(self.problem.fields)

    @cached_property
    def signals(self) -> tuple[str, ...]:
        return tuple(self.problem.signals)

    @cached_property
    def params(self) -> tuple[str, ...]:
        return tuple(self.problem.params)

    def param(self, key: str) -> str:
        """The C++ text of a parameter."""
        return f"a.params[{self.params.index(key)}]"

    def now(self, signal: str) -> str:
        """The C++ text of a signal's sample; `step` must be in scope."""
        return f"sample(a.signals[{self.signals.index(signal)}], step)"

    @property
    def source(self) -> str:
        """The C++ text of the struct."""
        return TEMPLATE.format(
            real=CTYPES[self.problem.grid.dtype],
            fields=len(self.fields),
            scratch=max(1, self.scratch),
            signals=max(1, len(self.signals)),
            params=max(1, len(self.params)),
        )

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The same struct for NumPy; unused entries of at least one element keep both free of empty arrays."""
        real = np.dtype(self.problem.grid.dtype)
        signal = np.dtype([("samples", "<u8"), ("count", "<i8")])
        members: list[Any] = [
            ("fields", FIELD, (len(self.fields),)),
            ("scratch", "<u8", (max(1, self.scratch),)),
            ("signals", signal, (max(1, len(self.signals)),)),
            ("regions", "<u8"),
            ("receivers", "<u8"),
            ("traces", "<u8"),
            ("clock", "<u8"),
            ("total_steps", "<i8"),
            ("step", "<i8"),
            ("params", real, (max(1, len(self.params)),)),
            ("lo", "<i4", (3,)),
            ("hi", "<i4", (3,)),
            ("count", "<i4"),
            ("source", "<i4"),
            ("target", "<i4"),
        ]
        return np.dtype(members, align=True)
