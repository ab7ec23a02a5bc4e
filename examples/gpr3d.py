"""Ground-penetrating radar in three dimensions: the echo of a metal sphere in wet, dispersive soil."""

from math import sqrt

import numpy as np

import peergrid
from peergrid.models import fdtd3d
from peergrid.models.waveforms import Ricker

cells, spacing, ground = (56, 44, 56), 0.005, 32  # the surface of the soil is at z = 0.16 m
soil = fdtd3d.Medium("soil", permittivity=6.0, conductivity=0.005, poles=(fdtd3d.debye(2.0, 5e-11),))
media = (fdtd3d.VACUUM, soil, fdtd3d.PEC)

ids = np.zeros((6, *(n + 1 for n in cells)), np.uint8)  # of Ex, Ey, Ez, Hx, Hy, Hz at every node
ids[:3, :, :, :ground] = 1
x, y, z = np.indices(ids.shape[1:])
buried = ids.copy()
buried[:3, (x - 28) ** 2 + (y - 22) ** 2 + (z - 16) ** 2 <= 4**2] = 2


def recorded(ids):
    domain = fdtd3d.Domain(
        cells,
        (spacing,) * 3,
        dt=0.999 * spacing / (299_792_458.0 * sqrt(3)),
        steps=420,
        media=media,
        ids=ids,
        absorber=fdtd3d.Absorber(tuple((side, fdtd3d.Slab(8, permittivity=4.0)) for side in fdtd3d.SIDES)),
        sources=(fdtd3d.ElectricDipole("y", (24, 22, 34), fdtd3d.Drive(Ricker(1e9))),),
        receivers=(fdtd3d.Receiver((32, 22, 34), ("Ey",)),),
    )
    built = fdtd3d.build(domain)
    found = peergrid.run(built.problem, steps=domain.steps, devices="cpu:2", options=peergrid.Options("async", depth=1))
    return domain.dt, found.traces["rx1.Ey"] * built.units["Ey"]


dt, with_sphere = recorded(buried)
_, without = recorded(ids)
echo = with_sphere - without
print(f"the echo comes after {1e9 * dt * np.abs(echo).argmax():.2f} ns, {np.abs(echo).max():.0f} V/m strong")
