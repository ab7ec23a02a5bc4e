"""Constants of the vacuum, SI units (CODATA 2022; the speed of light is exact)."""

from math import sqrt

SPEED_OF_LIGHT = 299_792_458.0
MU_0 = 1.256_637_061_27e-6
EPSILON_0 = 8.854_187_818_8e-12
ETA_0 = sqrt(MU_0 / EPSILON_0)
