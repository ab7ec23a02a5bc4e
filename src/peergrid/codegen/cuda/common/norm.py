"""The arguments of kernels with norms (see `codegen.norm`)."""

from __future__ import annotations

from peergrid.codegen.cuda.skeletons.layouts import layout_of

NORMS = layout_of("norms.cuh", "Norms")
"""The place of the sums. partial: shifted so that the block of cell (y, x) after step t of the pass lies at
`partial[t * plane + y / 24 * pitch + x / 8]`; rows: likewise `rows[t * row_plane + y / 24]`, in double precision;
follow: 1 if t counts the steps of the run there, 0 if those of the pass."""
