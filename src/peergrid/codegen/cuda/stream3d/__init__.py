"""Updates of 3D grids that stream along axis 0 through shared memory.

In the order of reading: `corrections`, which later stages the kernel makes, too; `reads`, which node reads which
planes; `rings`, which planes are kept where, with `correctable`, can threads correct them, and `tensors`, how they
are copied; `text`, the program (with `skeletons/stream3d.cuh`), of `updates`, `correction_text` and `bounds`; `core`
and `tiles`, how a box is cut; `kernel`, a step as a value; `pass_kernel`, several steps; `remainder`, what their
tiles leave; `rotation`, waves in place; `slabs`, grids whose updates differ from slab to slab.
"""
