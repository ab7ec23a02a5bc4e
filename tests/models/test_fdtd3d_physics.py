"""Electromagnetic fields in three dimensions beside formulas: dipoles, cavities, absorbers, dispersive media, lines."""

from __future__ import annotations

from dataclasses import replace
from math import pi, sqrt
from typing import Any

import numpy as np
import pytest
from fdtd3d_examples import SPACING, absorbing, stable, traces, vacuum

import peergrid
from peergrid import Options, Simulation
from peergrid.grid import Array, Index
from peergrid.models.fdtd3d import (
    COMPONENTS,
    PEC,
    VACUUM,
    Domain,
    Drive,
    ElectricDipole,
    Grading,
    Medium,
    Pole,
    Receiver,
    Stretch,
    TransmissionLine,
    VoltageSource,
    build,
    debye,
    drude,
    lorentz,
)
from peergrid.models.fdtd3d.constants import EPSILON_0, SPEED_OF_LIGHT
from peergrid.models.fdtd3d.domain import SIDES, Axis, Formulation, Mode
from peergrid.models.fdtd3d.lattice import electric_of
from peergrid.models.fdtd3d.line import incident
from peergrid.models.waveforms import Gaussian, Ricker

ONE_STEP = Options("async", depth=1)
PULSE = Drive(Ricker(4e9))  # about 19 cells to a wavelength at 8 GHz


def apart(one: Array, two: Array) -> float:
    """The relative L2 norm of a difference."""
    return float(np.linalg.norm(one - two) / np.linalg.norm(two))


def decibels(echo: Array, wave: Array) -> float:
    return float(20 * np.log10(np.abs(echo).max() / np.abs(wave).max()))


def dipole(times: Array, distance: float) -> Array:
    """E along a dipole in its equatorial plane, by Hertz's formula: the current of `PULSE` over one cell."""
    fine = np.linspace(0, times[-1], 20 * len(times))
    current = PULSE.waveform.sample(fine)
    charge = np.concatenate([[0], np.cumsum(0.5 * (current[1:] + current[:-1]) * np.diff(fine))])
    late = times - distance / SPEED_OF_LIGHT
    parts = [
        np.interp(late, fine, values, left=0.0) / distance**power / SPEED_OF_LIGHT ** (3 - power)
        for power, values in ((3, charge), (2, current), (1, np.gradient(current, fine)))
    ]
    return np.asarray(-SPACING / (4 * pi * EPSILON_0) * sum(parts))


@pytest.mark.parametrize(("axis", "away"), [("z", (12, 0, 0)), ("x", (0, 9, 8)), ("y", (9, 0, -8))])
def test_the_field_of_a_dipole_is_hertzs(axis: Axis, away: Index) -> None:
    """19 cells to the shortest wave: 1 % by the dispersion of the grid, and the absorber's echo."""
    middle = (20, 20, 20)
    there = tuple(a + b for a, b in zip(middle, away, strict=True))
    source, receiver = ElectricDipole(axis, middle, PULSE), Receiver(there, (electric_of(axis),))
    built = build(vacuum((40, 40, 40), 100, absorber=absorbing(8), sources=(source,), receivers=(receiver,)))
    found = traces(built)["rx1", f"E{axis}"]
    times = np.arange(1, len(found) + 1) * built.domain.dt
    assert apart(found, dipole(times, SPACING * float(np.linalg.norm(away)))) < 0.01


def test_echoes_of_an_absorber_are_below_70_decibels() -> None:
    """Beside the same in a domain so large that no echo comes back in time."""
    found = []
    for margin in (0, 20):
        n, here = 30 + 2 * margin, 15 + margin
        source = ElectricDipole("z", (here, here, here), PULSE)
        receiver = Receiver((here + 3, here + 2, here + 4), ("Ez", "Hx"))
        built = build(vacuum((n, n, n), 95, absorber=absorbing(10), sources=(source,), receivers=(receiver,)))
        found.append(traces(built))
    for key, wave in found[1].items():
        assert decibels(found[0][key] - wave, wave) < -70


@pytest.mark.parametrize(
    ("formulation", "second"),
    [
        ("HORIPML", Stretch(Grading(0.0, 6.0, 4), Grading(1.0, 2.0, 3), Grading(0.0, 0.5, 3))),
        ("MRIPML", Stretch(Grading(0.2, 0.2), Grading(0.0, 0.0), Grading(0.0, 0.1, 3))),
    ],
)
def test_two_stretches_absorb_too(formulation: Formulation, second: Stretch) -> None:
    """In two dimensions, where waves have tails that are slow to leave."""
    found = []
    for margin in (0, 35):
        n, here = 28 + 2 * margin, 14 + margin
        absorber = replace(absorbing(10, SIDES[:4]), formulation=formulation, stretches=(Stretch(), second))
        source, receiver = ElectricDipole("x", (here, here, 0), PULSE), Receiver((here + 2, here + 2, 0), ("Ex", "Hz"))
        domain = vacuum((n, n, 1), 100, mode="TEz", absorber=absorber, sources=(source,), receivers=(receiver,))
        found.append(traces(build(domain), "cpu:1"))
    for key, wave in found[1].items():
        assert decibels(found[0][key] - wave, wave) < -60


def test_a_cavity_rings_at_its_modes_and_keeps_its_energy() -> None:
    """Ey of mode (1, 0, 2) follows E(n+1) + E(n-1) = 2 cos(ω dt) E(n), with ω from the grid's own dispersion.

    The energy ΣE² + ΣH(n-1/2)·H(n+1/2) of any field in a closed box without losses never changes.
    """
    shape = (9, 8, 10)
    domain = vacuum(shape, 60)
    built = build(domain)
    x, z = (np.arange(n + 1) * pi / n for n in (shape[0], shape[2]))
    mode = np.sin(x)[:, None, None] * np.sin(2 * z)[None, None, :] * np.ones(shape[1] + 1)[None, :, None]
    courant = SPEED_OF_LIGHT * domain.dt / SPACING
    square = courant**2 * (np.sin(pi / shape[0] / 2) ** 2 + np.sin(2 * pi / shape[2] / 2) ** 2)
    with Simulation(built.problem, steps=60, devices="cpu:1", options=ONE_STEP) as simulation:
        simulation.set("Ey", mode)
        simulation.run(1)
        one = simulation.gather("Ey")[3, 2, 2]
        simulation.run(1)
        two = simulation.gather("Ey")[3, 2, 2]
        assert mode[3, 2, 2] + two == pytest.approx(2 * (1 - 2 * square) * one, rel=1e-12)
        noise = np.random.default_rng(5)
        for axis, component in enumerate(("Ex", "Ey", "Ez")):
            values = np.zeros(domain.nodes)
            inside = tuple(slice(0 if k == axis else 1, n) for k, n in enumerate(shape))
            values[inside] = noise.normal(size=values[inside].shape)
            simulation.set(component, values)
        energies = []
        before = [simulation.gather(f"H{a}") for a in "xyz"]
        for _ in range(30):
            electric = sum((simulation.gather(f"E{a}") ** 2).sum() for a in "xyz")
            simulation.run(1)
            now = [simulation.gather(f"H{a}") for a in "xyz"]
            energies.append(electric + sum((h * g).sum() for h, g in zip(before, now, strict=True)))
            before = now
    assert np.ptp(energies) < 1e-11 * energies[0]


def test_sources_and_receivers_change_places() -> None:
    """Reciprocity: between an electric dipole along z and one along x, over a lossy half space with a conductor."""
    ids = np.zeros((6, 21, 23, 25), np.uint8)
    ids[:3, :, :, :12] = 1
    ids[0, 8:12, 8:12, 5] = ids[1, 8:12, 8:12, 5] = 2
    ids[3:, 4:9, 4:9, 4:9] = 3
    media = (VACUUM, Medium("soil", 4.0, 0.05), PEC, Medium("iron", 1.0, 0.0, 3.0, 500.0))
    ends = (("z", (6, 8, 16)), ("x", (12, 14, 7)))
    found = []
    for (axis, here), (other, there) in (ends, ends[::-1]):
        domain = vacuum(
            (20, 22, 24), 120, ids=ids, media=media, absorber=absorbing(5),
            sources=(ElectricDipole(axis, here, PULSE),), receivers=(Receiver(there, (electric_of(other),)),),
        )  # fmt: skip
        found.append(traces(build(domain))["rx1", f"E{other}"])
    assert apart(*found) < 1e-10


def guide(length: int, steps: int, media: tuple[Medium, ...], first: int, **given: Any) -> Domain:
    """Two conducting plates three cells apart, in which waves are plane, with a second medium from a cell on."""
    ids = np.zeros((6, length + 1, 4, 1), np.uint8)
    ids[:, first:] = 1
    return vacuum(
        (length, 3, 1), steps, mode="TEz", ids=ids, media=media, absorber=absorbing(30, ("x-", "x+")),
        sources=tuple(ElectricDipole("y", (60, j, 0), PULSE) for j in range(3)), **given,
    )  # fmt: skip


@pytest.mark.parametrize(
    "medium",
    [
        Medium("water", 2.0, 0.01, poles=(debye(2.0, 2e-11), debye(0.5, 4e-12))),
        Medium("resonant", 1.5, poles=(lorentz(1.0, 6e9, 5e9),)),
        Medium("plasma", 2.0, poles=(drude(3e9, 2e10),)),
    ],
    ids=lambda m: m.name,
)
def test_dispersive_media_reflect_by_fresnels_formula(medium: Medium) -> None:
    """At normal incidence, from 2 to 6 GHz: (1 - √ε) / (1 + √ε); the interface lies half a cell before node 100."""
    receivers = (Receiver((80, 1, 0), ("Ey",)),)
    alone, both = (
        traces(build(guide(220, 700, (VACUUM, other), 100, receivers=receivers)), "cpu:1")["rx1", "Ey"]
        for other in (VACUUM, medium)
    )
    dt = stable((SPACING, SPACING))
    frequency = np.fft.rfftfreq(1 << 14, dt)
    band = (frequency > 2e9) & (frequency < 6e9)
    incoming, echo = (np.fft.rfft(trace, 1 << 14)[band] for trace in (alone, both - alone))
    omega = 2 * pi * frequency[band]
    permittivity = medium.permittivity + (
        medium.conductivity / (1j * omega * EPSILON_0)
        + sum(response(pole, omega) for pole in medium.poles)
    )  # fmt: skip
    index = np.sqrt(permittivity)
    way = 2 * (19.5 * SPACING)
    expected = (1 - index) / (1 + index) * np.exp(-1j * omega * way / SPEED_OF_LIGHT)
    assert np.abs(echo / incoming - expected).max() < 0.03


def response(pole: Pole, omega: Array) -> Array:
    """The susceptibility of a pole, from its form against time."""
    terms = 0.5 * (pole.weight / (1j * omega - pole.rate) + np.conj(pole.weight) / (1j * omega - np.conj(pole.rate)))
    return terms + pole.conductivity / (1j * omega)


def test_a_line_feeds_a_dipole_and_a_voltage_source_drops_over_its_resistance() -> None:
    """On the line the wave sent is (V + R I) / 2; across a source of R ohms E dl = -(V - R I)."""
    drive = Drive(Gaussian(4e9))
    ids = np.zeros((6, 25, 25, 31), np.uint8)
    ids[2, 12, 12, 8:15] = ids[2, 12, 12, 16:23] = 1
    line = TransmissionLine("z", (12, 12, 15), drive, 73.0)
    built = build(vacuum((24, 24, 30), 300, ids=ids, absorber=absorbing(6), sources=(line,)))
    found = peergrid.run(built.problem, steps=300, devices="cpu:2", options=ONE_STEP).traces
    (recorder,) = built.lines
    voltage, current = found[recorder.voltage], found[recorder.current]
    sent, with_it = incident(line, 301, built.domain.dt)
    assert apart(73.0 * with_it, sent) < 0.1
    half_way = 0.5 * (current[:-1] + current[1:])  # half a step earlier, and half a cell further
    assert apart(0.5 * (voltage[:-1] + 73.0 * half_way), sent[1:-1]) < 0.05
    source = VoltageSource("z", (12, 12, 15), drive, 73.0)
    domain = vacuum((24, 24, 30), 300, ids=ids, absorber=absorbing(6), sources=(source,))
    recorded = traces(build(replace(domain, receivers=(Receiver((12, 12, 15), ("Ez", "Iz")),))))
    across = -SPACING * recorded["rx1", "Ez"]
    middle = 0.5 * (across[1:] + np.roll(across, 1)[1:])
    capacity = EPSILON_0 * SPACING * np.diff(across) / built.domain.dt
    emf = drive.samples(301, built.domain.dt, half=True)[1:300]
    assert apart(middle + 73.0 * (recorded["rx1", "Iz"][1:] + capacity), emf) < 1e-9


@pytest.mark.parametrize("resistance", [5.0, 50.0, 370.0])
@pytest.mark.parametrize(("mode", "axis"), [("TMz", "z"), ("TEz", "x"), ("TEz", "y")])
def test_a_line_in_a_plane_is_a_voltage_source_behind_it(mode: Mode, axis: Axis, resistance: float) -> None:
    """Of twice its voltage, in series with its resistance, after five cells of the line and half a step. Fields fade in
    the end.
    """
    node, there = (24, 24, 0), (30, 18, 0)
    plain = vacuum(
        (48, 48, 1),
        1500,
        mode=mode,
        absorber=absorbing(8, SIDES[:4]),
        receivers=(Receiver(there, (electric_of(axis),)),),
    )
    line = TransmissionLine(axis, node, Drive(Ricker(1e9)), resistance)
    behind = Drive(Ricker(1e9, amplitude=2.0), start=(5 * sqrt(3) + 0.5) * plain.dt)
    fed, driven = (
        traces(build(replace(plain, sources=(source,))))["rx1", electric_of(axis)]
        for source in (line, VoltageSource(axis, node, behind, resistance))
    )
    assert apart(fed, driven) < 0.04
    assert np.abs(fed[-100:]).max() < 1e-3 * np.abs(fed).max()


def test_a_hard_source_prescribes_the_field_until_it_stops() -> None:
    drive = Drive(Gaussian(4e9), stop=40 * stable((SPACING,) * 3))
    source = VoltageSource("x", (5, 5, 5), drive, 0.0)
    domain = vacuum((10, 10, 10), 60, sources=(source,), receivers=(Receiver((5, 5, 5), ("Ex",)),))
    found = traces(build(domain))["rx1", "Ex"]
    times = np.arange(1, 61) * domain.dt
    np.testing.assert_allclose(found[:40], -drive.waveform.sample(times[:40]) / SPACING, rtol=1e-12)
    assert not np.allclose(found[40:], -drive.waveform.sample(times[40:]) / SPACING, rtol=1e-3)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", ["TM", "TE"])
def test_a_plane_is_a_slice_of_what_does_not_vary_along_its_axis(kind: str, axis: int) -> None:
    """A line of dipoles right across a box whose walls let that pass: TM between conducting plates, in 3D one cell."""
    name = "xyz"[axis]
    other = "xyz"[(axis + 1) % 3]
    shape, node = [16, 18, 20], [8, 9, 10]
    shape[axis], node[axis] = 1, 0
    driven: Axis = name if kind == "TM" else other  # type: ignore[assignment]
    nodes = tuple(1 if k == axis else n + 1 for k, n in enumerate(shape))
    spacing = (SPACING, 1.2 * SPACING, 0.9 * SPACING)
    live = tuple(d for k, d in enumerate(spacing) if k != axis)
    domain = vacuum(
        tuple(shape), 40, mode=f"{kind}{name}", ids=np.zeros((6, *nodes), np.uint8), spacing=spacing, dt=stable(live),
        sources=(ElectricDipole(driven, tuple(node), PULSE),),
        receivers=(Receiver(tuple(n + 2 * (k != axis) for k, n in enumerate(node)), COMPONENTS),),
    )  # fmt: skip
    found = traces(build(domain))
    turned = turn(domain, axis)
    expected = traces(build(turned))
    for component in COMPONENTS:
        image = f"{component[0]}{'xyz'[('xyz'.index(component[1]) - axis - 1) % 3]}"
        np.testing.assert_allclose(found["rx1", component], expected["rx1", image], rtol=1e-9, atol=1e-12)


def turn(domain: Domain, axis: int) -> Domain:
    """The same domain with its axes turned so that what did not vary along `axis` does not vary along z."""
    by = axis + 1

    def turned(values: Any) -> Any:
        return tuple(values[(k + by) % 3] for k in range(3))

    def letter(name: str) -> Any:
        return "xyz"[("xyz".index(name) - by) % 3]

    (source,), (receiver,) = domain.sources, domain.receivers
    assert isinstance(source, ElectricDipole)
    shape = turned(domain.shape)
    return replace(
        domain, shape=shape, spacing=turned(domain.spacing), mode=f"{domain.mode[:2]}z",  # type: ignore[arg-type]
        ids=np.zeros((6, shape[0] + 1, shape[1] + 1, 1), np.uint8),
        sources=(replace(source, axis=letter(source.axis), node=turned(source.node)),),
        receivers=(replace(receiver, node=turned(receiver.node)),),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("medium", "share"),
    [
        (Medium("wet", 1.0, poles=(debye(80.0, 9e-12), debye(3.0, 1e-13))), 1.0),
        (Medium("resonant", 1.0, poles=(lorentz(5.0, 2e10, 1e8),)), 0.74),
        (Medium("plasma", 1.0, poles=(drude(2e10, 1e9),)), 0.95),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_dispersive_media_are_stable_up_to_the_step_that_is_said(medium: Medium, share: float) -> None:
    """Noise in a closed box for thousands of steps does not grow; where it would there is a warning."""
    largest = stable((SPACING, SPACING))
    domain = vacuum((14, 14, 1), 2000, mode="TMz", media=(medium,), dt=share * largest)
    start = np.zeros((15, 15))
    start[1:-1, 1:-1] = np.random.default_rng(3).normal(size=(13, 13))
    with Simulation(build(domain).problem, steps=2000, devices="cpu:1", options=ONE_STEP) as simulation:
        simulation.set("Ez", start)
        simulation.run(2000)
        assert np.abs(simulation.gather("Ez")).max() < np.abs(start).max()
    assert not any("may grow" in sentence for sentence in build(domain).warnings)
    grows = any("may grow" in sentence for sentence in build(replace(domain, dt=largest)).warnings)
    assert grows == (share < 1)
