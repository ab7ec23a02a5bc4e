"""The same relaxation in several processes, which share the variables: mpiexec -n 2 python examples/spins_ranks.py"""

from mpi4py import MPI

from peergrid.spins import Relaxation, random_graph

graph = random_graph(37 * 32, seed=5)
with Relaxation(graph, coupling=0.4, seed=11, devices="cpu:2", comm=MPI.COMM_WORLD) as run:
    run.advance(5)
    digest = run.sha256()  # asked for by all processes
if MPI.COMM_WORLD.rank == 0:
    print(digest)
