"""The seconds of a run are those of its steps alone."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from runtime_problems import heat_fixed

from peergrid import Simulation, simulate


def test_what_is_prepared_takes_no_stepping_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that goes on by an hour for each preparation, and by a second for each part of a run."""
    now = [0.0]
    monkeypatch.setattr(simulate, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    with Simulation(heat_fixed(), 40, devices="cpu:2") as simulation:
        execute = simulation._executor.execute

        def prepared(_: object) -> None:
            now[0] += 3600

        def executed(*given: object) -> None:
            now[0] += 1
            execute(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(simulation._executor, "prepare", prepared)
        monkeypatch.setattr(simulation._executor, "execute", executed)
        simulation.run(2 * 16 + 3)
        assert (simulation.step, simulation.seconds) == (35, 2)  # whole periods, and a rest
        assert now[0] == 2 * 3600 + 2
        timeline = simulation.trace(5)
        assert simulation.seconds - 2 == pytest.approx(max(span.end for span in timeline.spans))
