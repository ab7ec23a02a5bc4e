"""Run experiments one after the other; a failed one does not affect the others."""

from __future__ import annotations

import time
from collections.abc import Callable

from peergrid.errors import PeergridError
from peergrid.probe.experiment import Bench, Impossible, Lack, Measurement, Probe
from peergrid.probe.profile import Outcome

STOPPED = 3  # how a worker process ends that another has to follow


def run(probe: Probe, bench: Bench, gpus: int, why: str = "") -> Outcome:
    """Run one experiment on a machine with `gpus` GPUs (`why` says why there are none)."""
    if gpus < probe.gpus:
        return outcome(probe, "impossible", _too_few(probe.gpus, gpus, why))
    found: list[Measurement | Lack] = []
    begin = time.perf_counter()
    status, reason = _guarded(lambda: found.extend(probe.run(bench)))
    lacking = dict.fromkeys(item.what for item in found if isinstance(item, Lack))
    results = tuple(item for item in found if isinstance(item, Measurement))
    words = "; ".join(filter(None, [reason, *lacking]))
    return outcome(probe, status, words, time.perf_counter() - begin, results)


def outcome(
    probe: Probe, status: str, reason: str, seconds: float = 0.0, results: tuple[Measurement, ...] = ()
) -> Outcome:
    """The outcome of `probe`, with its description."""
    return Outcome(
        probe.name,
        probe.group,
        probe.title,
        probe.unit,
        probe.method,
        status,
        reason,
        round(seconds, 3),
        results,
    )


def _guarded(work: Callable[[], None]) -> tuple[str, str]:
    """'done', or the status and the reason of a failure; errors do not leave the experiment."""
    try:
        work()
    except Impossible as error:
        return "impossible", str(error)
    except PeergridError as error:
        return "failed", str(error)
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "done", ""


def _too_few(needed: int, there: int, why: str) -> str:
    many = f"{needed} GPU{'s' * (needed > 1)}"
    return f"needs {many}, and this machine has {there or 'none'}" + (f": {why}" if why else "")
