"""What a host has to call, as a table that is carried out without the interpreter.

In the order of reading: `native`, how numba calls by address; `replay`, the loop; `tape`, who writes what it reads;
`parts`, a tape cut for threads side by side.
"""
