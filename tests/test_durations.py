"""Times as people read them."""

from __future__ import annotations

import pytest

from peergrid.progress import duration

WORDS = {
    0.0: "0 µs",
    3.52e-6: "3.52 µs",
    9.996e-4: "1 ms",
    0.0901: "90.1 ms",
    1.25: "1.25 s",
    99.94: "99.9 s",
    99.96: "1 min 40 s",
    3599.7: "1 h 0 min",
    18720.0: "5 h 12 min",
    4e6: "1,111 h 6 min",
}


@pytest.mark.parametrize("seconds", WORDS)
def test_times_have_the_unit_that_suits_them(seconds: float) -> None:
    assert duration(seconds) == WORDS[seconds]
