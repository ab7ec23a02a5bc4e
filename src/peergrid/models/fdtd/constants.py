"""Constants of the vacuum, SI units (CODATA 2018; the speed of light is exact)."""

from math import sqrt

SPEED_OF_LIGHT = 299_792_458.0
MU_0 = 1.256_637_062_12e-6
EPSILON_0 = 1.0 / (MU_0 * SPEED_OF_LIGHT**2)
ETA_0 = sqrt(MU_0 / EPSILON_0)
