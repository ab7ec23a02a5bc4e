"""The choice of the kernel for a problem, without a compiler or a device.

In the order of reading: `steps`, how many a pass makes; `shape1d`, `shape2d` and `shape3d`, in which shape;
`one_step3d`, the same for one step in 3D; `balance`, how many rows each device gets.
"""
