"""What `tools/gpu_check --only bits` found, summed up per problem, list of devices and strategy.

    python benchmarks/cuda/bits_record.py DIR benchmarks/results/NAME.json

DIR is what the check wrote: `machine.json` and `bits.json`. A run that did not have the reference's bits is kept whole.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any


def summed(machine: dict[str, Any], cases: list[dict[str, Any]]) -> dict[str, Any]:
    """The record: runs and those with the CPU's bits, per group; what failed; what there was no time for."""
    references = {case["case"].split()[1]: case["sha256"] for case in cases if case["case"].startswith("reference")}
    left = next((case for case in cases if case["case"] == "time was up"), {"not_run": 0})
    runs = [case for case in cases if case["case"].split()[0] in references]
    groups = Counter(_group(case) for case in runs)
    same = Counter(_group(case) for case in runs if case["ok"])
    return {
        "benchmark": "bits",
        "about": _about(machine),
        "planned": len(runs) + left["not_run"],
        "not_run": left["not_run"],
        "references": references,
        "rows": [
            {"problem": problem, "devices": devices, "strategy": strategy, "runs": count, "same": same[group]}
            for group, count in groups.items()
            for problem, devices, strategy in [group]
        ],
        "failed": [{"case": case["case"], "error": case["error"]} for case in runs if not case["ok"]],
    }


def _group(case: dict[str, Any]) -> tuple[str, str, str]:
    problem, devices, strategy, *_ = case["case"].split()
    return problem, devices, strategy


def _about(machine: dict[str, Any]) -> dict[str, Any]:
    names = [line.split(",")[0] for line in machine["gpus"]]
    return {
        "command": f"tools/gpu_check --devices {','.join(map(str, _counts(len(names))))} --only bits",
        "date": machine["date"][:10],
        "commit": machine["commit"],
        "hardware": f"{len(names)} × {names[0]} ({machine['cores']} cores)",
        "versions": {"python": machine["python"], **machine["versions"]},
    }


def _counts(gpus: int) -> list[int]:
    return [n for n in (1, 2, 4, 8) if n <= gpus]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("record", type=Path)
    asked = parser.parse_args()
    machine, cases = (json.loads((asked.folder / name).read_text()) for name in ("machine.json", "bits.json"))
    asked.record.write_text(json.dumps(summed(machine, cases), indent=1) + "\n")


if __name__ == "__main__":
    main()
