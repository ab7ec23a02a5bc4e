"""Colours of materials: a pale tint for each, below the waves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peergrid.io.colours import Rgb, diverging
from peergrid.models.fdtd.materials import CONDUCTOR, Material

LEVELS = 41  # odd: the middle one is no field at all
OUTLINE = (70, 70, 74)
CONDUCTOR_TINT = (88, 90, 96)
TINTS = ((255, 255, 255), (240, 228, 205), (222, 229, 214), (226, 220, 232), (214, 227, 233), (236, 218, 214))


def material_tints(materials: Sequence[Material]) -> Rgb:
    """One pale colour for each material, shape (n, 3): conductors dark grey, the others in their order."""
    media = [m for m in materials if m != CONDUCTOR]
    tint = {m: TINTS[n % len(TINTS)] for n, m in enumerate(media)}
    return np.array([CONDUCTOR_TINT if m == CONDUCTOR else tint[m] for m in materials], np.uint8)


def wave_colours(tints: Rgb, levels: int = LEVELS) -> Rgb:
    """The colour of each level of a field over each tint, shape (n, levels, 3); the middle level is the tint itself."""
    value = np.linspace(-1, 1, levels)
    strength = np.abs(value)[None, :, None]
    return np.asarray(np.rint(tints[:, None, :] * (1 - strength) + diverging(value)[None] * strength), np.uint8)
