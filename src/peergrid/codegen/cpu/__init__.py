"""From a problem to streaming kernels for CPUs: row functions for LLVM, and tables that say where each runs.

rows    what a row function is: its text, and what its pointers stand for
vectors an update → the text of a function over rows of cells
plan    a problem and a number of steps → order, lags, and where every time level lives
work    a plan and a tile → pieces: which row function on which cells, reading and writing where
tables  pieces → integers for the driver
common  functions that are the same for all problems: the driver, a loop that carries the tables out, norms, reductions
native  texts of functions → machine code, kept on disk
"""
