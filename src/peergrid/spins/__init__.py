"""Relaxation of binary variables on a random bipartite graph, four neighbours each: red from blue, then blue from red.

Read in this order: `philox` (random numbers by counter), `graph`, `rule` (one half step), `problem` (reads and writes
of half steps, for schedules), `compiled` and `gpu_kernel` (the rule on processors and GPUs), `relaxation` (a run),
`gpus` (a run on GPUs with the exchange in the kernel), `exact` (exact energies), `forecast` (half steps on GPUs that
are not here).
"""

from peergrid.spins.graph import BipartiteGraph, random_graph
from peergrid.spins.relaxation import Relaxation

__all__ = ["BipartiteGraph", "Relaxation", "random_graph"]
