"""Shared settings: one deterministic Hypothesis profile, so that a red test is red again; who has the GPUs when."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from turnstile import held

settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("ci")


@pytest.fixture
def alone() -> None:
    """For a test marked `gpu` that compares what a whole GPU has: no other such test of this run goes on meanwhile."""


@pytest.fixture(autouse=True)
def gpus_in_turn(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests marked `gpu` run together, those that ask to be `alone` while none of the others does."""
    if request.node.get_closest_marker("gpu") is None:
        yield
        return
    own = tmp_path_factory.getbasetemp()
    folder = own.parent if hasattr(request.config, "workerinput") else own  # workers of xdist share the parent
    with held(folder, alone="alone" in request.fixturenames):
        yield
