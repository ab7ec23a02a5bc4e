"""The machine: processors, memory, GPUs, links. `discover()` reads it, `text` and `picture` show it."""

from peergrid.machine.codec import decode, encode
from peergrid.machine.discover import discover
from peergrid.machine.model import (
    Cache,
    Cpu,
    Gpu,
    Link,
    Machine,
    Missing,
    NumaNode,
    PcieLink,
    Peer,
    Setting,
    Software,
)
from peergrid.machine.picture import picture
from peergrid.machine.text import text

__all__ = [
    "Cache",
    "Cpu",
    "Gpu",
    "Link",
    "Machine",
    "Missing",
    "NumaNode",
    "PcieLink",
    "Peer",
    "Setting",
    "Software",
    "decode",
    "discover",
    "encode",
    "picture",
    "text",
]
