"""Kernels that exchange with those of neighbouring devices themselves, for 2D slabs.

In the order of reading: `exchange`, how they keep step; `peer`, one pass in a launch; `persistent`, many passes in one,
whose tiles at the edges are those of `block`.
"""
