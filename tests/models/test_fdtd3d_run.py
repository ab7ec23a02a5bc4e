"""Domains carried out: the same bits however they run, and one sentence for each fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from fdtd3d_examples import absorbing, vacuum

import peergrid
from peergrid import Options, UsageError
from peergrid.models.fdtd3d import (
    PEC,
    VACUUM,
    Absorber,
    Domain,
    Drive,
    ElectricDipole,
    Grading,
    MagneticDipole,
    Medium,
    Receiver,
    Slab,
    Stretch,
    TransmissionLine,
    VoltageSource,
    build,
    debye,
    lorentz,
)
from peergrid.models.waveforms import Ricker

PULSE = Drive(Ricker(4e9))


def everything() -> Domain:
    """A small domain with every kind of medium and source, of different thickness on every side."""
    ids = np.zeros((6, 17, 19, 21), np.uint8)
    ids[:3, :, :, :9] = 1
    ids[:3, 9:12, :, 11:14] = 2
    ids[2, 6, 6, 10:13] = 3
    ids[3:, 3:6, 3:6, 3:6] = 4
    media = (
        VACUUM, Medium("wet", 4.0, 0.01, poles=(debye(2.0, 1e-11),)),
        Medium("resonant", 2.0, poles=(lorentz(1, 5e9, 1e9),)), PEC, Medium("iron", 1.0, 0.0, 2.0, 100.0),
    )  # fmt: skip
    sources = (
        ElectricDipole("z", (8, 9, 12), PULSE), MagneticDipole("x", (7, 9, 11), PULSE),
        VoltageSource("y", (9, 7, 12), PULSE, 50.0), VoltageSource("x", (9, 12, 12), PULSE, 0.0),
        TransmissionLine("z", (11, 11, 12), PULSE, 73.0),
    )  # fmt: skip
    return vacuum(
        (16, 18, 20), 24, ids=ids, media=media, sources=sources, absorber=Absorber((("x-", Slab(3)), ("z+", Slab(4)))),
        receivers=(Receiver((9, 9, 13)), Receiver((8, 9, 10), ("Ez", "Iz"))), dtype="float32",
    )  # fmt: skip


def test_the_bits_are_the_same_on_any_devices() -> None:
    problem = build(everything()).problem
    ways = [
        ("cpu:1", Options("serial", depth=1)),
        ("cpu:2", Options("overlap", depth=2)),
        ("cpu:3", Options("peer", depth=1)),
    ]
    found = [peergrid.run(problem, steps=24, devices=devices, options=options) for devices, options in ways]
    assert len({one.sha256 for one in found}) == 1
    assert len({np.stack(list(one.traces.values())).tobytes() for one in found}) == 1
    assert np.abs(found[0].fields["Ez"]).max() > 0


SMALL = vacuum((8, 9, 10), 5, sources=(ElectricDipole("z", (4, 4, 4), PULSE),), receivers=(Receiver((2, 2, 2)),))
TWO = (Stretch(), Stretch(sigma=Grading(0.0, 5.0, 3)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"shape": (8, 9, 1)}, "at least two cells along each axis"),
        ({"ids": np.zeros((6, 8, 9, 10), np.uint8)}, r"shape \(6, 9, 10, 11\), got \(6, 8, 9, 10\)"),
        ({"media": ()}, "at least one medium"),
        ({"ids": np.full((6, 9, 10, 11), 7, np.uint8)}, "below 2, the number of media, got 7"),
        ({"dt": 1e-11}, "to be stable, got 1e-11 s"),
        ({"media": (VACUUM, Medium("odd", poles=(debye(1.0, -1e-11),)))}, "poles that decay"),
        ({"steps": 0}, "steps are expected"),
        ({"receivers": (Receiver((9, 0, 0)),)}, r"Receiver 1 .* got \(9, 0, 0\)"),
        ({"sources": (ElectricDipole("z", (4, 4, 11), PULSE),)}, r"Source 1 .* got \(4, 4, 11\)"),
        ({"sources": (VoltageSource("z", (4, 4, 4), PULSE, -1.0),)}, "resistance not below 0"),
        ({"sources": (TransmissionLine("z", (4, 4, 4), PULSE, 0.0),)}, "resistance above 0"),
        ({"sources": (TransmissionLine("z", (4, 4, 4), PULSE, 50.0),)}, "10 cells beside it"),
        ({"absorber": absorbing(4)}, "leave cells between them along x"),
        ({"absorber": replace(absorbing(2), stretches=())}, "one stretch or two"),
        ({"absorber": replace(absorbing(2), stretches=TWO)}, "damp waves of every frequency"),
    ],
)  # fmt: skip
def test_faults_are_said_in_a_sentence(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build(replace(SMALL, **changed))


def test_a_plane_refuses_what_it_does_not_have() -> None:
    source = ElectricDipole("x", (4, 4, 0), PULSE)
    with pytest.raises(UsageError, match="drives Ex, which mode TMz does not have"):
        build(vacuum((8, 9, 1), 5, mode="TMz", sources=(source,)))


def test_media_cost_memory_only_where_they_differ() -> None:
    """In vacuum there are no fields of coefficients, and an absorber's memories are as large as the absorber."""
    bare = build(vacuum((20, 20, 20), 5)).problem
    assert sorted(bare.fields) == ["Ex", "Ey", "Ez", "Hx", "Hy", "Hz"]
    fields = build(everything()).problem.fields
    assert fields["Ey.x-.memory1"].box.shape == (3, 18, 19)
    assert fields["Hy.x-.memory1"].box.shape == (3, 18, 20)
    assert fields["Ez.pole1.real"].box.hi[2] == 14
    assert "Ex.z+.memory1" in fields
    assert "Ez.x+.memory1" not in fields
