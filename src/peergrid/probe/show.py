"""A profile, its differences from another, and its flags, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peergrid.machine.units import quantity
from peergrid.probe.compare import Difference, Shortfall
from peergrid.probe.experiment import Measurement, Probe, Scalar
from peergrid.probe.profile import Outcome, Profile


def profile(found: Profile) -> str:
    """One block per experiment, one line per number; then the experiments without numbers, grouped by reason."""
    without: dict[str, list[str]] = {}
    for outcome in found.probes:
        if not outcome.results:
            without.setdefault(f"{outcome.status}: {outcome.reason}", []).append(outcome.name)
    reasons = [f"\n{reason}\n  {', '.join(names)}" for reason, names in without.items()]
    measured = [line for outcome in found.probes if outcome.results for line in _outcome(outcome)]
    return "\n".join([found.machine.label, *(f"Note: {note}" for note in found.notes), *measured, *reasons])


def catalogue(probes: Sequence[Probe]) -> str:
    """Names, groups and titles of the experiments."""
    wide = max((len(probe.name) for probe in probes), default=0)
    lines: list[str] = []
    for group in dict.fromkeys(probe.group for probe in probes):
        lines.append(group)
        lines += [f"  {probe.name:<{wide}}  {probe.title}" for probe in probes if probe.group == group]
    return "\n".join(lines)


def differences(found: Sequence[Difference], compared: int, other: str = "") -> str:
    """The differences that exceed the noise; other: the machine of the other profile, if it is another one."""
    head = f"The other profile is of another machine, {other}.\n" if other else ""
    return head + _differences(found, compared)


def _differences(found: Sequence[Difference], compared: int) -> str:
    if not found:
        return f"{compared} numbers compared: none differs by more than the noise."
    lines = [
        f"  {item.quantity} {place(item.at)}: {quantity(item.before, item.unit)} → "
        f"{quantity(item.now, item.unit)} (× {item.ratio:.2f})"
        for item in found
    ]
    return "\n".join([f"{compared} numbers compared, {len(found)} differ by more than the noise:", *lines])


def flags(found: Sequence[Shortfall]) -> str:
    """The values clearly worse than known for this hardware."""
    return "\n".join(
        f"SLOW {item.quantity} {place(item.at)}: {quantity(item.found, item.unit)}, expected about "
        f"{quantity(item.expected, item.unit)} ({item.source})"
        for item in found
    )


def place(at: Mapping[str, Scalar]) -> str:
    """Coordinates in words: 'source 0, target 1'."""
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in at.items())


def _outcome(found: Outcome) -> list[str]:
    head = f"\n{found.name}: {found.title}"
    if found.reason:
        head += f"\n  {'not given' if found.status == 'done' else found.status}: {found.reason}"
    return [head, *(_result(item) for item in found.results)]


def _result(item: Measurement) -> str:
    where = place(item.at)
    error = f"± {quantity(item.uncertainty, item.unit)}"
    return f"  {item.quantity}{' ' + where if where else ''}: {quantity(item.median, item.unit)} {error}"
