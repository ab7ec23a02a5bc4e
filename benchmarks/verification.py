"""Prove every way to run the radar example, as built and as GPUs carry it out, try mutants, explore the protocol.

    python benchmarks/verification.py

Runs `peergrid verify examples/gpr.toml --mutants --json`, the same for 2 and for 4 GPUs, and every execution of the
protocols of its fused kernels on 2 to 4 devices, and times the proof of schedules of 1,024 GPUs; writes
benchmarks/results/verification.json. Exits with 1 where anything is wrong.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from record import about, save

import peergrid
from peergrid.bench.problems import jacobi
from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.models.fdtd import build
from peergrid.models.modelfile import read
from peergrid.schedule.strategies import STRATEGIES

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))

from fused_protocol.model import Protocol, explore  # noqa: E402
from fused_protocol.text import KernelText  # noqa: E402

MODEL = "examples/gpr.toml"
COMMAND = ("verify", MODEL, "--mutants", "--json")
GPUS = ("cuda:0,1", "cuda:0,1,2,3")
SIZES = ((2, 1, False), (2, 2, False), (2, 1, True), (3, 1, False), (3, 1, True), (4, 1, False))
"""Devices, tiles at each end of a slab, and whether the devices are a ring."""


def main() -> int:
    started = time.perf_counter()
    found = verified(*COMMAND)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    times = {
        "seconds": round(time.perf_counter() - started),
        "processor_seconds": round(used.ru_utime + used.ru_stime),  # of all processes together
    }
    lowered = {gpus: verified(*COMMAND, "--devices", gpus) for gpus in GPUS}
    explored = [row for protocol in protocols() for row in rows(protocol)]
    command = f"peergrid {' '.join(COMMAND)}"
    save(
        "verification",
        {
            **about(),
            "command": command,
            **times,
            "found": found,
            "lowered": lowered,
            "protocol": explored,
            "many": list(many()),
        },
    )
    right = all(each["disagreements"] == 0 and not each["faults"] for each in (found, *lowered.values()))
    return int(not right or any(row["fault"] for row in explored))


def verified(*arguments: str) -> Any:
    """The answer of a command."""
    call = [sys.executable, "-m", "peergrid", *arguments]
    return json.loads(subprocess.run(call, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout)


def many() -> Iterator[dict[str, Any]]:
    """The proof of Jacobi's schedule on 1,024 GPUs, by strategy, with the seconds of one processor that it takes."""
    asked, devices = jacobi(8192, 64), "cuda:" + ",".join(map(str, range(1024)))
    for strategy in STRATEGIES:
        began = time.process_time()
        proof = peergrid.verify(asked, devices=devices, strategy=strategy, depth=4)
        seconds = round(time.process_time() - began, 2)
        yield {"strategy": strategy, "devices": 1024, "ops": proof.ops, "right": proof.holds, "seconds": seconds}


def protocols() -> tuple[Protocol, ...]:
    """The protocols of the texts of the example's fused kernels."""
    made = pass_kernel(build(read(ROOT / MODEL)).problem, 4)
    assert made is not None
    peer = PeerKernel.of(made)
    resident = (PersistentKernel(made, interior=plain).program for plain in (True, False))
    programs = [program for program in (peer.interior, peer.boundary, peer.layer, *resident) if program is not None]
    texts = (KernelText(expanded(program.source), program.entry) for program in programs)
    return tuple(dict.fromkeys(protocol for text in texts for protocol in text.protocols().values()))


def rows(protocol: Protocol) -> list[dict[str, Any]]:
    """The states of a protocol in each of the sizes."""
    found = []
    for devices, tiles, ring in SIZES:
        outcome = explore(protocol, devices, 3, tiles, ring=ring)
        found.append(
            {
                "steps": [step.value for step in protocol.steps],
                "resident": protocol.resident,
                "devices": devices,
                "tiles": tiles,
                "ring": ring,
                "passes": 3,
                "states": outcome.states,
                "fault": outcome.fault,
            }
        )
    return found


if __name__ == "__main__":
    sys.exit(main())
