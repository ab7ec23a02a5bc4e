"""Command buffers: tables of driver calls that are replayed without the interpreter.

In the order of reading: `rows`, the words of a call; `native`, calls by address from numba; `replay`, the loop;
`buffer`, the table, and `writer`, which writes it; `issue`, a buffer carried out once.
"""
