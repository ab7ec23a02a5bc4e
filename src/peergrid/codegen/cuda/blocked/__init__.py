"""The geometry of time and of tiles, which passes of several steps share in 2D and 3D.

In the order of reading: `reach`, how far steps reach; `levels`, which row of which step is made when; `plain`, where
one update serves all cells, and `tiles`, how these are cut. `prelude` and `program` are what a kernel starts with, and
what it is to an executor; `tiled`, the protocol of kernels that cut boxes into tiles.
"""
