"""The `peer` strategy fused: the kernels of a pass exchange halos themselves, one for each kind of tile.

Where an exchange interval is one pass over slabs and devices reach each other, no queue of one device waits for
another's: the tiles at the ends of a slab do (see `codegen.cuda.fused.exchange`). What `schedule.passes.fused` made of
the schedule becomes arguments of the kernels: flags are their counters, copies the stores between two of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from peergrid.codegen.cuda.common.program import Launch
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.fused.chain import Chain, hosts_of_devices, passed
from peergrid.runtime.cuda.lowering import signals
from peergrid.runtime.cuda.lowering.device_tiles import DeviceTiles, tiles_on
from peergrid.runtime.cuda.lowering.execution_context import ExecutionContext
from peergrid.runtime.cuda.lowering.launch import KernelLaunch
from peergrid.runtime.cuda.lowering.lower import Lowered
from peergrid.schedule import Schedule
from peergrid.schedule.ops import Compute, Event, Flag, Queue

PEERS = passed("peer")
MOST_WAITING = 0.5  # share of a GPU that waiting tiles of devices which share it may take


def lower_fused(execution: ExecutionContext, schedule: Schedule, kernel: PeerKernel, notes: int = 0) -> Lowered | str:
    """The command buffer of a schedule with fused exchange (see `fuse_exchange`); else the reason against it.

    notes: the address of a recorded run's list.
    """
    chain = _chain(execution, schedule, replace(kernel, recorded=bool(notes)), notes)
    for ordinal, share in chain.waiting().items():
        if share > MOST_WAITING:
            return (
                f"GPU {ordinal} is used as several devices, whose kernels would fill {share:.0%} of it while they wait "
                "for each other: queues exchange halos instead"
            )
    devices, host_of = execution.devices.mine, hosts_of_devices(schedule)
    commands = {host: CommandWriter(execution.devices) for host in sorted({host_of[device] for device in devices})}
    for number, part in enumerate(schedule.passes):
        for device in devices:
            chain.write(commands[host_of[device]], device, number, part)
    queues = [queue for device in devices for queue in chain.queues(device)]
    queues += [] if execution.norms is None else [_sums_queue(device) for device in devices]
    buffers = {host: made.finish() for host, made in commands.items()}
    return Lowered(schedule, buffers, tuple(queues), frozenset(), {PEERS: len(schedule.passes)})


def _chain(execution: ExecutionContext, schedule: Schedule, kernel: PeerKernel, notes: int) -> _PeerChain:
    tiles, devices = tiles_on(execution, kernel), range(execution.layout.devices)
    boxes = [execution.layout.partition.owned(device) for device in devices]
    cut = [list(tiles.cut(device, (boxes[device],))) for device in devices]
    launches = {d: [tiles.launch(d, part, boxes[d]) for part in cut[d]] for d in execution.devices.mine}
    regions = [[launch.regions for launch in found] for found in cut]
    return _PeerChain(execution, schedule, kernel.links, regions, notes, kernel, tiles, cut, launches)


@dataclass(frozen=True, eq=False)
class _PeerChain(Chain):
    """The launches of each device in a pass."""

    kernel: PeerKernel
    tiles: DeviceTiles
    cut: Sequence[Sequence[Launch]]
    launches: Mapping[int, Sequence[KernelLaunch]]

    def waiting(self) -> dict[int, float]:
        """For each GPU that is used as several devices, the share of it that tiles may take while they wait."""
        ordinals = self.execution.devices.ordinals
        submissions: dict[int, float] = {}
        for device, cut in enumerate(self.cut):
            if ordinals.count(ordinals[device]) > 1:
                share = sum(self._share(device, launch) for launch in cut)
                submissions[ordinals[device]] = submissions.get(ordinals[device], 0.0) + share
        return submissions

    def _share(self, device: int, launch: Launch) -> float:
        box = self.execution.layout.partition.owned(device)
        tiles = sum(self.tables.counts(box, [launch.regions]))
        blocks = -(-tiles // launch.program.tiles_per_block)
        return blocks / self.tiles.resident(device, launch.program)

    def queues(self, device: int) -> list[Queue]:
        """The queues of a device's kernels, the first one's beginning and end being those of the pass.

        Blocks find room in the order of priority: interior tiles fill the device in few waves, tiles of strips fit
        beside them; boundary tiles, which take long, come before both where the last wave of interior ones leaves them
        room.
        """
        made, (interior, *others) = self.kernel, self.cut[device]
        blocks = sum(launch.blocks for launch in others if launch.program.entry == made.boundary.entry)
        spare = -interior.blocks % self.tiles.resident(device, interior.program)
        first = -2 if blocks <= spare else 0
        kinds = {interior.program.entry: ("interior", -1), made.boundary.entry: ("boundary", first)}
        return [Queue(device, *kinds.get(launch.program.entry, ("strips", 0))) for launch in self.cut[device]]

    def write(self, commands: CommandWriter, device: int, number: int, part: Compute) -> None:
        """One pass of one device; its kernels all end before the next, beside which its norms are summed up."""
        queues, interior = self.queues(device), self.cut[device][0].program
        strips = queues[-1] if (queues[0].name, queues[-1].name) == ("interior", "strips") else None
        operation, slots = self.awaits(device, number), (part.source, part.target)
        for queue, launch in zip(queues, self.launches[device], strict=True):
            links = self.links(device, number, operation)
            if strips and queue == queues[0]:
                links["begun"], links["last"] = (
                    self.execution.flag(_begun(device)),
                    min(launch.blocks, self.tiles.resident(device, interior)) - 1,
                )
            if self.execution.norms is not None:
                commands.wait(operation, queue, _summed(device, part.target))
            if queue == strips:
                self._await_interior(commands, queue, operation, number)
            replace(launch, more=(links, *launch.more)).write(commands, operation, queue, slots, part.level)
            commands.relocate(links["passed"], number, PEERS)
        signals.barrier(commands, operation, queues)
        if self.execution.norms is not None:
            queue, sums = _sums_queue(device), self.tiles.sums(device)
            assert sums is not None, "kernels of a run with norms leave sums"
            signals.after(commands, operation, queue, queues)
            sums.write(commands, operation, queue, slots, part.level)
            commands.record(operation, queue, _summed(device, part.target))

    def _await_interior(self, commands: CommandWriter, queue: Queue, operation: int, number: int) -> None:
        """A queue goes on when the interior tiles of a pass's first wave have their room.

        They run longest: what took their room would have them begin a second wave. Their room comes free, whatever else
        runs: a tile waits only for tiles of its neighbours' passes before, none of which waits for this pass.
        """
        signals.flag_kernel(
            self.execution, commands, operation, queue, "await_flag", _begun(queue.device), number + 1, counted=PEERS
        )


def _begun(device: int) -> Flag:
    """The word in which interior tiles say that those of the first wave of a pass have begun."""
    return Flag(device, "interior tiles begun")


def _sums_queue(device: int) -> Queue:
    """The queue in which a device sums up norms: of the lowest priority, since a pass has time to spare at its end.

    What a pass leaves to be summed up is kept once for each slot of the state. So the next pass, which writes the other
    slot, begins at once; the one after it waits for the sums.
    """
    return Queue(device, "sums")


def _summed(device: int, slot: int) -> Event:
    """The newest sums of a pass that wrote a slot are made."""
    return Event(device, f"sums of slot {slot}")
