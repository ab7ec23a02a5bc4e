"""Figures of documents, for comparison with measured ones; each names its source and the corresponding result."""

from __future__ import annotations

from dataclasses import dataclass, replace

from peergrid.probe.experiment import Scalar

SYNC = "Zhang et al."
ARTICLE = "Multi-GPU Programming (article)"
SLIDES = "Multi-GPU Programming (slides, 2013)"
STUDY = (
    "Zhang et al.: L. Zhang, M. Wahib, H. Zhang and S. Matsuoka, A Study of Single and Multi-device Synchronization "
    "Methods in Nvidia GPUs."
)


@dataclass(frozen=True, slots=True)
class Paper:
    """A figure of a document: its name, its values by hardware, and the corresponding result of ours."""

    group: str
    source: str
    what: str
    unit: str
    figures: dict[str, float]
    quantity: str
    at: dict[str, Scalar]


FEW: dict[str, Scalar] = {"scenario": "1 → 32 threads"}
MANY: dict[str, Scalar] = {"scenario": "32 → 1024 threads"}
REDUCTION = "reduction_bandwidth"
LARGE: dict[str, Scalar] = {"devices": 1, "bytes": 1 << 30}
PREDICTED: dict[str, Scalar] = {"way": "predicted"}
COALESCED: dict[str, Scalar] = {"kind": "coalesced shuffle"}


def _sync(
    table: str, what: str, unit: str, v100: float, p100: float | None, quantity: str, at: dict[str, Scalar]
) -> Paper:
    figures = {"V100": v100} if p100 is None else {"V100": v100, "P100": p100}
    return Paper("synchronisation", f"{SYNC}, {table}", what, unit, figures, quantity, at)


def _model(table: str, what: str, unit: str, v100: float, p100: float, quantity: str, at: dict[str, Scalar]) -> Paper:
    return replace(_sync(table, what, unit, v100, p100, quantity, at), group="model")


def _grid(blocks: int, threads: int, v100: float, p100: float) -> Paper:
    at: dict[str, Scalar] = {"blocks_per_multiprocessor": blocks, "threads": threads}
    what = f"grid barrier, {blocks} block{'s' * (blocks > 1)} per multiprocessor, {threads} threads"
    return _sync("figure 5", what, "s", v100 * 1e-6, p100 * 1e-6, "grid_barrier", at)


PAPERS: tuple[Paper, ...] = (
    _sync("table I", "launch overhead, plain", "s", 1081e-9, None, "launch_overhead", {"how": "plain"}),
    _sync("table I", "launch overhead, cooperative", "s", 1063e-9, None, "launch_overhead", {"how": "cooperative"}),
    _sync(
        "table I",
        "launch overhead, one launch over several GPUs (here one)",
        "s",
        1258e-9,
        None,
        "host_side_overhead",
        {"devices": 1, "by": "one launch"},
    ),
    _sync("table I", "null kernel, plain", "s", 8888e-9, None, "null_kernel_latency", {"how": "plain"}),
    _sync("table I", "null kernel, cooperative", "s", 10248e-9, None, "null_kernel_latency", {"how": "cooperative"}),
    _sync(
        "table I",
        "null kernel, one launch over several GPUs (here one)",
        "s",
        10874e-9,
        None,
        "host_side_barrier",
        {"devices": 1, "by": "one launch"},
    ),
    _sync("table II", "tile barrier of 32", "cycles", 14, 1, "warp_barrier", {"kind": "tile", "size": 32}),
    _sync("table II", "shuffle of 32", "cycles", 22, 31, "warp_barrier", {"kind": "shuffle", "size": 32}),
    _sync("table II", "coalesced barrier of 32", "cycles", 14, 1, "warp_barrier", {"kind": "coalesced", "size": 32}),
    _sync("table II", "coalesced barrier of 16", "cycles", 108, 1, "warp_barrier", {"kind": "coalesced", "size": 16}),
    _sync(
        "table II",
        "tile barriers per cycle",
        "per cycle",
        0.812,
        1.774,
        "warp_barrier_rate",
        {"kind": "tile", "size": 32},
    ),
    _sync(
        "table II",
        "shuffles per cycle",
        "per cycle",
        0.928,
        0.642,
        "warp_barrier_rate",
        {"kind": "shuffle", "size": 32},
    ),
    _sync("table II", "coalesced shuffle of 16", "cycles", 77, 50, "warp_barrier", COALESCED | {"size": 16}),
    _sync("table II", "coalesced shuffle of 32", "cycles", 77, 50, "warp_barrier", COALESCED | {"size": 32}),
    _sync(
        "table II",
        "coalesced shuffles per cycle",
        "per cycle",
        0.121,
        0.166,
        "warp_barrier_rate",
        COALESCED | {"size": 16},
    ),
    _sync("table II", "block barrier of one warp", "cycles", 22, 218, "block_barrier", {"threads": 32}),
    _sync("table II", "block barriers per cycle", "per cycle", 0.475, 0.091, "block_barrier_rate", {"warps": 64}),
    _grid(1, 32, 1.43, 1.77),
    _grid(1, 256, 1.50, 1.83),
    _grid(1, 1024, 2.21, 2.26),
    _grid(2, 256, 1.99, 2.23),
    _grid(2, 1024, 3.49, 3.52),
    _grid(4, 256, 3.53, 4.04),
    _grid(8, 256, 6.71, 8.39),
    _sync("section IX-D", "one float addition", "cycles", 4, 6, "add_latency", {"way": "clock register"}),
    _model("table III", "latency of a step", "cycles", 13.0, 18.5, "shared_latency", {}),
    _model("table III", "shared memory, one thread", "B/cycle", 0.62, 0.43, "shared_bandwidth", {"threads": 1}),
    _model("table III", "shared memory, one warp", "B/cycle", 19.6, 13.8, "shared_bandwidth", {"threads": 32}),
    _model("table III", "shared memory, 1024 threads", "B/cycle", 215, 141, "shared_bandwidth", {"threads": 1024}),
    *(
        _model("table V", f"sum of 32 doubles, {name}", "cycles", v100, p100, "warp_sum", {"way": way})
        for name, way, v100, p100 in (
            ("serial", "serial", 299, 383),
            ("no synchronisation (wrong)", "nosync", 89, 112),
            ("volatile and tile", "volatile tile", 237, 282),
            ("tile", "tile", 237, 281),
            ("coalesced group", "coalesced", 237, 251),
            ("tile shuffle", "tile shuffle", 164, 212),
            ("coalesced shuffle", "coalesced shuffle", 1261, 1423),
        )
    ),
    *(
        _model("table VI", f"large sum, {name}", "B/s", v100 * 1e9, p100 * 1e9, REDUCTION, {"by": by, **LARGE})
        for name, by, v100, p100 in (
            ("implicit barrier", "two kernels", 865.40, 592.40),
            ("grid barrier", "grid barrier", 855.59, 590.85),
            ("CUDA's sample", "last block", 852.98, 590.65),
            ("theory", "reading alone", 898.05, 732.16),
        )
    ),
    _model("table III", "in flight, one thread", "B", 8, 8, "concurrency", {"threads": 1}),
    _model("table III", "in flight, one warp", "B", 256, 256, "concurrency", {"threads": 32}),
    _model("table III", "in flight, 1024 threads", "B", 2796, 2615, "concurrency", {"threads": 1024}),
    _model("table IV", "synchronisation of a warp", "cycles", 110, 155, "sync_latency", FEW),
    _model("table IV", "synchronisation of 1024 threads", "cycles", 420, 2135, "sync_latency", MANY),
    _model("table IV", "one warp instead of one thread from", "B", 76, 75, "switch_point", FEW | PREDICTED),
    _model("table IV", "1024 threads instead of 32 from", "B", 9076, 32681, "switch_point", MANY | PREDICTED),
    Paper(
        "links",
        ARTICLE,
        "host to GPU, pinned, large",
        "B/s",
        {"RTX 2080, PCIe 3": 13e9},
        "host_link_bandwidth",
        {"direction": "to device", "memory": "pinned", "bytes": 64 << 20},
    ),
    Paper(
        "links",
        ARTICLE,
        "512 messages of 1 KiB against one of 512 KiB",
        "× slower",
        {"RTX 2080, PCIe 3": 130},
        "message_ratio",
        {},
    ),
    Paper(
        "links",
        ARTICLE,
        "latency between GPUs on NVLink",
        "s",
        {"RTX 2080, PCIe 3": 1.3e-6},
        "peer_message_time",
        {"route": "copy engine", "bytes": 1024},
    ),
    Paper(
        "links",
        SLIDES,
        "halos left-right over 4 GPUs, sum",
        "B/s",
        {"PCIe 2": 15e9},
        "halo_exchange_bandwidth",
        {"pattern": "left-right", "separated": "yes", "devices": 4},
    ),
    Paper(
        "links",
        SLIDES,
        "halos left-right over 8 GPUs, sum",
        "B/s",
        {"PCIe 2": 34e9},
        "halo_exchange_bandwidth",
        {"pattern": "left-right", "separated": "yes", "devices": 8},
    ),
    *(
        Paper(
            "synchronisation",
            ARTICLE,
            f"efficiency of two GPUs, {how}",
            "",
            {"RTX 2080, PCIe 3": share},
            "independent_efficiency",
            {"how": way, "kernel": 2500, "devices": 2},
        )
        for how, way, share in (
            ("one thread", "kernels alone, one thread", 0.86),
            ("a thread per GPU", "blocking copies, a thread per GPU", 1.0),
        )
    ),
    Paper(
        "memory",
        ARTICLE,
        "a dependent load from another GPU, on NVLink",
        "cycles",
        {"RTX 2080": 1290},
        "load_latency",
        {"place": "remote", "modifier": "cv"},
    ),
    Paper(
        "memory",
        ARTICLE,
        "allocating 2 MiB without peers",
        "s",
        {"RTX 2080": 1e-4},
        "allocation_time",
        {"way": "cuMemAlloc", "peers": 0},
    ),
    Paper(
        "memory",
        ARTICLE,
        "allocating 2 MiB with one peer",
        "s",
        {"RTX 2080": 2.3e-4},
        "allocation_time",
        {"way": "cuMemAlloc", "peers": 1},
    ),
)
