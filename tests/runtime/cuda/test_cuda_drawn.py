"""Whatever is asked of GPUs, on a driver that runs on the host: drawn problems, edges, options, norms; the same bits.

Far reaches, periodic edges and several passes per exchange, in combinations that nobody thinks of.
"""

from __future__ import annotations

import pytest
from host_driver import COMPILER, HostDriver
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from runtime_problems import radius_four_on, random_heat, yee_on

from peergrid import Options, Problem, Simulation
from peergrid.grid import Boundary
from peergrid.runtime.cuda import executor
from peergrid.runtime.devices import Devices
from peergrid.runtime.executors import KernelKind
from peergrid.schedule.exchange import ORDERS
from peergrid.schedule.strategies import STRATEGIES

pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler here to run generated kernels on the host")
MAKE = {"u": (random_heat, radius_four_on), "ez": (yee_on,)}
EDGES: list[Boundary] = ["fixed", "periodic", "reflecting"]
STEPS = 9


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, str]:
    """One of 72 rows and more, so that three devices have a block of norms each; the field of its norm."""
    field = draw(st.sampled_from(sorted(MAKE)))
    make = draw(st.sampled_from(MAKE[field]))
    shape = draw(st.integers(72, 120)), draw(st.sampled_from([9, 113, 137, 241, 300]))
    return make(shape, (draw(st.sampled_from(EDGES)), draw(st.sampled_from(EDGES)))), field


@st.composite
def options(draw: st.DrawFn) -> Options:
    return Options(
        draw(st.sampled_from(sorted(STRATEGIES))),
        depth=draw(st.integers(1, 16)),
        block=draw(st.sampled_from([None, None, 1])),
        route=draw(st.sampled_from([None, "store"])),
        order=draw(st.sampled_from(sorted(ORDERS))),
    )


def left(problem: Problem, devices: Devices | str, asked: Options, norm: str | None) -> tuple[str, bytes]:
    """The digest of the last state, and the norms of all steps."""
    kernel: KernelKind = "reference" if isinstance(devices, str) else "compiled"
    with Simulation(problem, STEPS, devices=devices, options=asked, kernel=kernel, norm=norm) as run:
        run.run(STEPS)
        return run.sha256(), run.norms().tobytes() if norm else b""


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    drawn=problems(),
    asked=options(),
    count=st.integers(1, 3),
    normed=st.booleans(),
    words=st.booleans(),
    registers=st.sampled_from([128, 200]),
)
def test_same_bits(
    monkeypatch: pytest.MonkeyPatch,
    drawn: tuple[Problem, str],
    asked: Options,
    count: int,
    normed: bool,
    words: bool,
    registers: int,
) -> None:
    """registers: of a thread of interior tiles; 128 leave strips no room."""
    monkeypatch.setattr(executor, "CudaDriver", lambda: HostDriver(seed=1, words=words, registers=registers))
    problem, field = drawn
    norm = field if normed else None
    expected = left(problem, "cpu:1", Options("serial"), norm)
    assert left(problem, Devices("cuda", tuple(range(count))), asked, norm) == expected
