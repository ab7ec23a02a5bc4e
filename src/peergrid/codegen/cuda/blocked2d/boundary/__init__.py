"""The kernel of boundary tiles: a thread block streams down a tile, a warp for each step.

In the order of reading: `rings`, which row each stage makes when, and where rows wait in shared memory; `kernel`, the
plan for `skeletons/boundary2d.cuh`.
"""
