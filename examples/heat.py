"""Heat spreading in a plate: a user stencil on all devices."""

import numpy as np

import peergrid


@peergrid.stencil
def heat(u, k):
    u.next[0, 0] = u[0, 0] + k * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u[0, 0])


grid = peergrid.Grid((1024, 1024), boundary="fixed")
u = grid.field("u", init=np.pad(np.ones((512, 512)), 256))
result = peergrid.run(heat(u, k=0.2), steps=500)
print(f"{result.cells_per_second / 1e6:.0f} Mcells/s, at the edge {result.fields['u'][512, 256]:.4f}")
