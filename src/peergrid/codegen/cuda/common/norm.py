"""The arguments of kernels with norms, and the kernel that adds up their sums (see `codegen.norm`)."""

from __future__ import annotations

import numpy as np

from peergrid.codegen.norm import NORM_COLUMNS, NORM_LEAVES, NORM_ROWS

NORMS = np.dtype(
    [
        ("partial", "<u8"),
        ("rows", "<u8"),
        ("pitch", "<i8"),
        ("plane", "<i8"),
        ("row_plane", "<i8"),
        ("follow", "<i8"),
    ]
)
"""Where the sums go. partial: shifted so that the block of cell (y, x) after step t of the pass lies at
`partial[t * plane + y / 24 * pitch + x / 8]`; rows: likewise `rows[t * row_plane + y / 24]`, in double precision;
follow: 1 if t counts the steps of the run there, 0 if those of the pass."""

NORM_STRUCT = """\
struct Norms { R* partial; double* rows; long long pitch, plane, row_plane, follow; };
"""


def norm_parameter(norm: str | None) -> str:
    """The parameters after `Arguments` of a kernel with a norm."""
    return ", const __grid_constant__ Norms norms" if norm else ""


def norm_reference(norm: str | None) -> str:
    """The last parameters of a tile's function."""
    return ", const Norms& norms" if norm else ""


def norm_argument(norm: str | None) -> str:
    """Its call with them."""
    return ", norms" if norm else ""


NORM_SUM = f"""\
// One block for each {NORM_ROWS} rows and step; blockIdx = ({NORM_ROWS} rows from the box's first, step).
extern "C" __global__ void __launch_bounds__({NORM_LEAVES}) norm_sum(const __grid_constant__ Arguments a,
                                                           const __grid_constant__ Norms norms) {{
  extern __shared__ __align__(128) unsigned char shared[];
  double* const sums = reinterpret_cast<double*>(shared);
  const int band = a.lo[0] / {NORM_ROWS} + blockIdx.x, step = blockIdx.y;
  const R* const from = norms.partial + step * norms.plane + band * norms.pitch;
  double sum = 0;
  const int end = (a.hi[1] + {NORM_COLUMNS - 1}) / {NORM_COLUMNS};
  for (int k = a.lo[1] / {NORM_COLUMNS} + threadIdx.x; k < end; k += {NORM_LEAVES})
    sum += static_cast<double>(from[k]);
  sums[threadIdx.x] = sum;
  for (int half = {NORM_LEAVES // 2}; half; half /= 2) {{
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }}
  const long long at = step + (norms.follow ? now(a) : 0);
  if (threadIdx.x == 0) norms.rows[at * norms.row_plane + band] = sums[0];
}}
"""
NORM_SUM_BYTES = NORM_LEAVES * 8
