"""The transpose of modelling, gradients and images beside definitions; states of a run from the last to the first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from peergrid import Grid, Simulation, UsageError, stencil
from peergrid.inverse import adjoint, forward, gradient, migrate
from peergrid.inverse.backwards import ahead, backwards
from peergrid.models.wave import Gather, Medium, PointSource, Propagator, Ricker, Scheme, Shot
from peergrid.models.wave.scheme import Absorber
from peergrid.models.waveforms import Doubles

RNG = np.random.default_rng(5)
SHAPE, STEPS = (24, 21), 60
DELTA = 0.1 * RNG.random(SHAPE)
VELOCITY = 1500 + 800 * RNG.random(SHAPE)
SCHEME = Scheme(order=4, layer=5, dtype="float64")
CASES = {
    "acoustic": (Medium(SHAPE, 10.0, VELOCITY), SCHEME),
    "free surface": (Medium(SHAPE, (10.0, 8.0), VELOCITY, 1 + RNG.random(SHAPE)), replace(SCHEME, free_surface=True)),
    "tilted": (Medium(SHAPE, 10.0, VELOCITY, epsilon=DELTA + 0.1, delta=DELTA, tilt=6 * DELTA), SCHEME),
    "matched": (
        Medium(SHAPE, 10.0, VELOCITY, epsilon=DELTA + 0.1, delta=DELTA),
        replace(SCHEME, layer=4, absorber="cpml"),
    ),
    "matched surface": (
        Medium(SHAPE, (10.0, 8.0), VELOCITY, 1 + RNG.random(SHAPE)),
        replace(SCHEME, layer=4, absorber="cpml", free_surface=True, time_order=4),
    ),
    "tilted surface": (
        Medium(SHAPE, 10.0, VELOCITY, epsilon=0.2, delta=DELTA, tilt=0.7),
        replace(SCHEME, free_surface=True),
    ),
    "matched, tilted surface": (
        Medium(SHAPE, (10.0, 8.0), VELOCITY, epsilon=0.2, delta=DELTA, tilt=6 * DELTA),
        replace(SCHEME, absorber="cpml", free_surface=True),
    ),
}
CUBE = (14, 13, 15)
ROUGH = 0.1 * RNG.random(CUBE)
GROUND = 1500 + 800 * RNG.random(CUBE)
SPATIAL = {
    "acoustic": Medium(CUBE, 10.0, GROUND),
    "density": Medium(CUBE, (10.0, 9.0, 8.0), GROUND, 1 + RNG.random(CUBE)),
    "vti": Medium(CUBE, 10.0, GROUND, epsilon=ROUGH + 0.1, delta=ROUGH),
    "tti": Medium(CUBE, 10.0, GROUND, epsilon=ROUGH + 0.1, delta=ROUGH, tilt=6 * ROUGH, azimuth=9 * ROUGH),
}
SOURCES = np.array([[53.0, 61.7], [110.0, 40.0]])
RECEIVERS = np.array([[20.0 + 13.3 * k, 17.1] for k in range(12)])
DEEPER = np.array([0.0, 20.0])  # no nearer to perfectly matched layers than three nodes


@pytest.mark.parametrize("name", CASES)
def test_the_adjoint_is_the_transpose(name: str) -> None:
    """⟨F s, d⟩ = ⟨s, Fᵀ d⟩ to rounding, of noise, on several devices."""
    propagator = Propagator(*CASES[name])
    sent, heard = RNG.random((2, STEPS)) - 0.5, RNG.random((12, STEPS)) - 0.5
    receivers = RECEIVERS + DEEPER
    traces = forward(propagator, SOURCES, sent, receivers, devices="cpu:2")
    back = adjoint(propagator, receivers, heard, SOURCES, devices="cpu:2")
    assert float((traces * heard).sum()) == pytest.approx(float((sent * back).sum()), rel=1e-11)
    assert np.abs(traces).max() > 0


@pytest.mark.parametrize("name", ["acoustic", "matched surface"])
def test_the_samples_of_a_shot_give_its_traces(name: str) -> None:
    """With order 4 in time, too, which smooths what sources send."""
    propagator = Propagator(*CASES[name])
    shot = Shot(propagator, [PointSource((53.0, 61.7), Ricker(20.0))], RECEIVERS, STEPS)
    with Simulation(shot.problem, STEPS, devices="cpu:1") as simulation:
        simulation.run(STEPS)
        traces = shot.gather(simulation.traces()).traces
    found = forward(propagator, shot.source_positions, shot.samples, RECEIVERS, devices="cpu:1")
    np.testing.assert_array_equal(found, traces)
    np.testing.assert_array_equal(shot.samples[0], Ricker(20.0).sample(np.arange(STEPS) * propagator.dt))


@pytest.mark.parametrize("absorber", ["sponge", "cpml"])
@pytest.mark.parametrize("name", SPATIAL)
def test_the_adjoint_is_the_transpose_in_3d(name: str, absorber: Absorber) -> None:
    propagator = Propagator(SPATIAL[name], replace(SCHEME, layer=3, absorber=absorber))
    sources, receivers = 30.0 + 50.0 * RNG.random((2, 3)), 30.0 + 50.0 * RNG.random((5, 3))
    sent, heard = RNG.random((2, 30)) - 0.5, RNG.random((5, 30)) - 0.5
    traces = forward(propagator, sources, sent, receivers, devices="cpu:2")
    back = adjoint(propagator, receivers, heard, sources, devices="cpu:2")
    assert float((traces * heard).sum()) == pytest.approx(float((sent * back).sum()), rel=1e-11)
    assert np.abs(traces).max() > 0


@pytest.mark.parametrize("layer", [0, 4])
def test_the_gradient_is_that_of_finite_differences(layer: int) -> None:
    """The same at every node, edges too where there are no layers, along one direction of noise."""
    largest = Propagator(Medium(SHAPE, 10.0, 2400.0), SCHEME).dt
    scheme, way = replace(SCHEME, layer=layer, absorber="cpml"), RNG.random(SHAPE) - 0.5
    receivers = RECEIVERS + DEEPER
    if layer:
        way = np.pad(way[1:-1, 1:-1], 1) * (VELOCITY.max() > VELOCITY)

    def shot(velocity: np.ndarray) -> Shot:  # type: ignore[type-arg]
        propagator = Propagator(Medium(SHAPE, 10.0, velocity), scheme, largest)
        return Shot(propagator, [PointSource((53.0, 61.7), Ricker(20.0))], receivers, STEPS)

    def misfit(velocity: np.ndarray) -> float:  # type: ignore[type-arg]
        made = shot(velocity)
        return 0.5 * float((forward(made.propagator, made.source_positions, made.samples, receivers) ** 2).sum())

    found, by_velocity = gradient(shot(VELOCITY), np.zeros((12, STEPS)), devices="cpu:1", kept=3)
    assert found == pytest.approx(misfit(VELOCITY), rel=1e-12)
    step = 1e-2
    slope = (misfit(VELOCITY + step * way) - misfit(VELOCITY - step * way)) / (2 * step)
    assert float((by_velocity * way).sum()) == pytest.approx(slope, rel=1e-6)


ELLIPTIC = np.where(DELTA > 0.05, DELTA, DELTA + 0.1)  # epsilon, which is delta in half of the cells
OTHERS = {
    "density": Medium(SHAPE, (10.0, 8.0), VELOCITY, 1 + RNG.random(SHAPE)),
    "vti": Medium(SHAPE, 10.0, VELOCITY, epsilon=0.2, delta=DELTA),
    "tti": Medium(SHAPE, 10.0, VELOCITY, epsilon=ELLIPTIC, delta=DELTA, tilt=6 * DELTA),
    "tti without anisotropy": Medium(SHAPE, 10.0, VELOCITY, tilt=6 * DELTA),
    "acoustic 3D": SPATIAL["acoustic"],
    "tti 3D": SPATIAL["tti"],
}


@pytest.mark.parametrize("absorber", ["sponge", "cpml"])
@pytest.mark.parametrize("name", OTHERS)
def test_gradients_of_any_medium_are_those_of_finite_differences(name: str, absorber: Absorber) -> None:
    """Along a direction that changes neither the mean nor the largest velocity, by which layers damp."""
    medium = OTHERS[name]
    velocity = medium.values("velocity")
    scheme = replace(SCHEME, layer=3, absorber=absorber, free_surface=name == "tti")
    dt = Propagator(medium, scheme).dt
    inner = (slice(3, -3),) * medium.ndim
    way = np.zeros(medium.shape)
    way[inner] = RNG.random(way[inner].shape) - 0.5
    way[velocity == velocity.max()] = 0.0
    way[inner] -= (velocity < velocity.max())[inner] * way.sum() / (velocity < velocity.max())[inner].sum()
    source, receivers = 50.0 + 30.0 * RNG.random(medium.ndim), 30.0 + 40.0 * RNG.random((4, medium.ndim))

    def shot(velocity: Doubles) -> Shot:
        propagator = Propagator(replace(medium, velocity=velocity), scheme, dt)
        return Shot(propagator, [PointSource(source, Ricker(20.0))], receivers, 40)

    def misfit(velocity: Doubles) -> float:
        made = shot(velocity)
        return 0.5 * float((forward(made.propagator, made.source_positions, made.samples, receivers) ** 2).sum())

    found, by_velocity = gradient(shot(velocity), np.zeros((4, 40)), devices="cpu:1", kept=5)
    assert found == pytest.approx(misfit(velocity), rel=1e-12)
    step = 1e-1
    slope = (misfit(velocity + step * way) - misfit(velocity - step * way)) / (2 * step)
    assert float((by_velocity * way).sum()) == pytest.approx(slope, rel=1e-5)


def test_migration_images_a_layer_where_it_is() -> None:
    smooth, true = np.full((81, 51), 2000.0), np.full((81, 51), 2000.0)
    true[:, 30:] = 2400.0
    scheme = Scheme(layer=15)
    dt = Propagator(Medium(true.shape, 10.0, true), scheme).dt
    line = np.array([[10.0 * k, 20.0] for k in range(81)])
    guess, ground = (Propagator(Medium(v.shape, 10.0, v), scheme, dt) for v in (smooth, true))
    sources = [PointSource((400.0, 20.0), Ricker(20.0))]
    shot = Shot(guess, sources, line, guess.steps(0.5))
    heard, direct = (forward(p, shot.source_positions, shot.samples, line, devices="cpu:1") for p in (ground, guess))
    image = migrate(shot, heard - direct, devices="cpu:1", kept=6)
    jumps = np.abs(np.diff(image[30:51].mean(axis=0)))[12:]  # below the receivers; the image of a step is a step
    assert 12.5 + jumps.argmax() == 29.5


@stencil
def grow(u, k):  # type: ignore[no-untyped-def]
    u.next[0] = u[0] + k * u[1]


@pytest.mark.parametrize("kept", [1, 2, 3, 30])
def test_states_come_back_from_the_last_to_the_first(kept: int) -> None:
    step = grow(Grid(8, "periodic").field("u", np.arange(8.0)), 0.5)
    with Simulation(step, 20, devices="cpu:1", kernel="reference") as simulation:
        expected = [simulation.sha256()]
        for _ in range(20):
            simulation.run(1)
            expected.append(simulation.sha256())
    with Simulation(step, 20, devices="cpu:1", kernel="reference") as simulation:
        found = [(n, simulation.sha256()) for n in backwards(simulation, 20, kept)]
    assert found == [(n, expected[n]) for n in range(20, -1, -1)]


def test_few_states_take_few_steps() -> None:
    """2,000 steps with 30 states: each is made about three times; the deepest keeps no more than allowed."""

    def made(steps: int, kept: int) -> int:
        total, last = 0, steps
        while last > 0:
            assert kept > 0
            middle = ahead(last, kept)
            total, last = total + middle + made(last - middle, kept - 1), middle - 1
        return total

    assert 2000 < made(2000, 30) < 3 * 2000


@pytest.mark.parametrize("operator", [gradient, migrate])
@pytest.mark.parametrize(
    ("traces", "sentence"),
    [
        (np.zeros((1, 10)), r"shape \(12, 10\), one row for each receiver, got shape \(1, 10\)"),
        (np.zeros((12, 9)), r"shape \(12, 10\), one row for each receiver, got shape \(12, 9\)"),
        (np.full((12, 10), np.nan), r"as finite numbers, .*, got NaN or infinity\."),
        ("traces.h5", r"got str\."),
        (Gather(np.zeros((12, 10)), 1e-4, SOURCES, RECEIVERS), "got a gather with one every 0.0001 s; give the Propag"),
    ],
)
def test_observed_traces_are_those_of_the_shot(operator: Any, traces: Any, sentence: str) -> None:
    shot = Shot(Propagator(*CASES["free surface"]), [PointSource((50.0, 60.0), Ricker(20.0))], RECEIVERS, 10)
    with pytest.raises(UsageError, match=sentence):
        operator(shot, traces, devices="cpu:1")


@pytest.mark.parametrize("operator", [gradient, migrate])
@pytest.mark.parametrize("kept", [0, -1, 2.5, None])
def test_at_least_one_state_is_kept(operator: Any, kept: Any) -> None:
    shot = Shot(Propagator(*CASES["free surface"]), [PointSource((50.0, 60.0), Ricker(20.0))], RECEIVERS, 10)
    with pytest.raises(UsageError, match="'kept' is a whole number of states, at least 1, got"):
        operator(shot, np.zeros((12, 10)), devices="cpu:1", kept=kept)
    with pytest.raises(UsageError, match=r"A Shot of peergrid\.models\.wave is expected, got Prop"):
        operator(shot.propagator, np.zeros((12, 10)))


@pytest.mark.parametrize(
    ("places", "sentence"),
    [
        (np.zeros((0, 2)), r"^Traces are sent back from at least one receiver, got none\.$"),
        (
            [(20.0, 0.0), (50.0, 0.0)],
            r"^Traces are sent back from below the free surface, .*, got 2 receivers on it and",
        ),
    ],
)
def test_traces_are_sent_back_from_where_waves_are_heard(places: Any, sentence: str) -> None:
    propagator = Propagator(*CASES["free surface"])
    shot = Shot(propagator, [PointSource((50.0, 60.0), Ricker(20.0))], places, 10)
    for operator in (gradient, migrate):
        with pytest.raises(UsageError, match=sentence):
            operator(shot, np.zeros((len(places), 10)), devices="cpu:1")
    with pytest.raises(UsageError, match=sentence):
        adjoint(propagator, shot.receiver_positions, np.zeros((len(places), 10)), SOURCES)


def test_one_receiver_below_the_surface_is_enough() -> None:
    """The traces of those on it are zeros, and change nothing."""
    propagator, heard = Propagator(*CASES["free surface"]), RNG.random((2, 30))
    places = np.array([(20.0, 0.0), (50.0, 20.0)])
    both, one = (adjoint(propagator, places[k:], heard[k:], SOURCES, devices="cpu:1") for k in (0, 1))
    np.testing.assert_array_equal(both, one)


def test_a_gather_may_be_observed() -> None:
    shot = Shot(Propagator(*CASES["free surface"]), [PointSource((50.0, 60.0), Ricker(20.0))], RECEIVERS, 10)
    gather = Gather(np.ones((12, 10)), shot.propagator.dt, SOURCES, RECEIVERS)
    assert gradient(shot, gather, devices="cpu:1")[0] == gradient(shot, gather.traces, devices="cpu:1")[0]


def test_mistakes_are_answered_with_a_sentence() -> None:
    propagator = Propagator(*CASES["free surface"])
    with pytest.raises(UsageError, match=r"shape \(12, steps\), one row for each receiver, got shape \(3, 60\)"):
        adjoint(propagator, RECEIVERS, np.zeros((3, 60)), SOURCES)
    with pytest.raises(UsageError, match=r"^Samples are expected as finite numbers, shape"):
        forward(propagator, SOURCES, np.zeros((len(SOURCES) + 1, 20)), RECEIVERS)
    fourth = Propagator(*CASES["matched surface"])
    shot = Shot(fourth, [PointSource((50.0, 60.0), Ricker(20.0))], RECEIVERS, 10)
    with pytest.raises(UsageError, match="a scheme with time_order 2, got 4"):
        migrate(shot, np.zeros((12, 10)))
