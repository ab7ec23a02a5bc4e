"""Images: the four ways to change their pixels."""

from __future__ import annotations

from figures.records import load, table, when


def images() -> str:
    found = load("h200-x2-images")
    copied = found["copy_gbytes_per_second"]
    rows = [
        [
            row["way"],
            f"`{row['formula']}`",
            row["dtype"],
            f"{row['gbytes_per_second']:,.0f}",
            f"{row['gbytes_per_second'] / copied / (2 if row['way'].startswith('2 GPU') else 1):.0%}",
            f"{row['to_devices']:.2f} / {row['from_devices']:.2f}" if "to_devices" in row else "–",
        ]
        for row in found["rows"]
    ]
    head = ["way", "formula", "pixels", "GB/s", "of a copy on as many GPUs", "to / from the host, s"]
    return "\n".join(
        [
            f"An image of 1 GiB, bytes read and written ({when(found)}); a copy: {copied:,.0f} GB/s.",
            "",
            *table(head, rows),
        ]
    )
