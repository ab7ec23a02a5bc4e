"""Figures of GPUs: rates beside NVIDIA's samples, small grids, 3D, host time, strategies, own stencils, bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from figures.records import Found, best, load, records, table, when

COUNTS = (1, 2, 4, 8)
SAMPLES = ("nvidia-samples-h200-x8", "nvidia-samples-h200-x2")
"""The records of NVIDIA's samples on several GPUs; for a number of GPUs the first with rows of it counts."""
Series = Callable[[str], bool]
Rates = dict[int, tuple[float, Found | None]]


def gpu() -> str:
    """Jacobi beside NVIDIA's samples, and radar: GCells/s over the number of GPUs."""
    jacobi, radar = records("jacobi"), records("fdtd")
    main = jacobi[0]
    marks, about = _Marks(main), load(SAMPLES[0])["about"]
    samples = {every: best_samples(every) for every in (1, 1000)}
    single, several = jacobi_rates("one step"), jacobi_rates("several steps")
    normed = _rates(jacobi, lambda name: name.startswith("strong, norm"))
    rows = {
        "NVIDIA's samples": marks.cells(samples[1000]),
        "peergrid, one step per pass": marks.cells(single),
        "times as fast, one step per pass each": _times(single, samples[1000]),
        "peergrid, eight steps per pass": marks.cells(several),
        "times as fast, eight steps against one": _times(several, samples[1000]),
        "peergrid, eight steps per pass, sustained for many seconds": marks.cells(_rates(jacobi, _sustained)),
        "peergrid, eight steps per pass, 17408² for each GPU": marks.cells(_rates(jacobi, _weak)),
        "NVIDIA's samples, norm of every step": marks.cells(samples[1]),
        "peergrid, norm of every step, several steps per pass": marks.cells(normed),
        "times as fast, several steps against one": _times(normed, samples[1]),
        "radar 16384² with absorber, source, receiver, eight steps per pass": marks.cells(_rates(radar, _large)),
    }
    copied = next((found["copy_bytes_per_s"] for found in (*jacobi, *radar) if found.get("copy_bytes_per_s")), None)
    limit = (
        "" if copied is None else f" A copy moves {copied / 1e9:,.0f} GB/s on one GPU: {copied / 8e9:,.0f} GCells/s."
    )
    return "\n".join(
        [
            f"**Jacobi 17408² and radar on H200s**, GCells/s, float32 ({when(main)}), beside {about['program']}, the "
            f"best of its programs ({about['hardware']}, {about['date']}).{limit}",
            "",
            *table(["GPUs", *map(str, COUNTS)], [[title, *cells] for title, cells in rows.items()]),
            *marks.notes(),
            "",
            NOT_ALIKE,
        ]
    )


NOT_ALIKE = """Two differences matter. NVIDIA's programs copy each norm to the host and compare it there; peergrid keeps
norms on the devices until they are asked for. peergrid's samples last about 0.1 s, each after a rest three times as
long, because a GPU at its power limit lowers its clock (one row has sustained rates); NVIDIA's samples are separate
runs. Each figure is the rate of the fastest strategy on that number of GPUs."""


def samples() -> str:
    """NVIDIA's programs and peergrid in one call, on one GPU and on two: seconds of 1,000 steps."""
    return "\n\n".join(_beside(f"nvidia-samples-h200-x{count}", count) for count in (1, 2))


def _beside(record: str, count: int) -> str:
    """The table of a record on so many GPUs."""
    found = load(record)
    rows, source = [row for row in found["rows"] if row["gpus"] == count], found["samples"]
    kinds = sorted({(row["size"], row["norm_every"]) for row in rows}, key=lambda kind: (-kind[0], kind[1]))
    seconds = {(row["program"], row["size"], row["norm_every"]): f"{row['seconds']:.4f}" for row in rows}
    heads = [f"{size}², norm of {'every' if every == 1 else 'the last'} step" for size, every in kinds]
    names = dict.fromkeys(row["program"] for row in rows)
    return "\n".join(
        [
            f"**NVIDIA's samples and peergrid in one call**, seconds for 1,000 steps of Jacobi, float32, on "
            f"{'one GPU' if count == 1 else f'{count} GPUs'} ({when(found)}; their sources at {source['commit'][:7]}, "
            f"built by `nvcc {source['options']}`).",
            "",
            *table(["", *heads], [[name, *(seconds.get((name, *kind), "–") for kind in kinds)] for name in names]),
        ]
    )


def jacobi_rates(kind: str) -> Rates:
    """The best rates of Jacobi on one grid over the number of GPUs, with one step per pass or several."""
    return _rates(records("jacobi"), (lambda name: name == "strong, one step") if kind == "one step" else _strong)


def _strong(name: str) -> bool:
    return name in ("strong overlap", "strong graph", "strong peer")


def _sustained(name: str) -> bool:
    return name == "strong, held"


def _weak(name: str) -> bool:
    return name in ("weak", "weak overlap")


def _large(name: str) -> bool:
    return name.startswith("large radar")


def best_samples(norm_every: int) -> Rates:
    """The rate of NVIDIA's best program on each number of GPUs."""
    rates: Rates = {}
    for name in SAMPLES:
        found, known = load(name), set(rates)
        for row in found["rows"]:
            if (row["size"], row["norm_every"]) == (17408, norm_every) and not row["program"].startswith("peergrid"):
                rate = 1e-9 * row["size"] ** 2 * row["steps"] / row["seconds"]
                record = found if "command" in found["about"] else None
                if row["gpus"] not in known:
                    rates[row["gpus"]] = max((rate, record), rates.get(row["gpus"], (0.0, None)), key=lambda p: p[0])
    return rates


def _times(ours: Rates, theirs: Rates) -> list[str]:
    both = {count: ours[count][0] / theirs[count][0] for count in COUNTS if count in ours and count in theirs}
    return [f"{both[count]:.1f}" if count in both else "" for count in COUNTS]


def _rates(found: Sequence[Found], series: Series) -> Rates:
    """The best rates over the number of GPUs, each with its record."""
    chosen = {count: best(found, series, count, lambda row: float(row["gcells_per_s"])) for count in COUNTS}
    return {count: (row["gcells_per_s"], record) for count, pair in chosen.items() if pair for record, row in [pair]}


class _Marks:
    """Notes on cells that another record than the main one gave."""

    def __init__(self, main: Found) -> None:
        self._main = main
        self._said: dict[str, int] = {}

    def cells(self, rates: Rates) -> list[str]:
        return [f"{rates[n][0]:,.0f}{self._mark(rates[n][1])}" if n in rates else "–" for n in COUNTS]

    def notes(self) -> list[str]:
        return ["", *(f"{number}) {said}  " for said, number in self._said.items())] if self._said else []

    def _mark(self, record: Found | None) -> str:
        if record is None or record == self._main:
            return ""
        said = f"{when(record)}, `{record['about']['command']}`"
        return f" {self._said.setdefault(said, 1 + len(self._said))})"


# Beside these ---------------------------------------------------------------------------------------------------------


def more() -> str:
    """Small grids, three dimensions, and the work of a host."""
    return "\n".join([_tiny(), _small(), _heat(), _hosts()])


def _tiny() -> str:
    """A grid that grows with the GPUs, and the time of a barrier."""
    met = load("h200-x8-barrier")
    said = ", ".join(
        f"{row['seconds_per_step'] * 1e6:.2f} µs on {row['count']} with an exchange after {steps} ({when(record)})"
        for name, steps in (("256² each persistent, deep", "eight"), ("256² each persistent", "every one"))
        for record, row in [_widest("small", name)]
    )
    return (
        f"- **Small grids**: a step of Jacobi with 256² cells on each GPU takes {said}; a barrier of all blocks of "
        f"8 GPUs takes {met['barrier_us']['8 all']:.2f} µs ({when(met)})."
    )


def _widest(suite: str, series: str) -> tuple[Found, Found]:
    """The row of a series on the most GPUs, and its record: the newest of those with as many."""
    rows = [(found, row) for found in records(suite) for row in found["rows"] if row["series"] == series]
    return max(rows, key=lambda pair: int(pair[1]["count"]))


def _small() -> str:
    """A grid of fixed size."""
    record, row = _widest("small", "4096² persistent, deep")
    return f"- 4096² cells on {row['count']} GPUs: {row['seconds_per_step'] * 1e6:.2f} µs a step ({when(record)})."


def _heat() -> str:
    found = load("h200-blocked3d")
    lines = []
    kinds = {"heat": "heat, float32", "heat64": "heat, float64", "maxwell": "Yee with CPML, float32"}
    for case, kind in kinds.items():
        rows = [row for row in found["results"] if row["case"] == case and not row["error"]]
        if not rows:
            continue
        one = max(row["gcells"] for row in rows if row["shape"]["steps"] <= 1)
        several = max((row for row in rows if row["different"] == 0), key=lambda row: float(row["gcells"]))
        lines.append(
            f"{kind}, {one:,.0f} → {several['gcells']:,.0f} GCells/s ({several['shape']['steps']} steps per pass)"
        )
    return (
        f"- **Three dimensions**: 512³ cells, kernels alone, outside of a run, one step per pass → several: "
        f"{'; '.join(lines)} ({when(found)})."
    )


def _hosts() -> str:
    found = load("h200-x4-hosts-one-step")
    rows = [row for row in found["rows"] if row["size"] == 17408 and row["depth"] == 1 and not row["route"]]
    times = ", ".join(f"`{row['strategy']}` {row['host_microseconds_per_step']:.0f}" for row in rows)
    return (
        "- **The host**: µs per step in which the busiest host thread issues work, Jacobi 17408² on 4 GPUs, an "
        f"exchange after every step: {times} ({when(found)})."
    )


# The ladder -----------------------------------------------------------------------------------------------------------


def ladder() -> str:
    """Efficiency of every strategy on radar, wide and tall, and on Jacobi."""
    found = next(iter(records("ladder")), None)
    if found is None:
        return ""
    rows, counts = found["rows"], sorted({row["count"] for row in found["rows"]} - {1})
    bases = list(dict.fromkeys(row["base"].removesuffix(", deep") for row in rows))
    names = list(dict.fromkeys(row["series"].partition(": ")[2] for row in rows))
    cells = {(row["series"], row["count"]): row["efficiency"] for row in rows}
    lines = [
        [name, *(" / ".join(_share(cells.get((f"{base}: {name}", count))) for count in counts) for base in bases)]
        for name in names
    ]
    over = " / ".join(map(str, counts))
    shapes = {row["base"]: " × ".join(map(str, row["shape"])) for row in rows}
    heads = [f"{base}, {shapes[base]}" for base in bases]
    return "\n".join(
        [
            f"**Parallel efficiency of every strategy** on {over} GPUs: the rate over N times the rate of the fastest "
            f"single GPU, with one step per exchange or several (deep) ({when(found)}; `{found['about']['command']}`). "
            "`persistent` now launches a kernel for each pass of a box of more than 8 million cells; the rates of "
            "Jacobi here are those of one kernel for all passes.",
            "",
            *table(["strategy", *heads], lines),
        ]
    )


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"


# Bits -----------------------------------------------------------------------------------------------------------------


def gpu_bits() -> str:
    """The same bits on GPUs as on the CPU."""
    leads = {"h200-x8-bits": "On GPUs", "h200-x2-bits": "On two GPUs of another machine", "h200-x1-bits": "On one GPU"}
    return "\n\n".join(_bits(load(name), lead) for name, lead in leads.items())


def _bits(found: Found, lead: str) -> str:
    rows = found["rows"]
    runs, same = (sum(row[key] for row in rows) for key in ("runs", "same"))
    devices, problems = (", ".join(sorted({row[key] for row in rows}, key=_place)) for key in ("devices", "problem"))
    failed = f"; {len(found['failed'])} ended in an error, all named in the record" if found["failed"] else ""
    left = f"; {found['not_run']:,} more did not fit into the time given" if found["not_run"] else ""
    return (
        f"**{lead}** {same:,} of {runs:,} runs ({problems}; every strategy, depths, routes, orders; {devices}) have "
        f"the bits of the CPU's reference ({when(found)}{failed}{left})."
    )


def _place(name: str) -> tuple[int, str]:
    """Short names first."""
    return len(name), name


# Stencils of one's own ------------------------------------------------------------------------------------------------


def own() -> str:
    """A user's stencils beside the same equations in peergrid's own models."""
    found = next(iter(records("own")), None)
    if found is None:
        return ""
    lines = [
        [
            row["series"],
            str(row["count"]),
            f"{row['gcells_per_s']:,.0f}",
            f"{row['against']:.1%}",
            f"{row['spread']:.1%}",
        ]
        for row in found["rows"]
        if not row["series"].endswith("one step")
    ]
    heat = [
        row["against"] for row in found["rows"] if row["series"] == "heat: own heat, one step" and row["count"] == 1
    ]
    more = (
        f" Heat has 7 operations per cell, Jacobi 4; with one step per pass its rate is {heat[0]:.1%} of Jacobi's."
        if heat
        else ""
    )
    lead = "**User stencils** run as fast as the same equations in peergrid's own models, measured alternately"
    said = f"{lead} ({when(found)}).{more}"
    return "\n".join([said, "", *table(["stencil", "GPUs", "GCells/s", "of the shipped one", "spread"], lines)])
