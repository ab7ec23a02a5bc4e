"""The rule of a half step compiled for processors, as a kernel of peergrid's executors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from peergrid.runtime.kernel import Pass
from peergrid.runtime.memory import DeviceMemory
from peergrid.spins.graph import BipartiteGraph
from peergrid.spins.philox import MULTIPLIERS, ROUNDS, WEYL, Words
from peergrid.spins.problem import FIELD

LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
M0, M1 = map(np.uint64, MULTIPLIERS)
W0, W1 = map(np.uint64, WEYL)
ONE, FIVE, LANES = np.uint32(1), np.uint32(5), np.uint32(31)


@dataclass(frozen=True)
class HalfStepKernel:
    """A `Kernel` for `half_steps`: slot 0 holds red, slot 1 blue."""

    graph: BipartiteGraph
    limits: Words
    seed: int

    def __call__(self, memory: DeviceMemory, part: Pass) -> None:
        box, step = part.box, part.step
        neighbours = self.graph.red if part.target == 0 else self.graph.blue
        other, own = (memory.block(FIELD, slot) for slot in (part.source, part.target))
        advance(
            neighbours,
            other.array.view(np.uint32),
            own.array.view(np.uint32),
            own.box.lo[0],
            box.lo[0],
            box.hi[0],
            np.array([step & 0xFFFFFFFF, step >> 32, self.seed & 0xFFFFFFFF, self.seed >> 32], np.uint64),
            self.limits,
        )


@numba.njit(nogil=True, cache=False)
def advance(
    neighbours: Any, other: Any, own: Any, origin: int, first: int, last: int, drawing: Any, limits: Any
) -> None:
    """Write the words of a colour from `first` to `last`; drawing: the step and the seed, two words each."""
    words = np.zeros(4, np.uint32)
    for quad in range(first // 4, (last + 3) // 4):
        words[:] = 0
        for lane in range(32):
            a, b = np.uint64(quad * 32 + lane), drawing[0]
            c, d = drawing[1], np.uint64(0)
            k0, k1 = drawing[2], drawing[3]
            for _ in range(ROUNDS):
                one, two = M0 * a, M1 * c
                a, b, c, d = (two >> HALF) ^ b ^ k0, two & LOW, (one >> HALF) ^ d ^ k1, one & LOW
                k0, k1 = (k0 + W0) & LOW, (k1 + W1) & LOW
            drawn = (a, b, c, d)
            for k in range(4):
                word = quad * 4 + k
                if first <= word < last:
                    up = np.uint32(0)
                    for n in range(4):
                        partner = neighbours[word * 32 + lane, n]
                        up += other[partner >> FIVE] >> (partner & LANES) & ONE
                    if drawn[k] >> np.uint64(1) < limits[up]:
                        words[k] |= ONE << np.uint32(lane)
        for k in range(4):
            if first <= quad * 4 + k < last:
                own[quad * 4 + k - origin] = words[k]
