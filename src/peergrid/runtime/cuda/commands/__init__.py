"""Command buffers: tables of driver calls that are replayed without the interpreter.

In the order of reading: `native`, calls by address from numba; `replay`, the loop; `buffer`, the table and its writer;
`parts`, one table split among threads.
"""
