"""Conway's game of life on a torus: a stencil with conditions."""

import numpy as np

import peergrid
from peergrid import equal, where


@peergrid.stencil
def life(alive):
    around = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0)]
    neighbours = sum(alive[cell] for cell in around)
    survives = equal(alive[0, 0], 1) & equal(neighbours, 2)
    alive.next[0, 0] = where(equal(neighbours, 3) | survives, 1, 0)


grid = peergrid.Grid((256, 256), boundary="periodic")
start = np.zeros(grid.shape)
start[100:103, 100:103] = [[0, 1, 0], [0, 0, 1], [1, 1, 1]]  # a glider
alive = grid.field("alive", init=start)
result = peergrid.run(life(alive), steps=400)
moved = np.roll(start, (100, 100), axis=(0, 1))  # one cell down and right every four steps
print("the glider arrived" if np.array_equal(result.fields["alive"], moved) else "the glider is lost")
