"""The placement of a problem on devices: the ranks that share them, options, partition and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.grid import Index
from peergrid.grid.partition import Partition
from peergrid.resolve import layout_of, norm_in_passes, partition_of, resolve_options, with_supported_block
from peergrid.runtime.devices import Devices, devices_of
from peergrid.runtime.ranks.launcher import abort_on_error, joins, own_devices
from peergrid.runtime.ranks.ranks import Communicator, Ranks, devices_of_all
from peergrid.schedule import Layout, Options, ResolvedOptions
from peergrid.stencil import Problem
from peergrid.stencil.identity import identity
from peergrid.version import VERSION


@dataclass(frozen=True)
class Placement:
    """A problem on devices, as a run computes it.

    devices: of all ranks; resolved: the options as requested or chosen; options: the same with the steps per pass that
    the devices support; layout: the partition, and the memory of each device; norm: the field whose norm the kernels
    compute in each pass (None: none); ranks: the processes that share the devices (None: one).
    """

    devices: Devices
    resolved: ResolvedOptions
    options: Options
    layout: Layout
    norm: str | None = None
    ranks: Ranks | None = None

    @classmethod
    def under(
        cls,
        options: Options | ResolvedOptions,
        problem: Problem,
        devices: Devices,
        split: Index | Partition | None = None,
        norm: str | None = None,
        ranks: Ranks | None = None,
    ) -> Placement:
        """The placement under given options; split: None for that of the options, or the default one.

        Raises UsageError if the split has another number of parts than there are devices.
        """
        resolved = options if isinstance(options, ResolvedOptions) else ResolvedOptions(options)
        supported = with_supported_block(resolved.options, devices, problem, norm)
        cut = partition_of(problem, devices, supported, resolved.split if split is None else split, norm)
        return cls(devices, resolved, supported, layout_of(problem, devices, supported, cut, norm), norm, ranks)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on options that were chosen by trial, and on passes that are shorter than requested."""
        if self.options.block is None or self.resolved.options.block is not None:
            return self.resolved.notes
        most = "one step" if self.options.block == 1 else f"{self.options.block} steps"
        shorter = f"A pass makes at most {most} of this problem on these devices, not {self.options.depth}."
        return (*self.resolved.notes, shorter)


def identity_of(problem: Problem, norm: str | None) -> Mapping[str, str]:
    """Digests of the parts of a run that decide its results, by the parts in words."""
    return {**identity(problem), "the norm asked for": norm or ""}


def place(
    problem: Problem,
    steps: int,
    devices: str | Devices,
    options: Options | ResolvedOptions | None,
    *,
    split: Index | Partition | None,
    norm: str | None,
    cache: Path | None,
    comm: Communicator | None,
) -> Placement:
    """The placement of a run of `steps` steps; arguments as in `Simulation`. Options that are None are resolved."""
    if comm is None or not joins(comm):
        placed, ranks = devices_of(devices), None
    else:
        abort_on_error(comm)
        own = own_devices(devices if isinstance(devices, Devices) else str(devices), comm)
        placed, ranks = devices_of_all(comm, own)
        ranks.same("the version", VERSION)
        ranks.same("the problem", tuple(sorted(identity_of(problem, norm).items())))
        ranks.same("a count of steps or an option", f"{steps} {options} {split}")
    if norm is not None and not norm_in_passes(problem, norm):
        problem, norm = problem.with_norm(norm), None
    resolve = partial(resolve_options, placed, problem, steps, split=split, cache=cache, norm=norm)
    resolved = options or (resolve() if ranks is None else ranks.decided(resolve))
    return Placement.under(resolved, problem, placed, split, norm, _by_route(ranks, resolved, placed))


def _by_route(ranks: Ranks | None, resolved: Options | ResolvedOptions, devices: Devices) -> Ranks | None:
    """The ranks with the route of the options between them. Raises UsageError for one that they cannot use."""
    options = resolved.options if isinstance(resolved, ResolvedOptions) else resolved
    if ranks is not None:
        return ranks.by(options.route, devices.kind)
    if options.within != options.route:
        raise UsageError(
            f"The route '{options.route}' needs several ranks, got one process; start it with mpiexec, or leave the "
            "route out."
        )
    return None
