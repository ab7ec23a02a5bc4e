"""A formula applied to every pixel of an image, on processors or GPUs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from peergrid.arguments import brief
from peergrid.errors import UsageError
from peergrid.images.formula import Formula, parse
from peergrid.images.table import Pixels, table
from peergrid.runtime.devices import Devices, devices_of


@dataclass(frozen=True)
class Applied:
    """A new image, and the seconds that it took: copies to the GPUs, computing, copies back."""

    pixels: Pixels
    devices: Devices
    to_devices: float
    computing: float
    from_devices: float


def apply(formula: str | Formula, image: Any, devices: str | Devices = "auto") -> Pixels:
    """Apply a formula to every pixel; an image of the same type and shape.

    formula: text such as "x / 3", or a function made of the operations of stencils; it is evaluated in single
    precision, truncated to a whole number, and clamped to the range of the type. image: an array of uint8 or uint16, of
    any shape. devices: as in `Simulation`; each computes a part of the pixels, with the same bits on any devices.
    Raises UsageError for other images and formulas, DeviceFault and DoesNotFit as runs do.
    """
    return applied(formula, image, devices).pixels


def applied(formula: str | Formula, image: Any, devices: str | Devices = "auto") -> Applied:
    """Apply a formula as `apply` does; the image with the time that it took."""
    if not isinstance(formula, str) and not callable(formula):
        raise UsageError(f"A formula is text such as 'x / 3', or a function of a pixel, got {brief(formula)}.")
    pixels = np.ascontiguousarray(image)
    if pixels.dtype not in (np.uint8, np.uint16):
        raise UsageError(f"An image is expected to be of uint8 or uint16, got {pixels.dtype}; convert it first.")
    chosen = devices_of(devices)
    values = table(parse(formula) if isinstance(formula, str) else formula, pixels.dtype)
    if chosen.kind == "cpu":
        _on_processors(pixels[:0], values, 1)  # compiles
        began = perf_counter()
        found = _on_processors(pixels, values, chosen.count)
        return Applied(found, chosen, 0.0, perf_counter() - began, 0.0)
    from peergrid.images.gpus import on_gpus

    found, seconds = on_gpus(pixels, values, chosen.ordinals)
    return Applied(found, chosen, seconds.to_devices, sum(seconds.kernels), seconds.from_devices)


def _on_processors(image: Pixels, values: Pixels, threads: int) -> Pixels:
    out, look_up = np.empty_like(image), _compiled()
    before, after = (np.array_split(array.reshape(-1), threads) for array in (image, out))
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(look_up, before, after, [values] * threads))
    return out


@cache
def _compiled() -> Callable[[Pixels, Pixels, Pixels], None]:
    """A function for table lookups that runs without the interpreter's lock."""
    from numba import njit  # a slow import

    @njit(nogil=True)
    def look_up(before: Pixels, after: Pixels, values: Pixels) -> None:
        for at in range(before.size):
            after[at] = values[before[at]]

    found: Callable[[Pixels, Pixels, Pixels], None] = look_up
    return found
