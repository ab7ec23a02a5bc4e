"""Media between two limits: soils by their water, ranges of properties, lists, mixtures of rock, water and air.

A mixing model gives any number of media between its limits, each for the middle of an equal part.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log10, pi
from typing import Annotated, ClassVar

import numpy as np

from peergrid.gprmax.objects import Rising, Share
from peergrid.io.rule import Name, Rule
from peergrid.models.fdtd3d import Medium, debye
from peergrid.models.waveforms import Doubles

Limits = tuple[float, float]
Density = Annotated[float, Rule("a density above 0 in g/cm³", lambda v: 0 < v <= 100)]
HIGHEST = 1.3e9  # Hz, at which the water in soils is taken

_FAST = 4.9
_SLOW = 88.045 - 0.4147 * 25 + 6.295e-4 * 25**2 + 1.075e-5 * 25**3
_RELAXATION = (1 / (2 * pi)) * (1.1109e-10 - 3.824e-12 * 25 + 6.938e-14 * 25**2 - 5.096e-16 * 25**3)  # s

WATER = Medium("water", _FAST, poles=(debye(_SLOW - _FAST, _RELAXATION),))
"""Pure water at 25 °C (L. A. Klein and C. T. Swift, 1977)."""

GRASS = Medium("grass", 12.7174, poles=(debye(18.5087 - 12.7174, 1.0793e-11),))
"""Grass (C. Mätzler, 1994, one pole)."""


@dataclass(frozen=True)
class Soil:
    """A soil by its fractions of sand and clay, its densities in g/cm³, and limits of its fraction of water.

    Permittivity and conductivity from 0.3 to 1.3 GHz by N. R. Peplinski, F. T. Ulaby and M. C. Dobson (1995).
    """

    kind: ClassVar[str] = "peplinski"
    name: Name
    sand: Share
    clay: Share
    bulk: Density
    particles: Density
    water: Annotated[Rising, Rule("two fractions up to 1 that do not fall, the last above 0", lambda v: 0 < v[1] <= 1)]

    def media(self, count: int) -> tuple[Medium, ...]:
        """`count` media, from dry to wet."""
        return tuple(self._with(float(part)) for part in middles(self.water, count))

    def _with(self, part: float) -> Medium:
        shape, swing = 0.65, _SLOW - _FAST
        wet = _FAST + swing / (1 + (2 * pi * HIGHEST * _RELAXATION) ** 2)
        solid = (1.01 + 0.44 * self.particles) ** 2 - 0.062
        real = 1.2748 - 0.519 * self.sand - 0.152 * self.clay
        imaginary = part ** ((1.33797 - 0.603 * self.sand - 0.166 * self.clay) / shape)
        mixed = 1 + self.bulk / self.particles * (solid**shape - 1) + part**real * wet**shape - part
        static = 1.15 * mixed ** (1 / shape) - 0.68
        salts = 0.0467 + 0.2204 * self.bulk - 0.411 * self.sand + 0.6614 * self.clay
        loss = imaginary * (salts * (self.particles - self.bulk)) / (self.particles * part)
        strength = imaginary * swing
        return Medium(f"{self.name}|{part:.6g}", static - strength, loss, poles=(debye(strength, _RELAXATION),))


@dataclass(frozen=True)
class Spread:
    """Media with limits for each property: permittivity, conductivity, permeability, magnetic loss."""

    kind: ClassVar[str] = "range"
    name: Name
    permittivity: Annotated[Rising, Rule("two numbers from 1 that do not fall", lambda v: v[0] >= 1)] = (1.0, 1.0)
    conductivity: Rising = (0.0, 0.0)
    permeability: Annotated[Rising, Rule("two numbers from 1 that do not fall", lambda v: v[0] >= 1)] = (1.0, 1.0)
    magnetic_loss: Rising = (0.0, 0.0)

    def media(self, count: int) -> tuple[Medium, ...]:
        """`count` media, from the first limits to the second."""
        limits = (self.permittivity, self.conductivity, self.permeability, self.magnetic_loss)
        columns = zip(*(middles(pair, count).tolist() for pair in limits), strict=True)
        return tuple(Medium(f"{self.name}|{k}", *values) for k, values in enumerate(columns))


@dataclass(frozen=True)
class Mixture:
    """Rock, a liquid with one Debye pole and air, by the complex refractive index model with an exponent.

    rock, liquid: the media, the first's fraction, limits of the second's; band: Hz, over which one pole stands for all.
    """

    name: str
    rock: Medium
    share: float
    liquid: Medium
    limits: Limits
    band: Limits
    exponent: float

    def media(self, count: int) -> tuple[Medium, ...]:
        """`count` media, from little liquid to much."""
        return tuple(self._with(float(part)) for part in middles(self.limits, count))

    def _with(self, part: float) -> Medium:
        (pole,) = self.liquid.poles
        rate = -complex(pole.rate).real
        strength = complex(pole.weight).real / rate
        turned = 2 * pi * np.logspace(log10(self.band[0]), log10(self.band[1]), 50) / rate
        liquid = self.liquid.permittivity + strength / (1 + 1j * turned)
        power = self.exponent
        mixed = (self.share * self.rock.permittivity**power + part * liquid**power + (1 - self.share - part)) ** (
            1 / power
        )
        fall = 1 / (1 + turned**2)
        terms = np.block([[np.ones_like(fall)[:, None], fall[:, None]], [0 * fall[:, None], (-turned * fall)[:, None]]])
        fast, strength = np.linalg.lstsq(terms, np.concatenate([mixed.real, mixed.imag]), rcond=None)[0].tolist()
        loss = self.share * self.rock.conductivity + part * self.liquid.conductivity
        return Medium(f"{self.name}|{part:.6g}", fast, loss, poles=(debye(strength, 1 / rate),))


def middles(limits: Limits, count: int) -> Doubles:
    """The middles of `count` equal parts between two limits."""
    edges = np.linspace(*limits, count + 1)
    found: Doubles = 0.5 * (edges[1:] + edges[:-1])
    return found
