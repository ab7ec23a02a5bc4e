"""Environment settings: known ones are explained, costly values say what they cost."""

from __future__ import annotations

import re

import pytest

from peergrid.machine.settings import KNOBS, in_force


@pytest.mark.parametrize(
    ("name", "value", "costs"),
    [
        ("UCX_TLS", "rc,sm,cuda_copy", True),
        ("UCX_TLS", "rc,sm,cuda", False),
        ("UCX_TLS", "all", False),
        ("UCX_TLS", "^tcp", False),
        ("UCX_IB_GPU_DIRECT_RDMA", "no", True),
        ("UCX_IB_GPU_DIRECT_RDMA", "try", False),
        ("UCX_RNDV_THRESH", "inf", True),
        ("UCX_RNDV_THRESH", "8192", False),
        ("PSP_CUDA_ENFORCE_STAGING", "1", True),
        ("CUDA_LAUNCH_BLOCKING", "0", False),
        ("CUDA_LAUNCH_BLOCKING", "1", True),
        ("NCCL_NVLS_ENABLE", "0", True),
        ("CUDA_VISIBLE_DEVICES", "0,1", False),
        ("CUDA_VISIBLE_DEVICES", "MIG-1c2d", True),
    ],
)
def test_costs(name: str, value: str, costs: bool) -> None:
    (setting,) = in_force({name: value, "HOME": "elsewhere"})
    assert (setting.name, setting.value) == (name, value)
    assert setting.meaning
    assert bool(setting.cost) == costs


def test_the_table_is_sound() -> None:
    assert len({knob.name for knob in KNOBS}) == len(KNOBS)
    for knob in KNOBS:
        re.compile(knob.costly)
        assert bool(knob.costly) == bool(knob.cost), knob.name
