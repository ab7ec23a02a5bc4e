"""The choice of the kernel for a problem, without a compiler or a device.

In the order of reading: `steps`, how many a pass makes; `shape2d` and `shape3d`, in which shape, `smaller2d` where
thread blocks have less shared memory; `balance`, how many rows each device gets.
"""
