"""Several steps of a 1D problem in one pass: overlapped tiles in registers, and in shared memory near edges.

In the order of reading: `shape`, how a pass is cut; `text`, the kernels, by plans for `skeletons/tile1d.cuh`;
`tiles`, which cells have which tiles; `pass_kernel`, all of it as what an executor launches.
"""
