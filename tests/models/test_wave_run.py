"""Shots on devices: the same bits whatever carries them out, right schedules, receivers in arrays, clear mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from wave_examples import EXACT, recorded

from peergrid import Options, Simulation, UsageError, verify
from peergrid.models.wave import Gather, Medium, PointSource, Propagator, Ricker, Scheme, Shot
from peergrid.models.wave.points import footprint, products

RNG = np.random.default_rng(11)
DELTA = 0.1 * RNG.random((31, 27))
MEDIA: Mapping[str, tuple[Medium, Scheme]] = {
    "free surface": (
        Medium((31, 27), 10.0, 1500 + 800 * RNG.random((31, 27)), 1 + RNG.random((31, 27))),
        Scheme(layer=5, free_surface=True, absorber="cpml", time_order=4),
    ),
    "matched": (
        Medium((31, 27), (10.0, 12.0), 2000.0, epsilon=DELTA + 0.1, delta=DELTA),
        Scheme(layer=5, order=4, absorber="cpml"),
    ),
    "tilted": (
        Medium((31, 27), (10.0, 12.0), 2000.0, epsilon=DELTA + 0.1, delta=DELTA, tilt=6 * DELTA),
        Scheme(layer=5, order=4),
    ),
    "tilted, matched": (
        Medium((31, 27), 10.0, 2000.0, epsilon=DELTA + 0.1, delta=DELTA, tilt=6 * DELTA),
        Scheme(layer=5, order=4, absorber="cpml"),
    ),
    "cube": (Medium((13, 11, 9), 10.0, 1500 + 800 * RNG.random((13, 11, 9))), Scheme(layer=2, order=4)),
}


def shot_in(name: str, steps: int = 40) -> Shot:
    """Two sources close together, a line of receivers between nodes, one on a node."""
    medium, scheme = MEDIA[name]
    middle = [31.0] * (medium.ndim - 1)
    line = [(10.0 + 7.3 * k, *middle) for k in range(12)]
    sources = [PointSource((43.0, *middle), Ricker(25.0)), PointSource((51.0, *middle), np.ones(5))]
    return Shot(Propagator(medium, scheme), sources, [*line, (50.0, *middle[:-1], 60.0)], steps)


@pytest.mark.parametrize("name", MEDIA)
@pytest.mark.parametrize(("devices", "options"), [("cpu:3", Options("overlap")), ("cpu:2", Options("peer", depth=3))])
def test_a_shot_has_the_bits_of_numpy_on_any_devices(name: str, devices: str, options: Options) -> None:
    shot = shot_in(name)
    expected = recorded(shot).traces
    with Simulation(shot.problem, shot.steps, devices=devices, options=options) as simulation:
        simulation.run(shot.steps)
        found = shot.gather(simulation.traces()).traces
    np.testing.assert_array_equal(found, expected)
    assert np.abs(expected).max(axis=1).min() > 0


@pytest.mark.parametrize("devices", ["cpu:3", "cuda:0,1"])
def test_schedules_of_shots_are_right(devices: str) -> None:
    for name in MEDIA:
        assert verify(shot_in(name).problem, devices=devices).holds


def test_receivers_between_nodes_hear_a_smooth_wave_as_it_is() -> None:
    """Of a plane wave with eight cells to its length, within the error that Hicks gives for the window."""
    for point in ((20.3, 17.0), (19.5, 16.5), (20.0, 17.9)):
        box, weights = footprint(point)
        x, z = np.meshgrid(*(np.arange(a, b) for a, b in zip(box.lo, box.hi, strict=True)), indexing="ij")
        wave = np.cos(2 * np.pi * (0.6 * x + 0.8 * z) / 8)
        exact = np.cos(2 * np.pi * (0.6 * point[0] + 0.8 * point[1]) / 8)
        assert float((weights * wave).sum()) == pytest.approx(exact, abs=3e-3)


@pytest.mark.parametrize(
    ("points", "sets"),
    [
        (np.array([(x, 3.3) for x in np.arange(0, 400, 1.7)]), 1),
        (np.array([(x, y, 3.3) for x in np.arange(0, 60, 2.5) for y in np.arange(0, 50, 1.1)]), 1),
        (np.array([(x, 3.3) for x in np.arange(0, 40, 0.6)]), 1),
        (np.array([(1.5, 2.5), (7.5, 9.0), (1.5, 2.5)]), 3),
    ],
    ids=["line", "plane", "close line", "anywhere"],
)
def test_arrays_of_receivers_are_few_products(points: Any, sets: int) -> None:
    found = list(products(points))
    assert len(found) == sets
    numbers = np.concatenate([product.numbers.ravel() for product in found])
    np.testing.assert_array_equal(np.sort(numbers), np.arange(len(points)))
    for product in found:
        for number, cell, _ in product.cells():
            np.testing.assert_array_equal(np.floor(points[number] + 1e-6), cell)


def test_a_thousand_receivers_are_a_few_updates() -> None:
    medium = Medium((301, 40), 10.0, 2000.0)
    shot = Shot(Propagator(medium, EXACT), [PointSource((5, 50), Ricker(10))], line(np.linspace(0, 3000, 281)), 10)
    assert len(shot.problem.receivers) == 281
    assert len(shot.problem.stages) == 4  # two along axes, the wave, the source


def test_many_receivers_around_every_node_are_a_few_updates_that_hear_the_same() -> None:
    """Each is recorded as it is with another one far from it, to the bit, on any devices."""
    medium = Medium((31, 27), 10.0, 2000.0)
    places = line(np.linspace(40, 90, 131))
    sources = [PointSource((51.0, 50.0), Ricker(25.0))]
    shot = Shot(Propagator(medium, Scheme(layer=5)), sources, places, 40)
    assert len(shot.problem.stages) == 4
    assert sum(len(stage.updates) for stage in shot.problem.stages) == 5  # 26 receivers at a node, 16 in an update
    with Simulation(shot.problem, 40, devices="cpu:3", options=Options("overlap")) as simulation:
        simulation.run(40)
        found = shot.gather(simulation.traces()).traces
    assert np.abs(found).max(axis=1).min() > 0
    for pair in ([0, 130], [25, 104], [27, 80]):
        few = recorded(Shot(shot.propagator, sources, places[pair], 40))
        np.testing.assert_array_equal(found[pair], few.traces)


def line(places: Any) -> Any:
    return np.stack([places, np.full(len(places), 123.4)], axis=1)


MEDIUM = Medium((31, 27), 10.0, 2000.0)
TILTED = Medium((31, 27), 10.0, 2000.0, epsilon=0.2, delta=0.1, tilt=0.3)
MISTAKES: Mapping[str, tuple[Any, str]] = {
    "shape": (lambda: Medium((31,), 10.0, 2000.0), "two or three positive integers"),
    "nodes": (lambda: Medium(31, 10.0, 2000.0), "two or three positive integers, got 31"),  # type: ignore[arg-type]
    "spacing": (lambda: Medium((31, 27), None, 2000.0), "A spacing is expected to be metres .*, got None"),  # type: ignore[arg-type]
    "rows": (lambda: Medium((31, 27), 10.0, [[1.0, 2.0], [3.0]]), r"velocity is expected to be .*, got \[\[1"),
    "points": (
        lambda: TILTED.elliptical([1.0, 2.0, 3.0], 50.0),
        r"'points' takes positions in metres, shape \(points, 2",
    ),
    "radius": (lambda: TILTED.elliptical([1.0, 2.0], 0), "'radius' takes positive metres, got 0"),
    "no velocity": (lambda: Medium((31, 27), 10.0, None), "velocity is expected to be a number or .*, got None"),  # type: ignore[arg-type]
    "text as a step": (lambda: Propagator(MEDIUM, time_step="x"), "A time step is expected to be .*, got 'x'"),  # type: ignore[arg-type]
    "half": (lambda: Scheme(dtype="float16"), "dtype is 'float32' or 'float64', got 'float16'"),  # type: ignore[arg-type]
    "layer": (lambda: Scheme(layer=True), "layer is expected to be a whole number of cells, .*, got True"),
    "orders": (lambda: Scheme(order=np.array([8, 8])), r"even, from 2 to 16, got array\(\[8, 8\]\)"),  # type: ignore[arg-type]
    "no propagator": (lambda: Shot(None, [], [(40, 10)], 10), "'propagator' takes a Propagator, got None"),  # type: ignore[arg-type]
    "text as a place": (lambda: shot_at("ab", (40, 10)), r"'sources' takes positions in metres, .*, got \['ab'\]"),
    "two dimensions": (
        lambda: Shot(Propagator(MEDIUM), [PointSource(at, Ricker(10.0)) for at in ((5, 5), (5, 5, 5))], [(40, 10)], 10),
        r"'sources' takes positions in metres, shape \(points, 2\), got \[\(5, 5\), \(5, 5, 5\)\]",
    ),
    "text as a wavelet": (lambda: PointSource((5, 5), "x"), r"one such as Ricker\(25.0\), or samples, .*, got 'x'"),
    "a kind of wavelet": (lambda: PointSource((5, 5), Ricker), "samples, finite numbers, .*Ricker"),  # type: ignore[arg-type]
    "complex": (lambda: PointSource((5, 5), np.ones(3) * 1j), "samples, finite numbers, one for each step, got array"),
    "shape of samples": (
        lambda: shot_of(lambda _: np.zeros((2, 9))).samples,
        r"for each of 10 times, got shape \(2, 9",
    ),
    "complex samples": (lambda: shot_of(lambda times: times * 1j).samples, r"each of 10 times, got array\(\[0"),
    "samples that end": (lambda: shot_of(lambda times: times / 0.0).samples, r"finite number for each .*, got array\("),
    "masked": (
        lambda: Medium((2, 2), 10.0, np.ma.masked_less([[1.0, 2.0], [3.0, 4.0]], 2.0)),
        "velocity is expected at every node, got an array with masked values",
    ),
    "masked samples": (lambda: PointSource((5, 5), np.ma.masked_less([1.0, 2.0], 2.0)), "samples, finite numbers"),
    "velocity": (lambda: Medium((31, 27), 10.0, -5.0), "velocity is expected to be m/s"),
    "array": (lambda: Medium((31, 27), 10.0, np.ones((3, 3))), r"array of shape \(31, 27\)"),
    "thomsen": (lambda: Medium((31, 27), 10.0, 2000.0, epsilon=0.1, delta=0.2), "nowhere below delta"),
    "density": (lambda: Medium((31, 27), 10.0, 2000.0, 1.0, epsilon=0.1), "of an acoustic medium alone"),
    "azimuth": (lambda: Medium((31, 27), 10.0, 2000.0, azimuth=0.1), "of a medium in 3D alone"),
    "order": (lambda: Scheme(order=7), "even, from 2 to 16"),
    "courant": (lambda: Scheme(courant=1.2), "the limit of stability"),
    "absorber": (lambda: Scheme(absorber="pml"), "'sponge' or 'cpml', got 'pml'"),  # type: ignore[arg-type]
    "time order": (lambda: Scheme(time_order=3), "time_order is expected to be 2 or 4, got 3"),  # type: ignore[arg-type]
    "fourth": (
        lambda: Propagator(Medium((31, 27), 10.0, 2000.0, epsilon=0.1), Scheme(time_order=4)),
        "time_order is expected to be 2 in a medium with epsilon",
    ),
    "time step": (lambda: Propagator(MEDIUM, Scheme(), 0.1), "at most 0.002773 s"),
    "receiver": (lambda: shot_at((50, 50), (400, 10)).problem, r"within the medium, from 0 to \(300.0, 260.0\) m"),
    "source": (lambda: shot_at((-1, 50), (40, 10)), "Sources are expected within the medium"),
    "surface": (lambda: shot_at((50, 0), (40, 10), Scheme(free_surface=True)), "below the free surface"),
    "no courant": (lambda: Scheme(courant=None), "courant is expected to be above 0"),  # type: ignore[arg-type]
    "a surface": (lambda: Scheme(free_surface="top"), "'free_surface' is True or False"),  # type: ignore[arg-type]
    "no medium": (lambda: Propagator(np.ones((31, 27))), "is made of a Medium and a Scheme, got array"),  # type: ignore[arg-type]
    "seconds": (lambda: Propagator(MEDIUM).steps(-1.0), r"positive seconds, got -1\.0"),
    "one source": (
        lambda: Shot(Propagator(MEDIUM), PointSource((50, 50), Ricker(10.0)), [(40, 10)], 10),  # type: ignore[arg-type]
        "a list of PointSources, got PointSource",
    ),
    "a pair": (
        lambda: Shot(Propagator(MEDIUM), [((50, 50), Ricker(10.0))], [(40, 10)], 10),  # type: ignore[list-item]
        "a list of PointSources, got",
    ),
    "kilometres": (
        lambda: (
            Shot(Propagator(Medium((31, 27), 10.0, 2.0)), [PointSource((50, 50), Ricker(10.0))], [(40, 10)], 10).problem
        ),
        r"^Velocities are expected in m/s, got 2; is it 2000\?$",
    ),
    "coarse": (lambda: shot_at((50, 50), (40, 10), frequency=80.0).problem, "at least 2 cells to the shortest wave"),
}


def shot_at(source: Any, receiver: Any, scheme: Scheme | None = None, frequency: float = 10.0, steps: int = 10) -> Shot:
    return Shot(Propagator(MEDIUM, scheme or Scheme()), [PointSource(source, Ricker(frequency))], [receiver], steps)


@dataclass
class OwnWavelet:
    """A wavelet of a user."""

    of: Callable[[Any], Any]

    def sample(self, times: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.of(times)

    def highest_frequency(self) -> float:
        return 10.0


def shot_of(of: Callable[[Any], Any]) -> Shot:
    return Shot(Propagator(MEDIUM), [PointSource((50, 50), OwnWavelet(of))], [(40, 10)], 10)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_answered_with_a_sentence(mistake: str) -> None:
    make, sentence = MISTAKES[mistake]
    with pytest.raises(UsageError, match=sentence):
        make()


def test_numbers_of_numpy_are_numbers() -> None:
    medium = Medium(np.array([31, 27]), np.float32(10), np.float32(2000))  # type: ignore[arg-type]
    assert medium.spacings == Medium((31, 27), np.array([10, 10]), 2000.0).spacings == (10.0, 10.0)  # type: ignore[arg-type]
    scheme = Scheme(np.int64(8), np.float64(0.7), np.int64(20), time_order=np.int32(2))  # type: ignore[arg-type]
    assert (scheme, repr(scheme)) == (Scheme(), repr(Scheme()))
    assert Propagator(medium, scheme, np.float32(0.001)).dt == float(np.float32(0.001))


def test_texts_of_waves_are_short() -> None:
    shot = shot_at((50, 50), (40, 10))
    medium = "Medium(31×27 nodes 10×10 m apart, acoustic)"
    assert repr(shot.propagator.medium) == medium
    assert repr(shot.propagator) == f"Propagator({medium}, order 8, steps of 0.001941 s)"
    assert repr(shot) == f"Shot({shot.propagator}, 1 × 1 sources and receivers, 10 steps)"
    assert (
        repr(Gather(np.ones((3, 10)), 0.002, np.ones((1, 2)), np.ones((3, 2))))
        == "Gather(3 × 10 float64, 0.002 s apart)"
    )


def test_coarse_grids_and_long_steps_are_mentioned() -> None:
    shot = shot_at((50, 50), (40, 10), Scheme(order=2, courant=1.0), frequency=25.0, steps=90)
    slow, fast = shot.warnings
    assert "too slowly at order 2; a spacing of" in slow
    assert "too fast" in fast
    assert "too slowly, as" in shot_at((50, 50), (40, 10), Scheme(courant=1.0, time_order=4), 25.0, 90).warnings[-1]
    assert not shot_at((50, 50), (40, 10), steps=90).warnings


def test_sources_that_are_late_are_mentioned() -> None:
    """A frequency in kHz is one in Hz that is too low."""
    (said,) = shot_at((50, 50), (40, 10), frequency=0.01, steps=90).warnings
    assert re.match(
        r"The source at \(50, 50\) m is at its strongest after 141 s, but the run ends after 0\.175 s;", said
    )


def test_receivers_on_a_free_surface_are_mentioned() -> None:
    shot = shot_at((50, 50), (40, 0), Scheme(free_surface=True, layer=5), steps=90)
    (said,) = shot.warnings
    assert said.startswith(
        "1 of 1 receivers lie on the free surface, where pressure vanishes, and record zeros, the fi"
    )
    assert not recorded(shot).traces.any()
    assert not replace(shot, propagator=Propagator(MEDIUM)).warnings
    assert not replace(shot, receivers=[(40, 0.1)]).warnings


def test_sources_that_send_a_slow_wave_are_mentioned() -> None:
    medium = Medium((31, 27), 10.0, 2000.0, epsilon=np.linspace(0.1, 0.2, 27) * np.ones((31, 1)), delta=0.1)
    shot = Shot(Propagator(medium), [PointSource((50, z), Ricker(10.0)) for z in (0, 130)], [(40, 10)], 90)
    (said,) = shot.warnings
    assert said.startswith("The source at (50, 130) m lies where epsilon is larger than delta")
    assert not replace(shot, sources=shot.sources[:1]).warnings
    assert MEDIUM.elliptical([50.0, 50.0], 20.0).kind == "acoustic"
