"""Passes of several steps over a 3D box.

In the order of reading: `shape`, `walls` and `tiles`, how a box is cut; `stream`, the kernel of plain tiles; `edge`,
that of all others, or `shell`, which leaves them to kernels of one step; `pass_kernel`, all of it as one.
"""
