"""Colours of pictures: a diverging map of even lightness steps."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Rgb = NDArray[np.uint8]
Floats = NDArray[np.float64]

LEVELS = 41  # odd: the middle one is no field at all
OUTLINE = (70, 70, 74)
CONDUCTOR_TINT = (88, 90, 96)

# CIELAB of the two arms at full amplitude; lightness falls in proportion to |value| from white at the middle.
_NEGATIVE = (32.0, 12.0, -56.0)
_POSITIVE = (36.0, 56.0, 40.0)


def diverging(value: Floats) -> Rgb:
    """Blue through white to red for values from -1 to 1, shape (..., 3), even in CIELAB along each arm."""
    arm = np.where((value < 0)[..., None], np.array(_NEGATIVE), np.array(_POSITIVE))
    share = np.abs(value)[..., None]
    return srgb((1 - share) * np.array([100.0, 0.0, 0.0]) + share * arm)


def pale(count: int) -> Rgb:
    """`count` pale colours, each as different from earlier ones as hues allow, shape (count, 3)."""
    number = np.arange(count)
    hue = number * np.pi * (3 - np.sqrt(5))  # the golden angle
    lightness = np.array([90.0, 80.0, 94.0, 85.0])[number % 4]
    return srgb(np.stack([lightness, 15 * np.cos(hue), 15 * np.sin(hue)], axis=-1))


def shades(permittivity: Floats) -> Rgb:
    """Sand colours, darker where the permittivity is larger, shape (n, 3)."""
    low, high = permittivity.min(), permittivity.max()
    share = (permittivity - low) / ((high - low) or 1.0)
    return srgb(np.stack([98 - 30 * share, 1 + 5 * share, 4 + 18 * share], axis=-1))


def wave_colours(tints: Rgb) -> Rgb:
    """The colour of each level of a field over each tint, shape (n, LEVELS, 3); the middle level is the tint itself."""
    value = np.linspace(-1, 1, LEVELS)
    strength = np.abs(value)[None, :, None]
    return np.asarray(np.rint(tints[:, None, :] * (1 - strength) + diverging(value)[None] * strength), np.uint8)


def srgb(lab: Floats) -> Rgb:
    """CIELAB (D65) to sRGB bytes, IEC 61966-2-1; colours outside sRGB are clipped."""
    fy = (lab[..., 0] + 16) / 116
    f = np.stack([fy + lab[..., 1] / 500, fy, fy - lab[..., 2] / 200], axis=-1)
    xyz = np.where(f > 6 / 29, f**3, 3 * (6 / 29) ** 2 * (f - 4 / 29)) * np.array([0.95047, 1.0, 1.08883])
    matrix = np.array([[3.2406, -1.5372, -0.4986], [-0.9689, 1.8758, 0.0415], [0.0557, -0.2040, 1.0570]])
    linear = np.clip(xyz @ matrix.T, 0, 1)
    encoded = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(255 * encoded), np.uint8)
