"""The geometry of time and of tiles, and the text of kernels, which passes of several steps share.

In the order of reading: `reach`, how far steps reach; `levels`, which row of which step is made when; `interior`,
where one update serves all cells, and `tiles`, how these are cut. `updates` are functions, in 1D and 2D; `kernel` is
a kernel of tiles of one kind; `tiled`, all kinds of tiles of a pass; `instructions`, how long they take.
"""
