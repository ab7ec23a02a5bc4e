"""The forecast of a run on a machine: seconds of a step, exposed communication, memory, and a timeline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import chain

from peergrid.codegen.cuda.choose.balance import balanced
from peergrid.codegen.cuda.choose.steps import block_of, split_at
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.gpu_model import GpuModel
from peergrid.costs.families import FAMILIES, Family
from peergrid.costs.machine import Machine
from peergrid.grid import Box
from peergrid.grid.partition import Partition
from peergrid.predict.kernels import duration
from peergrid.predict.launches import Boxes, KernelWork, Site, launches, persistent, tiles2d
from peergrid.predict.operations import Given, State, Timed, compute
from peergrid.predict.simulation import simulate
from peergrid.runtime.cuda.lowering.kernels import FusedKernel, Kernels
from peergrid.runtime.cuda.lowering.passes import queued_passes
from peergrid.runtime.cuda.lowering.plan import KernelPlan
from peergrid.runtime.cuda.lowering.routes import Routes
from peergrid.runtime.cuda.memory.fields import Plan
from peergrid.schedule import Layout, Options, Schedule, layout, one_iteration
from peergrid.schedule.build import repeated
from peergrid.schedule.ops import Compute, Copy, hosts_of
from peergrid.schedule.passes import apply_passes
from peergrid.schedule.passes.ranks import in_groups, over_ranks
from peergrid.schedule.timeline import Span, exposed_communication, split
from peergrid.stencil import Problem


@dataclass(frozen=True)
class Forecast:
    """The forecast of a run.

    seconds_per_step; exposed: the share of it in which the busiest device computes nothing; host_seconds_per_step: of
    the busiest host thread; memory: bytes of arrays on each device; taken: bytes that its driver reports; boundary,
    interior, exchange: seconds of a step that these take on the busiest device, overlapped or not; fused: whether the
    exchange is fused into kernels; partition: the boxes of the devices.
    """

    options: Options
    seconds_per_step: float
    exposed: float
    host_seconds_per_step: float
    memory: tuple[int, ...]
    taken: tuple[int, ...]
    boundary: float
    interior: float
    exchange: float
    fused: bool
    partition: Partition = field(repr=False, compare=False)
    schedule: Schedule = field(repr=False, compare=False)
    spans: tuple[Span, ...] = field(repr=False, compare=False)


@dataclass(frozen=True)
class Forecaster:
    """Forecasts of one problem on a machine under any options; the launches of a pass are computed once.

    norm: a field, the norm of whose change is computed; split: the requested partition; typical: the devices whose
    boxes decide the choice of kernels (None: all); families: figures of kernels, by default the calibrated ones; model:
    of the GPU for which kernels are chosen (None: that of the machine).
    """

    problem: Problem
    machine: Machine
    devices: int
    norm: str | None = None
    split: Partition | None = None
    typical: tuple[int, ...] | None = None
    families: dict[str, Family] = field(default_factory=lambda: FAMILIES)
    model: GpuModel | None = None

    @cached_property
    def gpu(self) -> GpuModel:
        """The GPU for which kernels are chosen."""
        return self.model or GpuModel.of(self.machine)

    def options(self, options: Options) -> Options:
        """The options with a number of steps per pass that a kernel supports."""
        if options.block is not None:
            return options
        block = block_of(self.problem, options.depth, self.gpu, self.norm)
        return options if block == options.depth else replace(options, block=block)

    def plan(self, options: Options) -> Layout:
        """The memory of every device under the options, the same for all strategies."""
        key = options.depth, options.block
        if key not in self.layouts:
            cut = self.split or balanced(self.problem, self.devices, options.depth, self.norm, options.block)
            align = split_at(self.problem, cut, self.norm, self.gpu)
            self.layouts[key] = layout(self.problem, cut, options, align)
        return self.layouts[key]

    def forecast(self, options: Options, total_steps: int = 1000) -> Forecast:
        """The forecast under some options. Raises UsageError if no kernel makes their passes."""
        found = self.arrangement(options)
        given, steps = self.inputs(found), found.schedule.steps
        if found.fused is None:
            simulated = simulate(found.lowered, given)
            seconds, spans, host = simulated.seconds / steps, simulated.spans, simulated.host_seconds / steps
        else:
            each, host = self._fused_pass(found, given)
            passes = len({op.level for op in found.schedule.ops if isinstance(op, Compute)})
            seconds, host, spans = max(each, host) * passes / steps, host * passes / steps, ()
        plan = Plan(found.plan, total_steps, self.gpu)
        parts = split(found.lowered.ops, spans)
        return Forecast(
            options=found.schedule.options,
            seconds_per_step=seconds,
            exposed=exposed_communication(found.lowered.ops, spans),
            host_seconds_per_step=host,
            memory=tuple(plan.bytes(device) for device in range(self.devices)),
            taken=tuple(plan.taken(device) for device in range(self.devices)),
            boundary=parts.boundary / steps,
            interior=parts.interior / steps,
            exchange=parts.exchange / steps,
            fused=found.fused is not None,
            partition=found.plan.partition,
            schedule=found.lowered,
            spans=spans,
        )

    def spans(self, schedule: Schedule) -> tuple[Schedule, tuple[Span, ...]]:
        """The schedule after lowering, and the times of its operations in one iteration; without times for fused
        kernels.
        """
        found = Arrangement(self.plan(schedule.options), schedule, self.machine, self.gpu, self.norm, self.typical)
        return found.lowered, simulate(found.lowered, self.inputs(found), iterations=1).spans

    def arrangement(self, options: Options) -> Arrangement:
        """The schedule under the options, and the kernels of its passes; computed once."""
        options = self.options(options)
        if options not in self.arrangements:
            plan = self.plan(options)
            schedule = one_iteration(plan, options, start=None if repeated(self.problem) is None else 0)
            self.arrangements[options] = Arrangement(plan, schedule, self.machine, self.gpu, self.norm, self.typical)
        return self.arrangements[options]

    @cached_property
    def works(self) -> dict[object, tuple[KernelWork, ...]]:
        """The known launches of passes, by the data on which they depend."""
        return {}

    @cached_property
    def layouts(self) -> dict[object, Layout]:
        """The memory of the devices, by depth and steps of a pass."""
        return {}

    @cached_property
    def arrangements(self) -> dict[Options, Arrangement]:
        """The known arrangements."""
        return {}

    def inputs(self, found: Arrangement) -> Given:
        """The input of a simulation of an arrangement."""
        strategy = found.schedule.options.strategy
        return Given(
            self.machine,
            self.problem.itemsize,
            cache(partial(self._timed, found)),
            found.route,
            captured=strategy == "graph",
            several=len({host for op in found.lowered.ops for host in hosts_of(op)}) > 1 or found.fused is not None,
            tiles_stay=found.tiles_stay,
            moved=found.moved,
        )

    def _timed(self, found: Arrangement, device: int, steps: int, boxes: tuple[Box, ...]) -> tuple[Timed, ...]:
        """The launches of a pass with their times."""
        site, made = found.site(device), found.passes[steps]
        key = (type(made), steps, alike(site, boxes), found.plan.align)
        return tuple(self._time(work) for work in self._once(key, lambda: launches(made, site, boxes)))

    def _once(self, key: object, make: Callable[[], tuple[KernelWork, ...]]) -> tuple[KernelWork, ...]:
        if key not in self.works:
            self.works[key] = make()
        return self.works[key]

    def _time(self, work: KernelWork) -> Timed:
        return Timed(duration(work, self.machine, self.families), work.concurrent, work.waits)

    def _fused_pass(self, found: Arrangement, given: Given) -> tuple[float, float]:
        """Seconds of a pass of fused kernels, and of the host."""
        kernel, delays = found.fused, self.machine.delays
        boxes = [found.plan.partition.owned(device) for device in range(self.devices)]
        sites = [(found.site(device), box) for box, device in _different(boxes)]
        if isinstance(kernel, PersistentKernel):
            barrier = delays.grid if self.devices == 1 else delays.neighbour
            return max(self._persistent_pass(kernel, site, box) for site, box in sites) + barrier, 0.0
        assert kernel is not None
        return max(self._peer_pass(kernel, found, given, site, box) for site, box in sites)

    def _persistent_pass(self, kernel: PersistentKernel, site: Site, box: Box) -> float:
        """Seconds of a pass on one device, without the barrier after it."""
        key = "persistent", kernel.made.steps, kernel.rows, kernel.warps, alike(site, (box,))
        works = self._once(key, lambda: tuple(chain.from_iterable(persistent(kernel, site, box))))
        each = [self._time(work).duration.alone for work in works]
        return max(edge + plain for edge, plain in zip(each[::2], each[1::2], strict=True))

    def _peer_pass(
        self, kernel: PeerKernel, found: Arrangement, given: Given, site: Site, box: Box
    ) -> tuple[float, float]:
        """The same for `peer`, whose boundary tiles wait for the flags of neighbours."""
        key = "peer", kernel.steps, alike(site, (box,))
        works = self._once(key, lambda: tuple(tiles2d(kernel.made, site, (box,))))
        state = State(replace(given, passes=lambda *_: [self._time(work) for work in works]))
        op = next(op for op in found.schedule.ops if isinstance(op, Compute) and op.device == site.device)
        began = state.queues[op.queue] = 1.0  # far behind the host
        compute(state, 0, [op])
        if len(works) > 1:  # strips begin when interior tiles have
            state.issue(op.host, self.machine.calls.launch)
        return state.queues[op.queue] - began + self.machine.delays.neighbour, max(state.hosts.values())


@dataclass(frozen=True)
class Arrangement:
    """A schedule with the kernels of its passes on a machine, without times."""

    plan: Layout
    schedule: Schedule
    machine: Machine
    gpu: GpuModel
    norm: str | None = None
    typical: tuple[int, ...] | None = None

    def site(self, device: int) -> Site:
        return Site(self.plan, device, self.gpu)

    @cached_property
    def lowered(self) -> Schedule:
        """The schedule after lowering; over a network every GPU has a process of its own, as in a run."""
        each = tuple(range(self.plan.devices))
        if self.machine.network is not None:
            return in_groups(over_ranks(self.schedule, each))
        chain = queued_passes(self.schedule, each, self._reaches, self._kernels, hosts=each)
        return apply_passes(self.plan, self.schedule, chain)

    @cached_property
    def passes(self) -> dict[int, KernelPlan]:
        """The plan of the kernels for passes of each number of steps."""
        if self.typical is None:
            return self._kernels.plans(self.schedule)
        ops = (op for op in self.schedule.ops if not isinstance(op, Compute) or op.device in self.typical)
        return self._kernels.plans(replace(self.schedule, ops=tuple(ops)))

    @cached_property
    def fused(self) -> FusedKernel | None:
        """The kernel with fused exchange, or None."""
        return self._kernels.exchanging(self.schedule)[0]

    def route(self, op: Copy) -> str:
        """The route that a copy takes."""
        return self._routes.of(op).route

    def moved(self, op: Copy) -> int:
        """The bytes of contiguous memory that take a copy engine as long as a halo."""
        return self._routes.bytes_of(op)

    @property
    def tiles_stay(self) -> bool:
        """True if tiles stay for a whole pass."""
        return self._routes.stay

    @cached_property
    def _routes(self) -> Routes:
        blocks = Plan(self.plan, 1, self.gpu).blocks
        streamed = any(made.streams for made in self.passes.values())
        return Routes(self.lowered, self.plan, blocks, self.gpu.costs, streamed, self._reaches)

    @cached_property
    def _kernels(self) -> Kernels:
        units = (self.machine.multiprocessors,) * self.plan.devices
        return Kernels(self.plan, self.norm, self.gpu, units, self._reaches)

    def _reaches(self, device: int, other: int) -> bool:
        return device // self.machine.gpus == other // self.machine.gpus


def alike(site: Site, boxes: Boxes) -> tuple[object, ...]:
    """The same for boxes of devices that launch the same: where they lie on the device, at which ends of the grid that
    is, and whether a receiver is among them. Sources exclude a few rows from interior tiles, too few to count.
    """
    grid, owned = site.problem.grid.box, site.layout.partition.owned(site.device)
    back = tuple(-lo for lo in owned.lo)
    ends = tuple((a == c, b == d) for a, b, c, d in zip(owned.lo, owned.hi, grid.lo, grid.hi, strict=True))
    return tuple(box.shift(back) for box in boxes), owned.shape, ends, bool(site.recorded)


def _different(boxes: Sequence[Box]) -> list[tuple[Box, int]]:
    """One device for each shape of boxes, and those at the ends."""
    found: dict[object, tuple[Box, int]] = {}
    last = len(boxes) - 1
    for device, box in enumerate(boxes):
        found.setdefault((box.shape, device == 0, device == last), (box, device))
    return list(found.values())


def fits(forecast: Forecast, machine: Machine) -> bool:
    """True if the GPUs have enough memory."""
    return max(forecast.taken, default=0) + machine.reserved <= machine.memory
