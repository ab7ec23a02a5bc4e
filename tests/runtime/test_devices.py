from __future__ import annotations

import pytest

from peergrid import UsageError
from peergrid.runtime.devices import cores, parse_devices


def test_virtual_devices() -> None:
    assert parse_devices("cpu:4").ordinals == (0, 1, 2, 3)
    assert parse_devices("cpu").count == cores()
    assert str(parse_devices("cpu:3")) == "cpu:3"


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("gpu", "Devices are 'auto', 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0', got 'gpu'."),
        ("cpu:0", "'cpu:N' takes 1 to 1024 virtual devices, got 0."),
        ("cpu:9999", "'cpu:N' takes 1 to 1024 virtual devices, got 9999."),
        ("cpu:-1", "Devices are 'auto', 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0', got 'cpu:-1'."),
        ("cuda:", "Devices are 'auto', 'cpu:4', 'cuda', 'cuda:0,1' or 'cuda:0,0', got 'cuda:'."),
    ],
)
def test_a_wrong_specification_is_refused(spec: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_devices(spec)
    assert str(caught.value) == sentence
