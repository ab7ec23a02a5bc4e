"""Half steps predicted: the rate of one GPU on one, never faster than shares and copies allow on more."""

from __future__ import annotations

import pytest

from peergrid.costs.machines import machine_named
from peergrid.errors import UsageError
from peergrid.spins.forecast import half_step_seconds

MACHINE, COLOUR, RATE = machine_named("h200-x8"), 1 << 20, 3e10


def test_one_gpu_takes_what_its_rate_says() -> None:
    assert half_step_seconds(COLOUR, 1, RATE, MACHINE) == pytest.approx(COLOUR / RATE, rel=0.3)
    assert half_step_seconds(COLOUR, 1, RATE, MACHINE) >= COLOUR / RATE


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_more_gpus_take_their_share_and_the_copies(gpus: int) -> None:
    """From each GPU its words go to all others, one copy after the other."""
    words = COLOUR // 32 // gpus
    copies = (gpus - 1) * 4 * words / MACHINE.copy.bandwidth
    assert half_step_seconds(COLOUR, gpus, RATE, MACHINE) > COLOUR / gpus / RATE + copies


def test_of_many_variables_copies_take_little() -> None:
    assert half_step_seconds(1 << 22, 2, 1e9, MACHINE) == pytest.approx((1 << 22) / 2e9, rel=0.03)


@pytest.mark.parametrize(("colour", "gpus", "rate"), [(33, 1, 1e9), (32, 2, 1e9), (64, 0, 1e9), (64, 1, 0.0)])
def test_what_cannot_be(colour: int, gpus: int, rate: float) -> None:
    with pytest.raises(UsageError, match="At least 32 variables for each GPU"):
        half_step_seconds(colour, gpus, rate, MACHINE)
