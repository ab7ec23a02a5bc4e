"""Colours of materials: a pale tint for each, below the waves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peergrid.io.colours import CONDUCTOR_TINT, Rgb, pale, shades
from peergrid.models.fdtd.materials import CONDUCTOR, Material

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
