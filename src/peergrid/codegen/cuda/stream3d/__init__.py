"""Updates of 3D grids that stream along axis 0 through shared memory.

In the order of reading: `reads`, which node reads which planes; `rings`, which planes are kept where; `text`, the
program (with `skeletons/stream3d.cuh`); `core` and `tiles`, how a box is cut; `kernel`, a step as a value;
`pass_kernel`, several steps; `remainder`, what their tiles leave; `rotation`, waves in place; `choose`, which shape one
step takes.
"""
