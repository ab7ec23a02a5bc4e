"""The page: key figures, topology, then one section per group with its pictures, tables and consequences."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from peergrid.machine import Gpu, Machine, Setting, picture
from peergrid.machine.host import as_list
from peergrid.machine.text import binding
from peergrid.machine.units import quantity, size
from peergrid.probe.compare import Shortfall, flags
from peergrid.probe.profile import Outcome, Profile
from peergrid.probe.show import place
from peergrid.report.beside import beside
from peergrid.report.draw import table
from peergrid.report.figures import figure
from peergrid.report.follows import follows
from peergrid.report.glance import glance
from peergrid.report.style import STYLE
from peergrid.report.views import GROUPS, VIEWS, Table, View

READING = (
    "± is half the width of the interval in which the median of another run is expected. Both axes of a curve are "
    "logarithmic. A heat map is the darker the larger a number; a pointer on it shows its ±."
)


def page(profile: Profile) -> str:
    """The whole HTML document; it loads nothing and runs no script."""
    title = escape(f"Machine profile: {profile.machine.label}")
    body = "".join([_head(profile), _topology(profile), *(_group(profile, group) for group in _groups(profile))])
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<link rel="icon" href="data:,">'  # else a browser requests one, and the page would not be self-contained
        f"<style>{STYLE}</style></head><body>{body}</body></html>\n"
    )


def _groups(profile: Profile) -> list[str]:
    """The groups with numbers first; those of a profile with more experiments than this version knows at the end."""
    measured = {outcome.group for outcome in profile.probes if outcome.results}
    known = sorted(GROUPS, key=lambda group: group not in measured)
    return list(dict.fromkeys([*known, *(outcome.group for outcome in profile.probes)]))


def _anchor(group: str) -> str:
    return re.sub(r"[^0-9A-Za-z-]+", "-", group)


def _head(profile: Profile) -> str:
    links = "".join(f'<a href="#{_anchor(group)}">{escape(group)}</a> ' for group in _groups(profile))
    kind = "quick" if profile.quick else "full"
    software = profile.machine.software
    facts = ", ".join(
        f"{name} {value}"
        for name, value in (
            ("driver", software.driver),
            ("CUDA", software.cuda),
            ("Python", software.python),
            ("peergrid", profile.peergrid),
        )
        if value not in ("", "unknown")
    )
    measured = profile.created[:16].replace("T", " ")
    return (
        f"<header><h1>{escape(profile.machine.label)}</h1>"
        f'<p class="faint">A {kind} profile of {escape(measured)} UTC; {escape(facts)}.</p>'
        f"{_notes(profile)}<nav>{links}</nav>{_flags(flags(profile))}{_broken(profile)}{_glance(profile)}"
        f'<p class="method">{READING}</p></header>'
    )


def _notes(profile: Profile) -> str:
    return "".join(f'<p class="slow">Added later: {escape(note)}</p>' for note in profile.notes)


def _flags(found: Sequence[Shortfall]) -> str:
    """One line per expected value: the count of numbers that miss it, and the worst of them."""
    alike: dict[tuple[str, float, str], list[Shortfall]] = {}
    for item in found:
        alike.setdefault((item.quantity, item.expected, item.source), []).append(item)
    return "".join(_flag(items) for items in alike.values())


def _flag(items: Sequence[Shortfall]) -> str:
    worst = max(items, key=lambda item: abs(item.found - item.expected))
    many = f"{len(items)} numbers, at worst " if len(items) > 1 else ""
    return (
        f'<p class="slow">Slow: {escape(worst.quantity.replace("_", " "))}: {many}'
        f"{quantity(worst.found, worst.unit)} at {escape(place(worst.at))}; expected are about "
        f"{quantity(worst.expected, worst.unit)} ({escape(worst.source)}).</p>"
    )


def _broken(profile: Profile) -> str:
    """The measurements that failed."""
    return "".join(
        f'<p class="slow">Not measured: {escape(item.name)} ({escape(item.status)}: {escape(item.reason)}).</p>'
        for item in profile.probes
        if item.status in ("failed", "timeout")
    )


def _glance(profile: Profile) -> str:
    keys = "".join(
        f"<div><dt>{escape(key.what)}</dt><dd>{escape(key.number)}<small>{escape(key.note)}</small></dd></div>"
        for key in glance(profile)
    )
    return f'<dl class="glance">{keys}</dl>' if keys else ""


def _topology(profile: Profile) -> str:
    machine = profile.machine
    costly = [item for item in machine.settings if item.cost]
    free = [item for item in machine.settings if not item.cost]
    return (
        f'<section><h2>The machine</h2><figure class="wide">{picture(machine)}</figure>'
        f"{_processors(machine)}{_gpus(machine)}"
        + _list("Advice for buffers and threads", _advice(machine))
        + _list("Settings in force that cost performance", [_setting(item, item.cost) for item in costly])
        + _list("Other settings in force", [_setting(item, item.meaning) for item in free])
        + _list("Not available, and why", [f"{item.what}: {item.why}" for item in machine.missing])
        + "</section>"
    )


def _list(title: str, items: Sequence[str]) -> str:
    """Lines under a title; nothing where there are none."""
    lines = "".join(f"<li>{escape(item)}</li>" for item in items)
    return f"<p>{escape(title)}:</p><ul>{lines}</ul>" if lines else ""


def _setting(item: Setting, words: str) -> str:
    return f"{item.name}={item.value}: {words}"


def _advice(machine: Machine) -> list[str]:
    """Advice on kinds of memory for the GPUs and on processors near them; GPUs with the same advice share a line."""
    found: dict[str, list[int]] = {}
    for gpu in machine.gpus:
        for words in (
            f"buffers shared with the host: {gpu.advice}",
            gpu.flush,
            binding(gpu, machine.cpu.usable),
        ):
            found.setdefault(words, []).append(gpu.index)
    return [f"GPU {as_list(tuple(numbers))}: {words}" for words, numbers in found.items()]


def _processors(machine: Machine) -> str:
    """The host in one line: what its cores are, how many this process may use, and their caches for data."""
    cpu = machine.cpu
    caches = [cache for cache in cpu.caches if cache.kind != "Instruction"]
    head = ("host", "cores", "threads", "may use", "memory", *(f"L{cache.level}" for cache in caches))
    sizes = (f"{cache.instances} × {size(cache.size)}" for cache in caches)
    counts = str(cpu.cores), str(cpu.threads), as_list(cpu.usable), size(machine.memory)
    return table(head, [(cpu.model, *counts, *sizes)])


def _gpus(machine: Machine) -> str:
    """The GPUs, one line per kind, and who reaches whom in one sentence."""
    if not machine.gpus:
        return ""
    kinds: dict[tuple[str, ...], list[int]] = {}
    for gpu in machine.gpus:
        kinds.setdefault(_facts(gpu), []).append(gpu.index)
    head = ("GPU", "name", "capability", "processors", "memory", "rate (theory)", "L2", "near CPUs")
    return table(head, [(as_list(tuple(numbers)), *facts) for facts, numbers in kinds.items()]) + _reach(machine)


def _facts(gpu: Gpu) -> tuple[str, ...]:
    rate = quantity(gpu.memory_rate, "B/s") if gpu.memory_rate else "unknown"
    near = as_list(gpu.near_cpus) or "unknown"
    facts = gpu.name, gpu.capability, str(gpu.multiprocessors), size(gpu.memory), rate, size(gpu.l2), near
    return tuple(facts)


def _reach(machine: Machine) -> str:
    pairs = len(machine.peers)
    if not pairs:
        return ""
    good = sum(1 for peer in machine.peers if peer.access and peer.arrives)
    atomic = sum(1 for peer in machine.peers if peer.atomics)
    return (
        f"<p>Peer access works between {good} of {pairs} ordered pairs (a copy was read back), with remote atomics "
        f"between {atomic}.</p>"
    )


def _group(profile: Profile, group: str) -> str:
    outcomes = [outcome for outcome in profile.probes if outcome.group == group]
    text = f'<p class="follows">{escape(follows(profile, group))}</p>' if group in GROUPS else ""
    parts = "".join(f'<div class="part">{_outcome(outcome)}</div>' for outcome in outcomes if outcome.results)
    return (
        f'<section id="{_anchor(group)}"><h2>{escape(group.capitalize())}</h2>{text}<div class="parts">{parts}</div>'
        f"{_without([outcome for outcome in outcomes if not outcome.results])}{beside(profile, group)}</section>"
    )


def _without(outcomes: Sequence[Outcome]) -> str:
    """The experiments that gave no number, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for outcome in outcomes:
        words = f"{outcome.status.capitalize()}: {outcome.reason}" if outcome.reason else outcome.status.capitalize()
        by_reason.setdefault(words, []).append(outcome.title)
    return "".join(_list(reason, titles) for reason, titles in by_reason.items())


def _outcome(outcome: Outcome) -> str:
    head = f"<h3>{escape(outcome.title)}</h3>"
    if outcome.reason:
        why = "Not given" if outcome.status == "done" else outcome.status.capitalize()
        head += f"<p>{escape(why)}: {escape(outcome.reason)}.</p>"
    known = [view for view in VIEWS if any(item.quantity == view.quantity for item in outcome.results)]
    shown = {view.quantity for view in known}
    rest = list(dict.fromkeys(item.quantity for item in outcome.results if item.quantity not in shown))
    views: list[View] = [*known, *(Table(name, name.replace("_", " ")) for name in rest)]
    cards = "".join(figure(view, [r for r in outcome.results if r.quantity == view.quantity]) for view in views)
    body = f'<div class="cards">{cards}</div>' if cards else ""
    return f'{head}{body}<p class="method">{escape(outcome.method)}</p>'
