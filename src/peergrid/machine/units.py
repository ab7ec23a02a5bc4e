"""Numbers for people: sizes in binary units, rates and times with three significant digits."""

from __future__ import annotations

import math

BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
PREFIXED = ("B/s", "s", "Hz", "FLOP/s", "atomics/s", "nonzeros/s")


def size(count: float) -> str:
    """2097152 → '2 MiB'."""
    power = min(int(math.log2(count) // 10), len(BINARY) - 1) if count >= 1 else 0
    return f"{digits(count / 1024**power)} {BINARY[power]}"


def quantity(value: float, unit: str) -> str:
    """(3.96e11, 'B/s') → '396 GB/s'; a unit without prefixes ('cycles') keeps its plain number."""
    if not math.isfinite(value):
        return f"– {unit}"
    if unit not in PREFIXED:
        return f"{digits(value)} {unit}".rstrip()
    factor, prefix = scale(value)
    return f"{digits(value / factor)} {prefixed(prefix, unit)}"


def prefixed(prefix: str, unit: str) -> str:
    """('G', 'B/s') → 'GB/s'; units that are words stand apart from their prefix: 'G atomics/s'."""
    return f"{prefix} {unit}" if prefix and unit.split("/")[0].islower() and len(unit) > 4 else prefix + unit


def count(value: float) -> str:
    """81920000 → '81 920 000'; other numbers with three significant digits."""
    whole = math.isfinite(value) and value == round(value) and abs(value) >= 1000
    return f"{round(value):,}".replace(",", "\u202f") if whole else digits(value)


def scale(value: float) -> tuple[float, str]:
    """The factor and the prefix that leave a value between 1 and 1000."""
    for factor, prefix in PREFIXES:
        if abs(value) >= factor:
            return factor, prefix
    return (1.0, "") if value == 0 else PREFIXES[-1]


def digits(value: float, full: bool = False) -> str:
    """Three significant digits without an exponent: 1234.5 → '1234', 0.01234 → '0.0123', 2.0 → '2' ('2.00' in full)."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    places = max(0, 2 - math.floor(math.log10(abs(value))))
    text = f"{value:.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text and not full else text
