"""Binary variables on a random bipartite graph at a high temperature: their energy, and the exact one."""

from peergrid.spins import Relaxation, random_graph
from peergrid.spins.exact import bethe_energy

graph = random_graph(1 << 16, seed=1)  # variables of a colour, four neighbours each
with Relaxation(graph, coupling=0.3, seed=7, devices="cpu") as run:
    run.advance(100)
    print(f"energy {run.energy():.4f}, exactly {bethe_energy(0.3):.4f}; {run.sha256()[:16]} on any devices")
