"""The kernel of the tiles that are not plain: a thread block streams along axis 0, planes in shared memory.

In the order of reading: `rings`, where planes wait; `stage`, how one is advanced; `kernel`.
"""
