"""From a problem to streaming kernels for CPUs: row functions for LLVM, and tables that say where each runs.

rows    what a row function is: its text, and what its pointers stand for
vectors an update → the text of a function over rows of cells
plan    a problem and a number of steps → order, lags, and where every time level lives
work    a plan and a tile → pieces: which row function on which cells, reading and writing where
tables  pieces → integers for the driver
driver  the loop over rows that carries the tables out; the same compiled code for every problem
norm    the sums of squared changes that the norm of every step begins with
native  texts of row functions → machine code, kept on disk
jit     the driver, norms and reductions → machine code by Numba, kept on disk
"""
