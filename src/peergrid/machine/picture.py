"""The topology as an SVG picture: NUMA nodes above, GPUs below them, NVLink at the bottom."""

from __future__ import annotations

from html import escape

from peergrid.machine import units
from peergrid.machine.host import as_list
from peergrid.machine.model import Gpu, Link, Machine, NumaNode

BOX, GAP, HIGH = 132, 12, 64
STYLE = """
.pg-box{fill:none;stroke:currentColor;stroke-width:1.2}
.pg-gpu{fill:#76b90022;stroke:#5a8f00;stroke-width:1.4}
.pg-pcie{stroke:currentColor;stroke-width:1.2;stroke-dasharray:4 3;fill:none}
.pg-link{stroke:#5a8f00;fill:none}
.pg-text{font:12px system-ui,sans-serif;fill:currentColor;text-anchor:middle}
.pg-small{font-size:10px}
.pg-strong{font-weight:600}
.pg-side{text-anchor:start}
"""


def picture(machine: Machine) -> str:
    """An SVG document of the machine; inside a page it takes the page's text colour."""
    columns = [_column(machine, node) for node in machine.nodes]
    widths = [max(len(gpus), 2) * (BOX + GAP) + GAP for gpus in columns]
    width, parts, left = sum(widths) + GAP * (len(widths) + 1), list[str](), GAP
    places: dict[int, float] = {}
    for node, gpus, wide in zip(machine.nodes, columns, widths, strict=True):
        parts += _node(node, machine, left, wide)
        for at, gpu in enumerate(gpus):
            places[gpu.index] = left + GAP + at * (BOX + GAP) + BOX / 2
            parts += _gpu(gpu, places[gpu.index])
        left += wide + GAP
    parts += _links(machine.links, places, width)
    return _document(parts, width, _height(machine), escape(machine.label))


def _column(machine: Machine, node: NumaNode) -> list[Gpu]:
    first = machine.nodes[0].index
    return [gpu for gpu in machine.gpus if (first if gpu.numa is None else gpu.numa) == node.index]


def _height(machine: Machine) -> float:
    if not machine.gpus:
        return GAP * 2 + HIGH + 40
    direct = [link for link in machine.links if link.target is not None]
    below = 130 if direct else 100 if machine.links else 20
    return GAP * 2 + HIGH * 2 + 60 + below


def _document(parts: list[str], width: float, height: float, title: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'width="{width:.0f}" style="max-width:100%;height:auto">'
        f"<title>{title}</title><style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


def _node(node: NumaNode, machine: Machine, left: float, wide: float) -> list[str]:
    middle = left + wide / 2
    return [
        _box(left, GAP, wide, HIGH, "pg-box"),
        _say(middle, GAP + 20, f"NUMA node {node.index}: {units.size(node.memory)}", "pg-strong"),
        _say(middle, GAP + 37, machine.cpu.model),
        _say(middle, GAP + 53, f"CPUs {as_list(node.cpus) or 'none'}", "pg-small"),
        *([] if machine.gpus else [_say(middle, GAP + HIGH + 24, "no GPU")]),
    ]


def _gpu(gpu: Gpu, middle: float) -> list[str]:
    top = GAP + HIGH + 60
    rate = "PCIe" if gpu.pcie is None else f"PCIe {gpu.pcie.generation}×{gpu.pcie.lanes}"
    return [
        f'<path class="pg-pcie" d="M{middle:.0f} {GAP + HIGH}V{top}"/>',
        f'<text class="pg-text pg-small pg-side" x="{middle + 6:.0f}" y="{top - 26:.0f}">{escape(rate)}</text>',
        _box(middle - BOX / 2, top, BOX, HIGH, "pg-gpu"),
        _say(middle, top + 19, f"GPU {gpu.index}", "pg-strong"),
        _say(middle, top + 36, gpu.name.removeprefix("NVIDIA ")),
        _say(middle, top + 52, f"{units.size(gpu.memory)}, {gpu.pci}", "pg-small"),
    ]


def _links(links: tuple[Link, ...], places: dict[int, float], width: float) -> list[str]:
    floor = GAP + HIGH * 2 + 60
    switched = [link for link in links if link.target is None and link.source in places]
    parts = [part for link in links if link.target is not None for part in _arc(link, places, floor)]
    if switched:
        parts.append(_box(GAP, floor + 40, width - 2 * GAP, 42, "pg-gpu"))
        parts.append(_say(width / 2, floor + 58, "NVLink switch", "pg-strong"))
        parts.append(_say(width / 2, floor + 74, _lines(switched)))
    parts += [
        f'<path class="pg-link" stroke-width="4" d="M{places[link.source]:.0f} {floor}v40"/>' for link in switched
    ]
    return parts


def _lines(links: list[Link]) -> str:
    """The connection of the GPUs to the switch in words; differences are shown, so that a slow link is seen."""
    kinds = {(link.count, link.generation, link.rate) for link in links}
    if len(kinds) > 1:
        return "different line counts, from " + " to ".join(f"{n[0]}" for n in (min(kinds), max(kinds)))
    count, generation, rate = kinds.pop()
    return f"{count} × generation {generation} per GPU, {units.quantity(rate, 'B/s')} each way"


def _arc(link: Link, places: dict[int, float], floor: float) -> list[str]:
    if link.target is None or link.target <= link.source or link.target not in places:
        return []
    a, b = places[link.source], places[link.target]
    depth = 30 + 50 * min(1.0, abs(b - a) / 900)
    label = f"{link.count} × {units.quantity(link.rate / max(link.count, 1), 'B/s')}"
    return [
        f'<path class="pg-link" stroke-width="{1 + link.count / 2:.1f}" '
        f'd="M{a:.0f} {floor}C{a:.0f} {floor + depth:.0f} {b:.0f} {floor + depth:.0f} {b:.0f} {floor}"/>',
        _say((a + b) / 2, floor + 0.75 * depth + 14, label, "pg-small"),
    ]


def _box(left: float, top: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}" rx="6"/>'


def _say(middle: float, base: float, words: str, kind: str = "") -> str:
    return f'<text class="pg-text {kind}" x="{middle:.0f}" y="{base:.0f}">{escape(words)}</text>'
