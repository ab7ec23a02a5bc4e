"""A small tile that a thread block holds in shared memory for several steps.

In the order of reading: `cells`, what lies where; `stage`, how they are advanced; `results`, what leaves; `tile`.
"""
