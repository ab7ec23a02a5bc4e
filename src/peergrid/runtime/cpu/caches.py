"""The cache of a core that a kernel can use."""

from __future__ import annotations

from pathlib import Path

USUAL = 1 << 20  # bytes, where the system does not say
SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def second_level(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> int:
    """Bytes of the second-level cache of one core."""
    for index in sorted(root.glob("index[0-9]*")):
        try:
            level, size = (index / "level").read_text().strip(), (index / "size").read_text().strip()
        except OSError:
            continue
        if level == "2" and size[:-1].isdigit() and size[-1] in SUFFIX:
            return int(size[:-1]) * SUFFIX[size[-1]]
    return USUAL
