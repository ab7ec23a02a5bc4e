"""The passes that lead from a schedule to the one that GPUs carry out. They need no GPU."""

from __future__ import annotations

from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.kernels import FusedKernel, Kernels, kernels_of
from peergrid.schedule import Schedule
from peergrid.schedule.passes import Chain, LoweringPass
from peergrid.schedule.passes.captured import CaptureGraphs, origins
from peergrid.schedule.passes.fused import fuse_exchange, fuse_steps
from peergrid.schedule.passes.hosts import AssignHosts, separable
from peergrid.schedule.passes.ranks import barriers_to_events
from peergrid.schedule.passes.semaphores import Crosses, EventsToSemaphores, applicable
from peergrid.schedule.passes.wraps import wrap_in_kernels

Hosts = tuple[int, ...]
"""The host of each device; none where one issues for all."""

FUSED_EXCHANGE = LoweringPass("fuse the exchange into kernels", fuse_exchange)
FUSED_STEPS = LoweringPass("fuse the exchange and all passes into one kernel of each device", fuse_steps)
BARRIERS = LoweringPass("barriers of several devices to events", barriers_to_events)
WRAPPED = LoweringPass("read across periodic edges within kernels", wrap_in_kernels)


def fused_passes(kernel: FusedKernel | None, hosts: Hosts) -> Chain:
    """Those of a schedule whose kernel exchanges by itself; none where there is no such. hosts: of each device."""
    if isinstance(kernel, PeerKernel):
        return (FUSED_EXCHANGE, *_hosts(hosts))
    return () if kernel is None else (FUSED_STEPS,)


def queued_passes(
    schedule: Schedule,
    ordinals: tuple[int, ...],
    crosses: Crosses,
    kernels: Kernels | None = None,
    divided: bool = False,
    hosts: Hosts = (),
) -> Chain:
    """Those of a schedule that queues carry out.

    ordinals: the GPU of each device; crosses: whether one device's queues await words that another's write; kernels: of
    the passes, if they are known; divided: whether devices of different processes are tied by words alone; hosts: of
    each device, where they are to be several.
    """
    found = [WRAPPED] if kernels is not None and kernels.wrap(schedule) else []
    if divided:
        found.append(BARRIERS)
    if divided or applicable(schedule, ordinals):
        found.append(LoweringPass("events between GPUs to semaphores", EventsToSemaphores(crosses)))
    captured = schedule.options.strategy == "graph"
    if captured and origins(schedule, ordinals):
        found.append(LoweringPass("capture the work between them in graphs", CaptureGraphs(ordinals)))
    elif captured:  # one graph of all GPUs
        return tuple(found)
    return (*found, *_hosts(hosts if separable(schedule, ordinals, crosses) else ()))


def _hosts(hosts: Hosts) -> Chain:
    return (LoweringPass("a host for each GPU", AssignHosts(hosts)),) if len(set(hosts)) > 1 else ()


def queued_on(execution: ExecutionContext, schedule: Schedule, hosts: Hosts) -> Chain:
    """The same on an execution's devices."""
    ordinals, processes = execution.devices.ordinals, execution.devices.processes
    divided = processes is not None and processes.by_address
    return queued_passes(schedule, ordinals, execution.semaphores_reach, kernels_of(execution), divided, hosts)
