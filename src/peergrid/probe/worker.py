"""A process for the experiments, so that one that crashes or hangs does not affect the others.

Started as `python -m peergrid.probe.worker [--quick] NAME…`; writes one JSON line per experiment begun and one
per experiment ended. It stops after a failure on a GPU, whose context may be spoilt; `session` starts another.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from peergrid.errors import DeviceFault
from peergrid.machine import encode
from peergrid.machine.driver import find
from peergrid.probe.experiment import Bench
from peergrid.probe.registry import choose
from peergrid.probe.runner import STOPPED, outcome, run


def main(arguments: Sequence[str]) -> int:
    """Run the named experiments; returns the exit code."""
    quick = "--quick" in arguments
    # A kernel loaded at its first launch may wait for kernels that run, and those may wait for it.
    os.environ.setdefault("CUDA_MODULE_LOADING", "EAGER")
    driver, missing = find()
    if driver is None:
        return _all(arguments, Bench(quick), 0, missing.why if missing else "")
    from peergrid.probe.cuda.devices import Gpus

    with ExitStack() as stack:
        try:
            devices = stack.enter_context(Gpus.open(driver))
        except DeviceFault as fault:
            return _all(arguments, Bench(quick), 0, fault=str(fault))
        return _all(arguments, Bench(quick, devices), len(devices))


def _all(arguments: Sequence[str], bench: Bench, gpus: int, why: str = "", fault: str = "") -> int:
    """All named experiments on `gpus` GPUs (`why` says why none), or without those that did not open (`fault`)."""
    for probe in choose([name for name in arguments if name != "--quick"]):
        _say({"begin": probe.name})
        if probe.gpus and fault:
            _say({"outcome": encode(outcome(probe, "failed", fault))})
            continue
        found = run(probe, bench, gpus, why)
        _say({"outcome": encode(found)})
        if probe.gpus and found.status == "failed":
            return STOPPED
    return 0


def _say(line: object) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
