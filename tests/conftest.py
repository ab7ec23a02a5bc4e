"""Shared settings: one deterministic Hypothesis profile, so that a red test is red again."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("ci")
