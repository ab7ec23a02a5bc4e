"""Parts of the machine that run one job at a time each: a GPU, GPUs joined by NVLink, or some processors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from peergrid.errors import UsageError
from peergrid.machine import gpus, nvml
from peergrid.machine.driver import find
from peergrid.machine.host import usable_cpus
from peergrid.machine.model import Gpu, Link

MOST_SLOTS = 4096
VISIBLE = "CUDA_VISIBLE_DEVICES"
GROUPS = re.compile(r"cuda:(\d{1,4}(?:\+\d{1,4})*(?:,\d{1,4}(?:\+\d{1,4})*)*)")


@dataclass(frozen=True)
class JobSlot:
    """The place of one job at a time; gpus: by the numbers of this process, none for a share of the processors; cpus:
    the logical processors that the job may use.
    """

    name: str
    gpus: tuple[int, ...]
    cpus: tuple[int, ...]

    def environment(self, current: Mapping[str, str]) -> dict[str, str]:
        """The environment of its jobs: they see the GPUs of the slot alone, numbered from 0, or none."""
        visible = [text.strip() for text in current.get(VISIBLE, "").split(",") if text.strip()]
        shown = ",".join(visible[gpu] if gpu < len(visible) else str(gpu) for gpu in self.gpus)
        return {**current, VISIBLE: shown}


def parse_slots(spec: str) -> tuple[JobSlot, ...]:
    """The job slots that a specification names: `auto`, `cpu:4`, `cuda` (each GPU), `cuda:0+1,2+3` (groups), or
    `cuda:nvlink` (groups of GPUs that all have an NVLink to each other).

    Raises UsageError for one that is not valid, or names GPUs that do not exist.
    """
    cpus = usable_cpus()
    if found := re.fullmatch(r"cpu(?::(\d{1,9}))?", spec):
        return cpu_slots(_count(found[1], len(cpus)), cpus)
    if spec not in ("auto", "cuda", "cuda:nvlink") and not GROUPS.fullmatch(spec):
        got = spec if len(spec) <= 60 else f"{spec[:57]}..."
        raise UsageError(f"Job slots are 'auto', 'cpu:4', 'cuda', 'cuda:0+1,2+3' or 'cuda:nvlink', got '{got}'.")
    there, links = _present()
    if not there and spec == "auto":
        return cpu_slots(len(cpus), cpus)
    if not there:
        raise UsageError("No CUDA device was found here; use --slots cpu:N, or see 'peergrid machine' for the reason.")
    return gpu_slots(_groups(spec, there, links), there, cpus)


def cpu_slots(count: int, cpus: Sequence[int]) -> tuple[JobSlot, ...]:
    """`count` slots, each with its share of the processors; slots share a processor if these are fewer."""
    return tuple(JobSlot(f"cpu:{k}", (), share(cpus, k, count)) for k in range(count))


def gpu_slots(groups: Sequence[tuple[int, ...]], there: Sequence[Gpu], cpus: Sequence[int]) -> tuple[JobSlot, ...]:
    """A slot for each group of GPUs, with its share of the processors that are near its first GPU, as far as known.

    Raises UsageError for a GPU that does not exist or is named twice.
    """
    by_number = {gpu.index: gpu for gpu in there}
    named = list(chain.from_iterable(groups))
    if strange := [gpu for gpu in named if gpu not in by_number]:
        raise UsageError(f"This machine has the CUDA devices {', '.join(map(str, by_number))}, got {strange[0]}.")
    if len(set(named)) < len(named):
        twice = next(gpu for gpu in named if named.count(gpu) > 1)
        raise UsageError(f"Each GPU runs one job at a time, but GPU {twice} stands in --slots more than once.")
    near = [tuple(c for c in by_number[group[0]].near_cpus if c in cpus) or tuple(cpus) for group in groups]
    shares = [share(near[k], near[:k].count(near[k]), near.count(near[k])) for k in range(len(groups))]
    return tuple(
        JobSlot("cuda:" + "+".join(map(str, group)), tuple(group), own)
        for group, own in zip(groups, shares, strict=True)
    )


def share(cpus: Sequence[int], part: int, parts: int) -> tuple[int, ...]:
    """The processors of part `part` of `parts`, in their order; at least one."""
    first, last = part * len(cpus) // parts, (part + 1) * len(cpus) // parts
    return tuple(cpus[first:last]) or (cpus[part % len(cpus)],)


def nvlink_groups(numbers: Sequence[int], links: Sequence[Link]) -> tuple[tuple[int, ...], ...]:
    """Groups of GPUs that all have an NVLink to each other, or to a switch; a GPU without links is a group itself."""
    switched = {link.source for link in links if link.target is None}
    direct = {(link.source, link.target) for link in links}
    groups: list[list[int]] = []
    for number in numbers:
        for group in groups:
            if all({number, other} <= switched or (number, other) in direct for other in group):
                group.append(number)
                break
        else:
            groups.append([number])
    return tuple(map(tuple, groups))


def _groups(spec: str, there: Sequence[Gpu], links: Sequence[Link]) -> tuple[tuple[int, ...], ...]:
    numbers = [gpu.index for gpu in there]
    if spec == "cuda:nvlink":
        return nvlink_groups(numbers, links)
    if found := GROUPS.fullmatch(spec):
        return tuple(tuple(map(int, group.split("+"))) for group in found[1].split(","))
    return tuple((number,) for number in numbers)


def _present() -> tuple[tuple[Gpu, ...], tuple[Link, ...]]:
    """The working GPUs and their NVLinks; creates no context on them."""
    driver, _ = find()
    with nvml.session() as (management, _):
        found, _ = gpus.readable(driver, management)
        return found, gpus.links(management, found)


def _count(text: str | None, most: int) -> int:
    count = most if text is None else int(text)
    if not 1 <= count <= MOST_SLOTS:
        raise UsageError(f"'cpu:N' takes 1 to {MOST_SLOTS} job slots, got {count}.")
    return count
