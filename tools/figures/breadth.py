"""On GPUs: problems of many kinds, at one step per pass and at several, beside one pass at the speed of a copy."""

from __future__ import annotations

import json
from pathlib import Path

from figures.records import RESULTS, Found, table, when

NAMES = {
    "acoustic": "acoustic wave, 8th order, variable velocity",
    "acoustic_prev": "the same, as one field and its previous values",
    "tti": "TTI wave, 8th order, two stages",
    "tti_one_stage": "the same as one stage of products of derivatives",
    "box27": "mean of 27 points",
    "heat": "heat, 7 points",
    "yee_periodic": "Yee, six fields, periodic",
    "yee": "Yee, one coefficient field",
    "maxwell": "Yee with losses and CPML on all sides, a source, receivers",
    "maxwell_open": "the same without CPML",
    "three points": "three points",
    "Gray-Scott": "Gray-Scott, periodic",
    "D2Q9": "lattice Boltzmann D2Q9, periodic",
}


def breadth(folder: Path | None = None) -> str:
    """A table of all records, the newest row of a kind; nothing where there is none."""
    found = [json.loads(path.read_text()) for path in sorted((folder or RESULTS).glob("*-breadth.json"))]
    found.sort(key=lambda record: str(record["about"]["date"]))
    kinds = {(row["problem"], row["devices"], row["asked"]): row for record in found for row in _measured(record)}
    if not kinds:
        return ""
    devices = sorted({row["devices"] for row in kinds.values()}, key=len)
    names = dict.fromkeys(row["problem"] for row in kinds.values())
    several = devices[1] if len(devices) > 1 else None
    cells = [_cells(name, list(kinds.values()), devices[0], several) for name in names]
    heads = ["problem", "bytes", "one step per pass", "of one pass", "what suits", "two GPUs over twice one"]
    copies = " and ".join(dict.fromkeys(f"{record['copy_bytes_per_s'] / 1e9:,.0f}" for record in found))
    return "\n".join(
        [
            f"**Problems of many kinds**, GCells/s, float32, on one GPU ({'; '.join(map(when, found))}; a copy moves "
            f"{copies} GB/s in the same runs). `bytes`: the fewest bytes per cell and "
            "step with one step per pass; `of one pass`: the rate over the rate at which a copy moves that many bytes; "
            "`what suits`: the options that peergrid chooses.",
            "",
            *table(heads, cells),
        ]
    )


def _measured(record: Found) -> list[Found]:
    return [row for row in record["rows"] if "error" not in row]


def _cells(name: str, rows: list[Found], single: str, several: str | None) -> list[str]:
    kinds = {(row["devices"], row["asked"]): row for row in rows if row["problem"] == name}
    one, best = kinds.get((single, "one step per pass")), kinds.get((single, "what suits"))
    more = kinds.get((several, "what suits")) if several else None
    first = one or best
    assert first is not None
    kind, _, size = name.rpartition(" ")
    share = f"{more['gcells_per_s'] / 2 / best['gcells_per_s']:.1%}" if more and best else ""
    return [
        f"{NAMES.get(kind, kind)}, {size}",
        str(first["bytes"]),
        f"{one['gcells_per_s']:,.1f}" if one else "",
        f"{one['of_one_pass']:.0%}" if one else "",
        f"{best['gcells_per_s']:,.1f}" if best else "",
        share,
    ]
