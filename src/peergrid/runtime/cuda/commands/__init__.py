"""Command buffers: tables of driver calls that are replayed without the interpreter.

In the order of reading: `buffer`, the table, and `writer`, which writes it; `native`, calls by address from numba;
`replay`, the loop; `issue`, a buffer carried out once.
"""
