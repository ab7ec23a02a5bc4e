"""Reverse-time migration: an image of a layer from the traces of a few shots, in a medium without the layer."""

import numpy as np

from peergrid.inverse import forward, migrate
from peergrid.models.wave import Medium, PointSource, Propagator, Ricker, Scheme, Shot

shape, spacing, top = (121, 71), 10.0, 420.0
ground = np.full(shape, 2000.0)
ground[:, round(top / spacing) :] = 2600.0
scheme = Scheme(layer=20)
dt = Propagator(Medium(shape, spacing, ground), scheme).dt
true, guess = (Propagator(Medium(shape, spacing, v), scheme, dt) for v in (ground, 2000.0))

line = np.array([(10.0 * k, 20.0) for k in range(121)])
image = np.zeros(shape)
for x in (300.0, 600.0, 900.0):
    shot = Shot(guess, [PointSource((x, 20.0), Ricker(15.0))], line, guess.steps(0.75))
    heard, direct = (forward(p, shot.source_positions, shot.samples, line) for p in (true, guess))
    image += migrate(shot, heard - direct, kept=10)

jumps = np.abs(np.diff(image[30:91].mean(axis=0)))[20:]  # below the acquisition; the image of a step is a step
print(f"a layer at {spacing * (20.5 + jumps.argmax()):.0f} m")
