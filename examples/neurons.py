"""A spiral wave of excitation in a sheet of nerve cells, by the model of Morris and Lecar (1981)."""

import numpy as np

import peergrid
from peergrid import exp, tanh


@peergrid.stencil
def membrane(v, w, dt, coupling):
    """Membrane potential v in mV, open share w of the potassium channels; times in ms."""
    around = v[-1, 0] + v[1, 0] + v[0, -1] + v[0, 1] - 4 * v[0, 0]
    calcium = 4.4 * 0.5 * (1 + tanh((v[0, 0] + 1.2) / 18)) * (v[0, 0] - 120)
    potassium, leak = 8 * w[0, 0] * (v[0, 0] + 84), 2 * (v[0, 0] + 60)
    v.next[0, 0] = v[0, 0] + dt * ((80 - calcium - potassium - leak) / 20 + coupling * around)
    x = (v[0, 0] - 2) / 60
    rate = 0.04 * 0.5 * (exp(x) + exp(-x))
    w.next[0, 0] = w[0, 0] + dt * rate * (0.5 * (1 + tanh(2 * x)) - w[0, 0])


grid = peergrid.Grid((192, 192), boundary="reflecting")
rows, columns = np.indices(grid.shape)
v = grid.field("v", init=np.where(columns < 80, 30, -40))  # one half is excited,
w = grid.field("w", init=np.where(rows < 96, 0.5, 0.01))  # and half of that is still exhausted
result = peergrid.run(membrane(v, w, dt=0.1, coupling=0.2), steps=2800)
print(f"{result.cells_per_second / 1e6:.0f} Mcells/s, up to {result.fields['v'].max():.0f} mV")
