"""The processor's caches, as a kernel has to know them."""

from __future__ import annotations

from pathlib import Path

from peergrid.codegen.cpu.tiles import Caches

USUAL = Caches(own=1 << 20, last=32 << 20)  # where the system does not say
SUFFIX = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def caches(root: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> Caches:
    """The caches of the first core."""
    sizes = dict(filter(None, (_size(index) for index in sorted(root.glob("index[0-9]*")))))
    return Caches(sizes.get(2, USUAL.own), sizes.get(3, USUAL.last))


def _size(index: Path) -> tuple[int, int] | None:
    """Level and bytes of a cache that holds data; None where they cannot be read."""
    try:
        level, kind, size = ((index / name).read_text().strip() for name in ("level", "type", "size"))
    except OSError:
        return None
    if kind == "Instruction" or not level.isdigit() or not size[:-1].isdigit() or size[-1] not in SUFFIX:
        return None
    return int(level), int(size[:-1]) * SUFFIX[size[-1]]
