"""The kernel of the tiles that are not plain: a thread block streams down a tile, a warp for each step.

In the order of reading: `rings`, where rows wait in shared memory; `stage`, how one is advanced; `results`, what leaves
it; `kernel`.
"""
