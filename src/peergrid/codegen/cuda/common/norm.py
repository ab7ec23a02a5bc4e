"""The norm of every step: the squared change of a field summed over all cells, the same bits however it is computed.

The tree is fixed in the coordinates of the grid, not of tiles, strips or devices: squares of four neighbours along a
row are added one after another, row by row, in blocks of 24 rows and 8 columns that begin at multiples of 24 and 8; the
two halves of a block are added; blocks of 24 rows are summed across in double precision by a tree of 256 leaves (leaf
k takes every 256th block from the k-th on); what is left, one number for each 24 rows, is for the host to add up in
order. Devices whose boxes begin at multiples of 24 rows together give what one device gives.

Kernels that keep 2, 3 or 4 rows of a field in registers, by turns, come to the end of a block at the same register
always: so sums end at places that are known when the kernel is written, and no row has to ask.
"""

from __future__ import annotations

import numpy as np

NORM_ROWS, NORM_COLUMNS = NORM_ALIGN = 24, 8

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
NORM_PARAMETER = ", const __grid_constant__ Norms norms"

NORM_SUM = f"""\
// One block for each {NORM_ROWS} rows and step; blockIdx = ({NORM_ROWS} rows from the box's first, step).
extern "C" __global__ void __launch_bounds__(256) norm_sum(const __grid_constant__ Arguments a,
                                                           const __grid_constant__ Norms norms) {{
  extern __shared__ __align__(128) unsigned char shared[];
  double* const sums = reinterpret_cast<double*>(shared);
  const int band = a.lo[0] / {NORM_ROWS} + blockIdx.x, step = blockIdx.y;
  const R* const from = norms.partial + step * norms.plane + band * norms.pitch;
  double sum = 0;
  for (int k = a.lo[1] / {NORM_COLUMNS} + threadIdx.x; k < (a.hi[1] + {NORM_COLUMNS - 1}) / {NORM_COLUMNS}; k += 256)
    sum += static_cast<double>(from[k]);
  sums[threadIdx.x] = sum;
  for (int half = 128; half; half /= 2) {{
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }}
  const long long at = step + (norms.follow ? now(a) : 0);
  if (threadIdx.x == 0) norms.rows[at * norms.row_plane + band] = sums[0];
}}
"""
NORM_SUM_BYTES = 256 * 8


def total(rows: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """The norms of some steps from the sums of their rows, shape (steps, ceil(grid rows / 24)), of all devices."""
    return np.sqrt(np.add.accumulate(rows, axis=1)[:, -1])
