"""Passes of several steps over a 2D box.

In the order of reading: `shape` and `tiles`, how a box is cut; `stream`, the kernel of interior tiles; `strips`, that
of strips along the sides; `boundary`, that of all other tiles; `pass_kernel`, all three as one.
"""
