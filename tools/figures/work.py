"""Figures of work other than stencils: farms, spins, sparse products, reductions."""

from __future__ import annotations

from figures.records import RESULTS, Found, load, table, where


def _on_gpus(found: Found) -> str:
    return f"{found['hardware']['gpus']}, {where(found)}, commit {found['commit'][:7]}"


def farm() -> str:
    """A farm beside GNU parallel and waves of jobs, and the campaign of kills."""
    beside, kills = load("farm"), load("farm_kills")
    rows = [
        [name, *(f"{beside[part]['seconds'][name]:.2f} s" for part in ("uneven", "short"))]
        for name in ("farm", "GNU parallel", "waves")
    ]
    uneven, short = beside["uneven"], beside["short"]
    head = ["", f"{uneven['jobs']} uneven jobs, {uneven['least']:.2f} s at least", f"{short['jobs']} jobs of `true`"]
    ends = ", ".join(f"{count} × {name}" for name, count in kills["ends"].items())
    lines = [
        f"Seconds on {beside['slots']} job slots ({where(beside)}). *Waves*: one job per slot is started, and the next "
        "ones start when all have ended. The time of a farm includes the start of Python and a write of each job's "
        "exit code to the disk.",
        "",
        *table(head, rows),
        "",
        f"**Kills**: a farm of {kills['jobs']} jobs, with {kills['failures']} failing attempts, was disturbed "
        f"{sum(kills['ends'].values())} times ({ends}) and resumed {kills['farms'] - 1} times. {kills['lost']} jobs "
        f"were lost, {kills['twice']} ended twice, {kills['begun after their end']} began again after their end "
        f"(`{kills['command']}`).",
    ]
    return "\n".join(lines)


def spins() -> str:
    """Rates of half steps by exchange, on one GPU, on two, and on two of a process each."""
    one, two, ranks = load("h200-x1-spins"), load("h200-x2-spins"), load("h200-x2-spins-ranks")
    alone = one["rates"][0]
    rows = [
        ["–" if "devices" in row["exchange"] else str(row["gpus"]), row["exchange"], f"{row['flips_per_ns']:.1f}", "–"]
        for row in one["rates"]
        if "flips_per_ns" in row
    ]
    rows += [
        [
            str(row["gpus"]),
            row["exchange"],
            f"{row['flips_per_ns']:.1f}",
            f"{row['flips_per_ns'] / two['rates'][0]['flips_per_ns']:.2f}",
        ]
        for row in two["rates"]
        if "flips_per_ns" in row and row["gpus"] > 1
    ]
    rows += [
        [
            f"{row['ranks']}, a process each",
            row["route"],
            f"{row['flips_per_ns']:.1f}",
            f"{row['flips_per_ns'] / two['rates'][0]['flips_per_ns']:.2f}",
        ]
        for row in ranks["ranks"]
    ]
    rates = [row for row in (*one["rates"], *two["rates"], *ranks["ranks"]) if "sha256" in row]
    same = all(row.get("same_as_cpu", "refused" in row) for found in (one, two) for row in found["bits"])
    same &= len({row["sha256"] for row in rates}) == 1
    lines = [
        f"{alone['variables']:,} variables, coupling {one['coupling']} ({_on_gpus(one)}; two GPUs: {_on_gpus(two)}).",
        "",
        *table(["GPUs", "exchange", "flips per ns", "speed-up"], rows),
        "",
        f"All digests are {'the same, also as on virtual devices' if same else 'not the same'}. The energy is "
        f"{alone['energy']:.5f}; the theory of the Bethe lattice gives {alone['bethe']:.5f}.",
    ]
    return "\n".join(lines)


def sparse() -> str:
    """Sparse products on one GPU beside cuSPARSE's."""
    found = [load(path.stem) for path in RESULTS.glob("h200-x1-sparse*.json")]
    found.sort(key=lambda record: (record["dtype"], record["width"]))
    rows = [
        [
            f"{record['rows']:,} × {record['width']}",
            record["dtype"],
            row["columns"],
            *(f"{row['gflops'][way]:,.0f}" for way in ("rows", "slices", "cusparse")),
            f"{row['against_cusparse']:.2f}",
        ]
        for record in found
        for row in record["one"]
    ]
    head = ["rows × nonzeros", "type", "columns", "rows", "slices", "cuSPARSE", "the faster over cuSPARSE"]
    commits = ", ".join(sorted({record["commit"][:7] for record in found}))
    text = f"Rates in 10⁹ operations per second ({found[0]['hardware']['gpus']}, {where(found[0])}, commits {commits})."
    return "\n".join([text, "", *table(head, rows)])


def sparse_two() -> str:
    """Sparse products on two GPUs, by where the vector lies, beside one of them."""
    found = load("h100-x2-sparse")
    alone = {row["columns"]: min(row["seconds"][kind] for kind in ("rows", "slices")) for row in found["one"]}
    rows = [
        [
            row["columns"],
            row["vector"],
            f"{2e-9 * found['rows'] * found['width'] / min(row['seconds'].values()):,.0f}",
            f"{alone[row['columns']] / min(row['seconds'].values()):.2f}",
        ]
        for row in found["several"]
    ]
    digests = {(row["columns"], digest) for row in found["several"] for digest in row["sha256"]}
    same = "the same" if len(digests) == len(alone) else "other"
    against = ", ".join(f"{row['against_cusparse']:.2f} ({row['columns']})" for row in found["one"])
    text = (
        f"Rates in 10⁹ operations per second, {found['rows']:,} rows of {found['width']} nonzeros, {found['dtype']} "
        f"({_on_gpus(found)}); vectors have {same} bits. One GPU is {against} times as fast as cuSPARSE there."
    )
    return "\n".join([text, "", *table(["columns", "the vector", "rate", "over one GPU"], rows)])


def spins_forecast() -> str:
    """Half steps predicted from the rate of one GPU."""
    found = load("spins_forecast")
    rows = [
        [
            str(row["gpus"]),
            f"{row['microseconds']:.1f}",
            f"{row['speed_up']:.2f}",
            f"{row['measured']:.1f} ({100 * row['error']:+.1f} %)" if "measured" in row else "–",
        ]
        for row in found["rows"]
    ]
    head = ["GPUs", "µs per half step, predicted", "speed-up", "measured"]
    text = f"{found['variables']:,} variables on {found['machine']}, exchange `copy` (`{found['command']}`)."
    return "\n".join([text, "", *table(head, rows)])


def sparse_cpu() -> str:
    """Sparse products on virtual devices beside SciPy's."""
    found = load("sparse_cpu")
    ways = tuple(found["found"][0]["seconds"])
    rows = [
        [each["columns"], *(f"{2e-9 * each['nonzeros'] / each['seconds'][way]:.2f}" for way in ways)]
        for each in found["found"]
    ]
    same = "have the same bits" if all(each["same_bits"] for each in found["found"]) else "have other bits"
    text = f"Rates in 10⁹ operations per second, {found['rows']:,} rows of {found['width']} nonzeros, float64"
    return "\n".join([f"{text} ({where(found)}); all results {same}.", "", *table(["columns", *ways], rows)])


WAYS = ("one block", "two kernels", "grid barrier", "last block", "CUB", "reading alone")
SEVERAL = ("2 GPUs, events", "2 GPUs, flags")


def reduction() -> str:
    """Sums on one GPU by every barrier beside CUB."""
    found = load("h200-x1-reduction")
    rows = sorted(found["rows"], key=lambda row: int(row["bytes"]))
    lines = [[*_rates(row, WAYS), f"{row['against_cub']:.3f}" if "against_cub" in row else "–"] for row in rows]
    same = all(row["same_bits"] for row in rows)
    warp = {entry["way"]: entry["cycles"] for entry in found.get("warp_sum", ())}
    cycles = ", ".join(f"{way} {warp[way]:.0f}" for way in warp)
    return "\n".join(
        [
            f"Sums of doubles, GB/s read ({_on_gpus(found)}).",
            "",
            *table(["bytes", *WAYS, "best of ours over CUB"], lines),
            "",
            f"All sums of a size have {'the same bits' if same else 'different bits'}.",
            *([f"Clock cycles for the sum of 32 doubles: {cycles}."] if warp else []),
        ]
    )


def reduction_two() -> str:
    """Sums on two GPUs beside one."""
    found = load("h200-x2-reduction")
    rows = sorted(found["rows"], key=lambda row: int(row["bytes"]))
    lines = [[*_rates(row, (*SEVERAL, "last block")), f"{row['speed_up']:.2f}"] for row in rows]
    same = all(row["same_bits"] for row in rows)
    text = f"Sums on two GPUs ({_on_gpus(found)}); all sums of a size have {'the same' if same else 'other'} bits."
    return "\n".join([text, "", *table(["bytes", *SEVERAL, "one GPU, last block", "2 GPUs over the best of 1"], lines)])


def _rates(row: Found, ways: tuple[str, ...]) -> list[str]:
    return [_size(row["bytes"]), *(_rate(row["rates"].get(way)) for way in ways)]


def layers() -> str:
    """Jacobi on two GPUs by the layers of an exchange: µs of a step, and the rate over one GPU's."""
    found = load("h200-x2-layers")
    lines = [
        [
            f"{row['shape'][0]:,}²",
            row["options"]["strategy"],
            str(row["options"]["depth"]) if row["count"] > 1 else "one GPU",
            _size(row["message_bytes"]) if row["count"] > 1 else "–",
            f"{row['seconds_per_step'] * 1e6:.1f} ± {row['spread'] / 2:.0%}",
            f"{row['speed_up']:.2f}",
        ]
        for row in found["rows"]
    ]
    head = ["grid", "strategy", "layers", "bytes of a message", "µs a step", "times as fast as one GPU"]
    place = _on_gpus(found["about"])
    return "\n".join([f"Jacobi, one step per pass ({place}).", "", *table(head, lines)])


def _size(count: int) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count // unit} {name}"
    return f"{count} B"


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value * 1e-9:,.3g}" if value < 1e11 else f"{value * 1e-9:,.0f}"
