"""Shared settings: one deterministic Hypothesis profile, so that a red test is red again; who has the GPUs when; which
tests may be skipped.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from each_value import covering
from turnstile import held

settings.register_profile(
    "ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
settings.load_profile("ci")
gc.set_threshold(7_000, 10, 10)  # the usual ones look through all that tests have imported again and again


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


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all-but-gpu",
        action="store_true",
        help="Fail where a test is skipped that needs no GPU: its compiler, browser or package is missing.",
    )

    parser.addoption(
        "--each-value",
        action="store_true",
        help="Of a test with several parameters, run some cases that together take every value of each parameter.",
    )


@pytest.hookimpl(tryfirst=True)  # before the markers of the command line are looked at
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    long = set((Path(__file__).parent / "long_tests.txt").read_text().split())
    for item in items:
        if item.nodeid.partition("[")[0] in long:
            item.add_marker("long")
    if config.getoption("--each-value"):
        chosen = covering(items)
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen


def pytest_collection_finish() -> None:
    """What is imported and collected by now stays until the end: the collector need not look through it again."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Skips are judged where all reports arrive: in the process that starts the workers."""
    if config.getoption("--all-but-gpu") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skips(), "skips")


class Skips:
    """Tests, and whole files, that were skipped although they need no GPU."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        absent = {"gpu", "namespaces"} & set(report.keywords)  # what a machine may lack
        if report.skipped and not absent and not hasattr(report, "wasxfail"):
            self.found[report.nodeid] = _reason(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.found[report.nodeid] = _reason(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.found and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for test, reason in self.found.items():
            terminalreporter.write_line(f"SKIPPED although it needs no GPU: {test}: {reason}", red=True)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Why something was skipped."""
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
