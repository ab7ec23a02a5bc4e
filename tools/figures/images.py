"""Images: the four ways to change their pixels."""

from __future__ import annotations

from figures.records import Found, load, table, when


def images() -> str:
    """The ways on one GPU, and those of two from an earlier machine."""
    one, two = load("h200-x1-images"), load("h200-x2-images")
    rows = [_row(one, row) for row in one["rows"]]
    rows += [_row(two, row) for row in two["rows"] if row["way"].startswith("2 GPU")]
    head = ["way", "formula", "pixels", "GB/s", "of a copy on as many GPUs", "to / from the host, s"]
    return "\n".join(
        [
            f"An image of 1 GiB, bytes read and written ({when(one)}; two GPUs: {when(two)}). A copy inside a GPU: "
            f"{one['copy_gbytes_per_second']:,.0f} and {two['copy_gbytes_per_second']:,.0f} GB/s.",
            "",
            *table(head, rows),
        ]
    )


def _row(found: Found, row: Found) -> list[str]:
    copied = found["copy_gbytes_per_second"] * (2 if row["way"].startswith("2 GPU") else 1)
    return [
        row["way"],
        f"`{row['formula']}`",
        row["dtype"],
        f"{row['gbytes_per_second']:,.0f}",
        f"{row['gbytes_per_second'] / copied:.0%}",
        f"{row['to_devices']:.2f} / {row['from_devices']:.2f}" if "to_devices" in row else "–",
    ]
