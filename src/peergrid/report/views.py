"""How each quantity is shown: as a heat map, as curves, or as a table. A table of data, no code paths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Matrix:
    """A heat map with numbers; one per combination of the coordinates that are neither row nor column."""

    quantity: str
    rows: str
    columns: str
    title: str


@dataclass(frozen=True, slots=True)
class Curve:
    """Lines over `x`, both axes logarithmic; one line per combination of the other coordinates."""

    quantity: str
    x: str
    title: str


@dataclass(frozen=True, slots=True)
class Table:
    """One line per number."""

    quantity: str
    title: str


View = Matrix | Curve | Table

VIEWS: tuple[View, ...] = (
    Curve("host_copy_bandwidth", "threads", "Copy bandwidth of main memory"),
    Table("host_start", "Starting a kernel on a virtual device"),
    Table("host_flag_latency", "A flag from thread to thread, one way"),
    Curve("host_barrier", "threads", "Barrier between threads"),
    Curve("host_link_bandwidth", "bytes", "Between host and GPU, against size"),
    Table("message_time", "512 KiB in one message and in 512"),
    Table("device_copy_bandwidth", "Copy inside one GPU, read plus written"),
    Matrix("peer_copy_bandwidth", "source", "target", "From GPU to GPU"),
    Curve("peer_message_time", "bytes", "Time of one message from GPU to GPU"),
    Table("halo_exchange_bandwidth", "All GPUs exchange halos at once, sum over all"),
    Table("relay_bandwidth", "Through a GPU in the middle"),
    Table("traffic_ratio", "NVML's traffic counters against the bytes sent"),
    Curve("load_latency", "footprint", "Latency of a dependent load against footprint"),
    Curve("stride_latency", "stride", "Latency of a dependent load against stride"),
    Table("remote_cached", "Where remote accesses are cached (1: yes)"),
    Curve("load_time", "independent", "Time per load against independent loads in flight"),
    Table("loads_to_hide", "Independent loads that hide a remote one"),
    Table("allocation_time", "Allocating 2 MiB, against the number of peers that may see it"),
    Table("grant_time", "Opening a mapped range of 2 MiB to one more GPU, by how many could see it before"),
    Matrix("range_bandwidth", "reader", "owner", "One range over all GPUs: read by row, owned by column"),
    Table("remote_atomic_rate", "Atomic additions"),
    Table("remote_atomics_lost", "Atomic additions that were lost"),
    Table("flush_options", "Flush calls the driver offers (1: by the host, 2: in a stream, 3: both)"),
    Table("write_ordering", "Writes from outside are seen unflushed by (0: nobody, 100: their GPU, 200: all GPUs)"),
    Table("stale_reads", "Stale reads after the flag was seen"),
    Table("launch_overhead", "Overhead of one more launch"),
    Table("null_kernel_latency", "A kernel that does nothing, from call to end"),
    Curve("warp_barrier", "size", "Barrier inside a warp"),
    Curve("warp_barrier_rate", "size", "Barriers inside warps per cycle and multiprocessor"),
    Curve("block_barrier", "threads", "Barrier of a block"),
    Curve("block_barrier_rate", "warps", "Block barriers, counted per warp, per cycle and multiprocessor"),
    Matrix("grid_barrier", "blocks_per_multiprocessor", "threads", "Barrier of a grid"),
    Matrix("device_barrier", "blocks_per_multiprocessor", "threads", "Barrier over several GPUs"),
    Curve("host_side_barrier", "devices", "Barrier on the host: launch, synchronise all GPUs"),
    Table("warp_blocks", "A warp barrier blocks all its threads (1: yes)"),
    Table("partial_group_hangs", "A barrier that only a part reaches never ends (1: the watchdog caught it)"),
    Table("add_latency", "The method itself: one addition by clock register and by differences"),
    Table("shared_bandwidth", "Shared memory: bytes per cycle"),
    Table("concurrency", "Little's law: bytes in flight"),
    Table("switch_point", "Where more threads begin to pay"),
)

GROUPS = ("host", "links", "memory", "atomics and order", "synchronisation", "model")
