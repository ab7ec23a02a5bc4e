"""Coaxial feeds: their line's relation of voltage and current, a monopole's impedance, the same bits on any devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from fdtd3d_examples import SPACING, absorbing, vacuum

import peergrid
from peergrid import Options
from peergrid.errors import UsageError
from peergrid.jobs import run_model
from peergrid.models.fdtd3d import SIDES, CoaxialFeed, Domain, DomainModel, Drive, Receiver, Wire, build
from peergrid.models.fdtd3d.constants import SPEED_OF_LIGHT
from peergrid.models.waveforms import Gaussian

EDGES, OHMS = 12, 50.0


def monopole(shape: tuple[int, int, int], steps: int, **changes: Any) -> Domain:
    """A wire on a plane, fed where it starts."""
    node = (shape[0] // 2, shape[1] // 2, 1)
    ids = np.zeros((6, *(n + 1 for n in shape)), np.uint8)
    ids[:2, :, :, 1] = 1
    values = {
        "ids": ids, "absorber": absorbing(8, SIDES[:4] + SIDES[5:]), "wires": (Wire("z", node, EDGES, 0.0002),),
        "sources": (CoaxialFeed("z", node, Drive(Gaussian(3e9, derivative=1)), OHMS),),
        "receivers": (Receiver(node, ("Iz",)),),
    } | changes  # fmt: skip
    return vacuum(shape, steps, **values)


def test_a_quarter_wave_monopole_has_its_impedance(tmp_path: Path) -> None:
    """Thin ones are resonant a few per cent below a quarter of a wavelength, with 36 Ω there. Voltage and current in
    the results are those of the line: V = w - Z I, and the current of the receiver around the wire's foot.
    """
    domain = monopole((32, 32, 28), 900)
    found = run_model(DomainModel(domain), tmp_path, devices="cpu:2")
    with h5py.File(tmp_path / "results.h5") as file:
        voltage, current, sent = (file["frills/frill1"][name][:] for name in ("Vtotal", "Itot", "Vinc"))
        around = file["rxs/rx1/Iz"][:]
        assert np.abs(file["frills/frill1/S11"][:]).max() < 1.0
        times, frequencies = (file["frills/frill1"][name][:] for name in ("time", "frequency"))
        np.testing.assert_allclose(times, domain.dt * np.arange(domain.steps))
        np.testing.assert_allclose(np.diff(frequencies), 1 / (file.attrs["Iterations"] * domain.dt))
        assert file["frills/frill1/excitation/samples"].shape == (file.attrs["Iterations"],)
    assert len(found.traces["feed1.voltage"]) == len(voltage) == domain.steps
    np.testing.assert_allclose(voltage, 2 * sent - OHMS * current, atol=1e-12)
    np.testing.assert_allclose(current, 0.5 * (around[:-1] + around[1:]), atol=1e-12 * np.abs(around).max())
    quarter = SPEED_OF_LIGHT / (4 * EDGES * SPACING)
    frequencies = np.linspace(0.85, 1.05, 201) * quarter
    phases = np.exp(-2j * np.pi * np.outer(frequencies, domain.dt * np.arange(domain.steps)))
    impedance = (phases @ voltage) / (phases @ current)
    resonant = int(np.argmin(np.abs(impedance.imag)))
    assert 0.88 < frequencies[resonant] / quarter < 0.99
    assert impedance[resonant].real == pytest.approx(36.0, abs=3.0)


def test_bits_of_any_devices_and_strategies() -> None:
    problem = build(monopole((20, 20, 26), 40, dtype="float32")).problem
    asked = [("cpu:1", Options("serial", 1)), ("cpu:3", Options("overlap", 2))]
    assert len({peergrid.run(problem, 40, devices=devices, options=options).sha256 for devices, options in asked}) == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"wires": ()}, r"on an edge of a wire along z, got node \(10, 10, 1\)"),
        ({"ids": np.zeros((6, 21, 21, 27), np.uint8)}, "to start in a conducting plane across z, got 'free_space'"),
        ({"sources": monopole((20, 20, 26), 4).sources * 2}, "to be alone at its edge"),
    ],
)
def test_feeds_that_cannot_be_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=f"Source 1, a coaxial feed, is expected {said}"):
        build(monopole((20, 20, 26), 4, **changes))


def test_a_feed_without_resistance_is_refused() -> None:
    made = monopole((20, 20, 26), 4)
    with pytest.raises(UsageError, match="a resistance above 0 Ω, got 0"):
        build(replace(made, sources=(replace(made.sources[0], resistance=0.0),)))  # type: ignore[call-arg]
