"""Warnings about shots that would show nothing: too short for a pulse, or with receivers on a free surface."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from peergrid.models.silence import unsent
from peergrid.models.wave.points import NEAR
from peergrid.models.wave.propagator import Propagator
from peergrid.models.waveforms import Doubles, Waveform


def late(positions: Doubles, wavelets: Sequence[object], duration: float) -> Iterator[str]:
    """A warning about the first source of which a shot of `duration` seconds does not send everything."""
    found = (
        text
        for position, wavelet in zip(positions, wavelets, strict=True)
        if isinstance(wavelet, Waveform)
        for text in unsent(f"The source at {place(position)}", wavelet, duration, "the time or the number of steps")
    )
    yield from islice(found, 1)


def deaf(propagator: Propagator, receivers: Doubles) -> Iterator[str]:
    """A warning about receivers on a free surface."""
    above = receivers[:, -1] <= NEAR * propagator.medium.spacings[-1]
    if propagator.top and above.any():
        yield (
            f"{np.count_nonzero(above)} of {len(receivers)} receivers lie on the free surface, where pressure "
            f"vanishes, and record zeros, the first at {place(receivers[above.argmax()])}; move them down."
        )


def place(position: Doubles) -> str:
    """A position in a sentence."""
    return f"({', '.join(f'{x:g}' for x in position)}) m"
