"""From a problem to streaming kernels for CPUs: row functions as Numba source, and tables that say where each runs.

rows    an update → the source of a function over one row of cells
plan    a problem and a number of steps → order, lags, and where every time level lives
work    a plan and a tile → pieces: which row function on which cells, reading and writing where
tables  pieces → integers for the driver
driver  the loop over rows that carries the tables out; the same compiled code for every problem
norm    the sums of squared changes that the norm of every step begins with
jit     source → machine code, kept on disk
"""
