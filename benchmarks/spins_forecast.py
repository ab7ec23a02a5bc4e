"""Half steps on 1 to 8 H200s, predicted from the rate of one and beside what two gave; writes spins_forecast.json.

python benchmarks/spins_forecast.py
"""

from __future__ import annotations

import json
import statistics

from record import RESULTS, about, save

from peergrid.costs.machines import machine_named
from peergrid.spins.forecast import half_step_seconds

MACHINE = "h200-x8"


def main() -> None:
    measured = json.loads((RESULTS / "h200-x2-spins.json").read_text())
    alone = measured["rates"][0]
    per_colour, rate = alone["variables"] // 2, alone["flips_per_ns"] * 1e9
    seen = {row["gpus"]: row for row in measured["rates"] if row["exchange"] == "copy" or row["gpus"] == 1}
    rows = []
    for gpus in (1, 2, 4, 8):
        seconds = half_step_seconds(per_colour, gpus, rate, machine_named(MACHINE))
        row = {"gpus": gpus, "microseconds": round(1e6 * seconds, 2), "speed_up": round(per_colour / rate / seconds, 3)}
        if gpus in seen:
            row["measured"] = statistics.median(seen[gpus]["microseconds"])
            row["error"] = round(row["microseconds"] / row["measured"] - 1, 4)
        rows.append(row)
    found = {**about(("peergrid", "numpy")), "machine": MACHINE, "variables": alone["variables"], "rate": rate}
    print(json.dumps(rows, indent=1))
    print(save("spins_forecast", {**found, "rows": rows}))


if __name__ == "__main__":
    main()
