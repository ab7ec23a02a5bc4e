"""Compare our figures with those of another program, from several processes of each, alternately.

Some figures vary by a tenth from process to process for no visible reason; programs are compared by medians over their
processes.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.machine import decode
from peergrid.probe.experiment import Scalar
from peergrid.probe.profile import Profile

TIMEOUT = 60.0  # seconds for one process of the program


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as the other program prints it: quantity, coordinates and median as in a profile."""

    quantity: str
    at: dict[str, Scalar]
    median: float


@dataclass(frozen=True, slots=True)
class Beside:
    """One number of the other program beside ours.

    Attributes:
        quantity: its name.
        at: its coordinates.
        median: of the program's processes.
        processes: what each of the program's processes gave.
        ours: median of our processes; None if we do not measure it.
        our_processes: what each of ours gave.
        off: the share by which ours is larger.
    """

    quantity: str
    at: dict[str, Scalar]
    median: float
    processes: tuple[float, ...]
    ours: float | None
    our_processes: tuple[float, ...]
    off: float | None


def figures(program: Path, names: Sequence[str]) -> tuple[Figure, ...]:
    """The figures that the program prints for the experiments of these names.

    Raises:
        UsageError: it does not run, fails, or prints no JSON list of figures.
    """
    try:
        ended = subprocess.run([program.absolute(), *names], capture_output=True, encoding="utf-8", timeout=TIMEOUT)
        if ended.returncode:
            raise ValueError(f"it ended with code {ended.returncode}: {' '.join(ended.stderr.split())}")
        return decode(tuple[Figure, ...], json.loads(ended.stdout), "what it printed")
    except (OSError, subprocess.SubprocessError, ValueError, UsageError) as error:
        raise UsageError(
            f"'{program}' should be a program that prints its figures, such as tools/reference_probe.cu, but {error}"
        ) from error


def shared(theirs: Sequence[Figure], profile: Profile) -> tuple[str, ...]:
    """The experiments of the profile whose numbers the program measures too."""
    found = [result for figure in theirs if (result := profile.find(figure.quantity, figure.at))]
    return tuple(outcome.name for outcome in profile.probes if any(item in outcome.results for item in found))


def beside(theirs: Sequence[Sequence[Figure]], ours: Sequence[Profile]) -> tuple[Beside, ...]:
    """Every figure of the program's first process with the same figure of its other processes and of ours."""
    return tuple(_beside(figure, theirs, ours) for figure in theirs[0]) if theirs else ()


def _beside(figure: Figure, theirs: Sequence[Sequence[Figure]], ours: Sequence[Profile]) -> Beside:
    like = (figure.quantity, figure.at)
    processes = tuple(item.median for run in theirs for item in run if (item.quantity, item.at) == like)
    mine = tuple(item.median for profile in ours if (item := profile.find(*like)))
    median, own = statistics.median(processes), statistics.median(mine) if mine else None
    return Beside(*like, median, processes, own, mine, own / median - 1 if own is not None and median else None)
