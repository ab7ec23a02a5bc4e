"""Colours of materials: a pale tint for each, below the waves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peergrid.io.colours import Floats, Rgb, diverging, pale, srgb
from peergrid.models.fdtd.materials import CONDUCTOR, Material

LEVELS = 41  # odd: the middle one is no field at all
OUTLINE = (70, 70, 74)
CONDUCTOR_TINT = (88, 90, 96)
TINTS = ((255, 255, 255), (240, 228, 205), (222, 229, 214), (226, 220, 232), (214, 227, 233), (236, 218, 214))


MOST_NAMED = 24  # materials with a colour of their own; more are shaded by permittivity


def material_tints(materials: Sequence[Material]) -> Rgb:
    """A pale colour for each material, shape (n, 3): conductors dark grey, others in their order or by permittivity."""
    media = [m for m in materials if m != CONDUCTOR]
    if len(media) > MOST_NAMED:
        tints = shades(np.array([m.permittivity for m in media]))
    else:
        tints = np.array([*TINTS, *pale(MOST_NAMED)[: max(0, len(media) - len(TINTS))]], np.uint8)
    tint = dict(zip(media, tints, strict=False))
    return np.array([CONDUCTOR_TINT if m == CONDUCTOR else tint[m] for m in materials], np.uint8)


def shades(permittivity: Floats) -> Rgb:
    """Sand colours, darker where the permittivity is larger, shape (n, 3)."""
    low, high = permittivity.min(), permittivity.max()
    share = (permittivity - low) / ((high - low) or 1.0)
    return srgb(np.stack([98 - 30 * share, 1 + 5 * share, 4 + 18 * share], axis=-1))


def wave_colours(tints: Rgb, levels: int = LEVELS) -> Rgb:
    """The colour of each level of a field over each tint, shape (n, levels, 3); the middle level is the tint itself."""
    value = np.linspace(-1, 1, levels)
    strength = np.abs(value)[None, :, None]
    return np.asarray(np.rint(tints[:, None, :] * (1 - strength) + diverging(value)[None] * strength), np.uint8)
