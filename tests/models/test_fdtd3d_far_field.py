"""Fields far away beside formulas: a short dipole, a half-wave dipole, and spheres in a plane wave (Mie)."""

from __future__ import annotations

from dataclasses import replace
from math import pi
from pathlib import Path

import h5py
import numpy as np
import pytest
from fdtd3d_examples import SPACING, absorbing, vacuum
from scipy.special import spherical_jn, spherical_yn

from full_disk import room
from peergrid import Options, Simulation
from peergrid.errors import UsageError
from peergrid.grid import Array
from peergrid.jobs import run_model
from peergrid.models.fdtd3d import (
    VACUUM,
    Domain,
    DomainModel,
    Drive,
    ElectricDipole,
    FarField,
    Medium,
    PlaneWave,
    build,
    debye,
)
from peergrid.models.fdtd3d.constants import EPSILON_0, ETA_0, SPEED_OF_LIGHT
from peergrid.models.fdtd3d.far_field import Radiation
from peergrid.models.waveforms import Ricker

pytestmark = pytest.mark.filterwarnings("ignore:Source . is at its strongest:UserWarning")  # runs end early here
PULSE = Drive(Ricker(4e9))
ONE_STEP = Options("async", depth=1)


def radiated(domain: Domain, devices: str = "cpu:2", options: Options = ONE_STEP) -> Radiation:
    """The first far field of a run."""
    built = build(domain)
    (surface,) = built.far_fields
    with Simulation(built.problem, steps=domain.steps, devices=devices, options=options) as simulation:
        simulation.run(domain.steps)
        return surface.radiation({name: simulation.gather(name) for name in surface.fields})


def spectrum(drive: Drive, frequencies: tuple[float, ...], steps: int, dt: float) -> Array:
    """∫ exp(-iωt) of a waveform."""
    times = 0.25 * dt * np.arange(4.0 * steps)
    return np.array(
        [0.25 * dt * (np.exp(-2j * pi * f * times) * drive.waveform.sample(times)).sum() for f in frequencies]
    )


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_short_dipole_radiates_by_hertzs_formula(axis: str) -> None:
    """r E = -iωμ₀ I dl (across the direction) / 4π, wherever it lies in the box: within 0.13 (spacing k)²."""
    drive, frequencies, here = Drive(Ricker(7e9)), (3e9, 6e9, 8e9), (14, 16, 13)
    source = ElectricDipole(axis, here, drive)  # type: ignore[arg-type]
    wished = FarField((9, 9, 9), (21, 21, 21), frequencies)
    domain = vacuum((30, 30, 30), 150, absorber=absorbing(8), sources=(source,), far_fields=(wished,))
    found = radiated(domain)
    theta, phi = np.array([0.0, 30.0, 90.0, 120.0]), np.array([0.0, 200.0, 45.0, 80.0])
    polar, around = np.radians(theta), np.radians(phi)
    way = np.stack([np.sin(polar) * np.cos(around), np.sin(polar) * np.sin(around), np.cos(polar)])
    unit_theta = np.stack([np.cos(polar) * np.cos(around), np.cos(polar) * np.sin(around), -np.sin(polar)])
    unit_phi = np.stack([-np.sin(around), np.cos(around), 0 * around])
    k = "xyz".index(axis)
    offset = np.array([n - 15 + 0.5 * (a == k) for a, n in enumerate(here)]) * SPACING
    omega = 2 * pi * np.array(frequencies)[:, None]
    current = spectrum(drive, frequencies, 150, domain.dt)[:, None]
    late = np.exp(1j * omega / SPEED_OF_LIGHT * (offset @ way))
    strength = -1j * omega * ETA_0 / SPEED_OF_LIGHT * current * SPACING / (4 * pi) * late
    bound = 0.001 + 0.13 * (found.wavenumbers * SPACING) ** 2
    for pattern, unit in zip(found.far(theta, phi), (unit_theta, unit_phi), strict=True):
        assert (np.abs(pattern - strength * unit[k]).max(axis=1) < bound * np.abs(strength).max(axis=1)).all()
    broadside = {"x": (0, 0), "y": (0, 0), "z": (90, 0)}[axis]
    assert (np.abs(found.directivity(*broadside) / 1.5 - 1) < bound).all()


def test_a_half_wave_dipole_has_its_pattern_and_directivity() -> None:
    """A wire of 25 cells, fed in its middle, at the frequency of which it is half a wave.

    2 % of 1.643: with its ends' fields it is longer by a part of a cell at each end.
    """
    ids = np.zeros((6, 31, 31, 56), np.uint8)
    ids[2, 15, 15, 15:40] = 1
    ids[2, 15, 15, 27] = 0
    frequency = SPEED_OF_LIGHT / (2 * 25 * SPACING)
    source = ElectricDipole("z", (15, 15, 27), Drive(Ricker(3e9)))
    domain = vacuum(
        (30, 30, 55), 450, ids=ids, absorber=absorbing(7), sources=(source,), dtype="float32",
        far_fields=(FarField((10, 10, 10), (20, 20, 45), (frequency,)),),
    )  # fmt: skip
    theta = np.arange(10.0, 171.0, 10.0)
    directivity = radiated(domain).directivity(theta, 30.0)[0]
    angle = np.radians(theta)
    expected = 1.643 * (np.cos(pi / 2 * np.cos(angle)) / np.sin(angle)) ** 2
    assert np.abs(directivity - expected).max() < 0.02 * 1.643


def mie(permittivity: complex, size: float, angles: Array) -> tuple[Array, Array]:
    """Amplitudes S1 and S2 of a sphere, size ka, time factor exp(iωt): C. Bohren and D. Huffman (1983), chapter 4."""
    index, count = np.sqrt(permittivity + 0j), int(size + 4 * size ** (1 / 3) + 6)
    orders = np.arange(1, count + 1)

    def riccati(argument: complex) -> tuple[Array, Array]:
        value = argument * spherical_jn(orders, argument)
        return value, spherical_jn(orders, argument) + argument * spherical_jn(orders, argument, derivative=True)

    psi, psi_slope = riccati(size)
    inner, inner_slope = riccati(index * size)
    chi = size * spherical_yn(orders, size)
    chi_slope = spherical_yn(orders, size) + size * spherical_yn(orders, size, derivative=True)
    xi, xi_slope = psi - 1j * chi, psi_slope - 1j * chi_slope  # outgoing for exp(iωt)
    a = (index * inner * psi_slope - psi * inner_slope) / (index * inner * xi_slope - xi * inner_slope)
    b = (inner * psi_slope - index * psi * inner_slope) / (inner * xi_slope - index * xi * inner_slope)
    mu = np.cos(angles)
    before, now, first, second = np.zeros_like(mu), np.ones_like(mu), 0j * mu, 0j * mu
    for n, (one, two) in enumerate(zip(a, b, strict=True), start=1):
        tau = n * mu * now - (n + 1) * before
        share = (2 * n + 1) / (n * (n + 1))
        first, second = first + share * (one * now + two * tau), second + share * (one * tau + two * now)
        before, now = now, ((2 * n + 1) * mu * now - (n + 1) * before) / n
    return first, second


def test_a_debye_sphere_scatters_by_mies_series() -> None:
    """In the plane of E and across it, forwards to backwards; what is left is the stair of cells, 7 to the radius."""
    n, radius, frequency, medium = 40, 7.0, 3.5e9, Medium("wet", 2.0, 0.1, poles=(debye(4.0, 3e-11),))
    nodes = np.arange(n + 1.0) - n / 2
    ids = np.zeros((6, n + 1, n + 1, n + 1), np.uint8)
    for k in range(3):
        x, y, z = np.meshgrid(*(nodes + 0.5 * (axis == k) for axis in range(3)), indexing="ij")
        ids[k] = x**2 + y**2 + z**2 < radius**2
    wave = PlaneWave((11, 11, 11), (n - 11,) * 3, (0, 0, 1), (1.0, 0.0, 0.0), PULSE)
    domain = vacuum(
        (n, n, n), 300, ids=ids, media=(VACUUM, medium), absorber=absorbing(7), sources=(wave,), dtype="float32",
        far_fields=(FarField((9, 9, 9), (n - 9,) * 3, (frequency,)),),
    )  # fmt: skip
    found = radiated(domain)
    theta = np.arange(0.0, 181.0, 15.0)
    omega = 2 * pi * frequency
    wavenumber = omega / SPEED_OF_LIGHT
    setting_out = np.exp(-1j * wavenumber * (n / 2 - 10) * SPACING)  # from the plane where the wave is its waveform
    incident = spectrum(PULSE, (frequency,), 300, domain.dt)[0] * setting_out
    inside = 2.0 + 4.0 / (1 + 1j * omega * 3e-11) + 0.1 / (1j * omega * EPSILON_0)
    across, along = mie(inside, wavenumber * radius * SPACING, np.radians(theta))
    for pattern, amplitude in ((found.far(theta, 0.0)[0], along), (-found.far(theta, 90.0)[1], across)):
        assert np.abs(pattern[0] * 1j * wavenumber / incident - amplitude).max() < 0.05 * np.abs(along).max()


def test_sums_are_the_same_on_any_devices_and_depths_and_results_have_patterns(tmp_path: Path) -> None:
    source = ElectricDipole("y", (9, 8, 10), PULSE)
    wished = FarField((6, 6, 6), (12, 11, 13), (3e9, 5e9), theta=(0.0, 90.0), phi=(0.0, 90.0, 180.0))
    domain = vacuum((18, 17, 19), 30, absorber=absorbing(4), sources=(source,), far_fields=(wished,))
    expected = radiated(domain, "cpu:1", Options("serial"))
    for devices, options in (("cpu:3", ONE_STEP), ("cpu:2", Options("threads", depth=2))):
        found = radiated(domain, devices, options)
        for one, two in zip(found.electric + found.magnetic, expected.electric + expected.magnetic, strict=True):
            np.testing.assert_array_equal(one, two)
    run_model(DomainModel(domain), tmp_path, devices="cpu:2")
    with h5py.File(tmp_path / "results.h5") as file:
        group = file["far_fields/far1"]
        assert group["frequency"][:] == pytest.approx(wished.frequencies)
        theta, phi = np.meshgrid(wished.theta, wished.phi, indexing="ij")
        np.testing.assert_allclose(group["Ephi"][:], expected.far(theta, phi)[1], rtol=1e-12, atol=1e-25)
        np.testing.assert_allclose(group["directivity"][:], expected.directivity(theta, phi), rtol=1e-12, atol=1e-20)
    with pytest.raises(UsageError, match="written without the final fields"), room(100_000):
        run_model(DomainModel(domain), tmp_path / "full", devices="cpu:2")
    with h5py.File(tmp_path / "results.h5") as file, h5py.File(tmp_path / "full/results.h5") as short:
        assert not len(short["fields"])
        assert short["far_fields/far1"].keys() == file["far_fields/far1"].keys()
        for name, values in short["far_fields/far1"].items():
            np.testing.assert_array_equal(values, file["far_fields/far1"][name])


def test_many_frequencies_are_summed_a_few_at_once() -> None:
    """Each of 4 values of 12 patches and 9 frequencies is some update's, of which none has more than 4 frequencies."""
    wished = FarField((6, 6, 6), (12, 11, 13), tuple(1e9 * k for k in range(1, 10)))
    built = build(vacuum((18, 17, 19), 10, far_fields=(wished,)))
    (surface,) = built.far_fields
    assert len(surface.fields) == 4 * 12 * 9
    assert set(surface.fields) <= set(built.problem.state)
    assert len(built.problem.stages[-1].updates) == 12 * 3


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"lo": (0, 6, 6)}, r"Far field 1 is expected to have a box within nodes 1 to \(17, 16, 18\), got"),
        ({"hi": (12, 6, 13)}, "Far field 1 is expected to have a box within nodes"),
        ({"frequencies": ()}, "Far field 1 is expected to have frequencies above 0 and below"),
        ({"frequencies": (2e12,)}, "Far field 1 is expected to have frequencies above 0 and below"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(changes: dict[str, object], sentence: str) -> None:
    wished = replace(FarField((6, 6, 6), (12, 11, 13), (2e9,)), **changes)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=sentence):
        build(vacuum((18, 17, 19), 40, far_fields=(wished,)))


def test_a_plane_has_no_far_field() -> None:
    wished = FarField((6, 6, 0), (12, 11, 1), (2e9,))
    with pytest.raises(UsageError, match="Far field 1 is expected in mode 3D, got TMz"):
        build(vacuum((18, 17, 1), 40, mode="TMz", far_fields=(wished,)))
