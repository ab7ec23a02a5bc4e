"""Updates of 3D grids that stream along axis 0 through shared memory.

In the order of reading: `rings`, which planes are kept where; `text`, the program
(with `skeletons/stream3d.cuh`); `tiles`, how a box is cut; `kernel`, all of it as a value; `choose`, which shape.
"""
