"""The form of each quantity: a matrix, curves, a table, or words. A table of data, no code paths."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Matrix:
    """Numbers by row and column; one matrix per combination of the coordinates that are neither.

    A shaded one is a heat map: the larger a number, the darker its ground.
    """

    quantity: str
    rows: tuple[str, ...]
    columns: str
    title: str
    shaded: bool = True


@dataclass(frozen=True, slots=True)
class Curve:
    """Lines over `x`, both axes logarithmic; one picture per value of `panel`, one line per other combination."""

    quantity: str
    x: str
    title: str
    panel: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One line per number, one column per coordinate."""

    quantity: str
    title: str


@dataclass(frozen=True, slots=True)
class Answer:
    """Numbers that stand for words; `phrase` puts the coordinates into a sentence."""

    quantity: str
    title: str
    words: tuple[tuple[float, str], ...] = ((1.0, "yes"), (0.0, "no"))
    phrase: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """Ratios that should be 1: one sentence, with the matrix of all of them folded away."""

    quantity: str
    rows: tuple[str, ...]
    columns: str
    title: str


View = Matrix | Curve | Table | Answer | Check

FLUSH = ((0.0, "none"), (1.0, "by the host"), (2.0, "in a stream"), (3.0, "by the host or in a stream"))
SEEN = ((0.0, "nobody"), (100.0, "the GPU that owns the memory"), (200.0, "all GPUs"))

VIEWS: tuple[View, ...] = (
    Curve("host_copy_bandwidth", "threads", "Copy bandwidth against threads"),
    Table("host_start", "One start"),
    Table("host_flag_latency", "One flag"),
    Curve("host_barrier", "threads", "One barrier against threads"),
    Curve("host_link_bandwidth", "bytes", "Bandwidth of GPU 0 against size", "memory"),
    Table("message_time", "512 KiB in so many messages"),
    Table("message_ratio", "512 messages against one"),
    Table("pcie_traffic_ratio", "PCIe bytes counted, with packet headers, over bytes copied"),
    Matrix("device_copy_bandwidth", ("route",), "device", "Inside one GPU, read plus written"),
    Matrix("peer_copy_bandwidth", ("source",), "target", "from row to column"),
    Curve("peer_message_time", "bytes", "Time of one message against size"),
    Matrix("halo_exchange_bandwidth", ("pattern", "separated"), "devices", "Sum over all GPUs"),
    Table("relay_bandwidth", "Bandwidth by way"),
    Check(
        "traffic_ratio",
        ("route", "pattern", "of", "ways"),
        "counter",
        "NVLink bytes counted by NVML over bytes sent",
    ),
    Curve("load_latency", "footprint", "Latency against footprint", "modifier"),
    Curve("stride_latency", "stride", "Latency against stride", "modifier"),
    Answer("remote_cached", "Is a remote load cached there?"),
    Curve("load_time", "independent", "Time per load against loads in flight", "by"),
    Table("loads_to_hide", "Loads in flight that hide a remote one"),
    Curve("beside_time", "additions", "Time of a step with a load and own additions", "load"),
    Curve("load_hidden", "additions", "Share of a load's time hidden by own additions"),
    Curve("mixed_bandwidth", "remote", "Bytes read per second when so many of 100 pieces are remote"),
    Matrix("prefetched_load", ("place",), "into", "A load asked for 16 places ahead, by the cache", shaded=False),
    Matrix("allocation_time", ("way",), "peers", "2 MiB, seen by so many peers", shaded=False),
    Matrix("grant_time", (), "before", "Opening it to one more GPU, by how many could see it", shaded=False),
    Matrix("range_bandwidth", ("reader",), "owner", "Read by row, owned by column"),
    Matrix("sparse_rate", ("columns",), "vector", "Rate of the product; columns of the matrix (row)", shaded=False),
    Matrix("remote_atomic_rate", ("place",), "words", "Additions per second", shaded=False),
    Matrix("remote_atomics_lost", ("place",), "words", "Additions that were lost", shaded=False),
    Table("warp_atomic_bytes", "Bytes sent for one addition of a warp to remote memory"),
    Answer("flush_options", "Flush calls the driver offers", FLUSH),
    Answer("write_ordering", "Writes from outside are seen without a flush by", SEEN),
    Table("flush_time", "The flush by the host, and who sees the writes after it"),
    Matrix("stale_reads", ("writer",), "fence", "Stale words behind a flag", shaded=False),
    Matrix("order_tries", ("writer",), "fence", "Words read", shaded=False),
    Answer("owner_known", "Does the driver know who owns the memory?"),
    Answer("stream_waits", "Does a later kernel wait for one before it?", phrase="in {stream}, for one in {for}"),
    Answer("addresses_alternate", "Do addresses of several GPUs lie between one another?", phrase="{devices} GPUs"),
    Answer(
        "copy_returns",
        "Does an asynchronous copy return while its stream is busy?",
        phrase="{memory} memory, {direction}",
    ),
    Table("launch_overhead", "Overhead of one more launch"),
    Table("null_kernel_latency", "One more kernel that does nothing"),
    Table("round_trip", "Launch and wait of one"),
    Curve("warp_barrier", "size", "Latency against group size"),
    Curve("warp_barrier_rate", "size", "Barriers per cycle and multiprocessor"),
    Curve("block_barrier", "threads", "Latency against threads"),
    Curve("block_barrier_rate", "warps", "Barriers per cycle and multiprocessor, counted per warp"),
    Matrix(
        "grid_barrier", ("blocks_per_multiprocessor",), "threads", "Blocks per multiprocessor (row), threads (column)"
    ),
    Matrix(
        "device_barrier",
        ("devices", "blocks_per_multiprocessor"),
        "threads",
        "GPUs and blocks per multiprocessor (row), threads (column)",
    ),
    Curve("host_side_barrier", "devices", "One round: launch a null kernel on every GPU, wait for all"),
    Curve("host_side_overhead", "devices", "The same barriers between kernels of 250 us: what each adds"),
    Table("launch_gap", "From the first launch to the last"),
    Table("independent_efficiency", "Time of one GPU over that of several with independent kernels"),
    Answer("warp_blocks", "Does the barrier block all threads of the warp?"),
    Matrix("warp_timer", ("kind", "moment"), "thread", "Clock of each thread at the barrier (figure 18)"),
    Answer("partial_group_hangs", "Does a barrier that a part never reaches wait forever?"),
    Table("add_latency", "One addition"),
    Table("add_deviation", "Standard deviation by equation 8"),
    Table("clock_rate", "Clock of the multiprocessors"),
    Table("shared_latency", "A load from shared memory and its addition"),
    Table("shared_bandwidth", "Bytes per cycle"),
    Table("warp_sum", "Sum of 32 doubles"),
    Curve("reduction_bandwidth", "bytes", "Bytes summed per second", panel="devices"),
    Table("concurrency", "Little's law: bytes in flight"),
    Table("sync_latency", "Synchronisation that more threads need"),
    Matrix("switch_point", ("scenario",), "way", "Where more threads begin to pay", shaded=False),
)

GROUPS = ("links", "memory", "atomics and order", "synchronisation", "model", "host")
