"""Figures of CPUs: the same bits, the proof, radar beside gprMax, waves beside Devito."""

from __future__ import annotations

import statistics
from typing import Any

from figures.records import load, table, where


def same_bits() -> str:
    found = load("same_bits")
    rows = [
        [entry["problem"], str(entry["steps"]), str(entry["runs"]), str(len(entry["digests"]))]
        for entry in found["problems"]
    ]
    head = "**The same bits** over devices, strategies, depths and exchange orders: runs, and different digests"
    return "\n".join([f"{head} ({where(found)}).", "", *table(["problem", "steps", "runs", "digests"], rows)])


def proof() -> str:
    """The proof in two sentences."""
    result = load("verification")
    found = result["found"]
    faults = sum(found[kind] for kind in ("races", "stale_reads", "deadlocks"))
    return (
        f"Two independent checkers find {faults} faults in {found['schedules']:,} schedules of the radar example. Of "
        f"{found['mutants']:,} schedules in which one thing was changed, both reject {found['killed']:,}; the other "
        f"{found['redundant']:,} are proved to be as good as the original ({where(result)})."
    )


def verification() -> str:
    """The proof of a model's schedules, of those that GPUs execute, and of schedules edited at random."""
    result = load("verification")
    found = result["found"]
    return (
        f"**Proved**: two independent checkers find {found['races']} races, {found['stale_reads']} stale reads and "
        f"{found['deadlocks']} deadlocks in {found['schedules']:,} schedules of the radar example ({found['ops']:,} "
        "operations; every strategy, 1, 2, 3, 4 and 7 devices, depths 1, 2, 3, 5 and 8, three exchange orders). Both "
        f"checkers reject {found['killed']:,} of {found['mutants']:,} *mutants*, schedules in which one thing was "
        f"changed. The other {found['redundant']:,} mutants are proved to be as good as the original; the checkers "
        f"disagree on {found['disagreements']} (`{result['command']}`, {result['processor_seconds']} s of processor "
        f"time; {where(result)}).\n\n{_lowered(result)}"
    )


def _lowered(result: dict[str, Any]) -> str:
    """The same for the schedules that GPUs execute, and for schedules edited at random."""
    found, states = result["lowered"].values(), sum(row["states"] for row in result["protocol"])
    schedules, ops, tried, killed = (
        sum(each[key] for each in found) for key in ("schedules", "ops", "mutants", "killed")
    )
    wrong = sum(each[key] for each in found for key in ("races", "stale_reads", "deadlocks", "disagreements"))
    wrong += sum(bool(row["fault"]) for row in result["protocol"])
    edits, many = load("random_edits")["found"], result["many"]
    wrong += sum(not row["right"] for row in many)
    slowest = max(row["seconds"] for row in many)
    return (
        f"**The proof covers the schedules that run**: {schedules:,} schedules ({ops:,} operations) after all passes "
        f"of their lowering for 2 and 4 GPUs, {tried:,} mutants of them (both checkers reject {killed:,}, the others "
        f"are as good), and {states:,} states of the protocols of fused kernels on 2 to 4 devices have {wrong} faults. "
        f"Both checkers accept {edits['accepted']:,} of {edits['edits']:,} schedules edited at random; "
        f"{edits['wrong_runs']} of {edits['runs']:,} runs of these, with random delays, give other bits. The proof of "
        f"a schedule for {many[0]['devices']:,} GPUs takes at most {slowest:.1f} s of processor time."
    )


def waves_cpu() -> str:
    return _waves_on_both("waves_cpu", "Acoustic wave", "8th order, variable velocity")


def tti_cpu() -> str:
    return _waves_on_both("tti_cpu", "TTI", "8th order, two stages, tilted axis, all parameters variable")


def files() -> str:
    """The cost of the files that a run writes while it steps."""
    kept, taken = load("checkpoints_cpu"), load("snapshots_cpu")
    still, beside = (kept[name]["share of a minute"] for name in ("still", "beside"))
    usual, size = statistics.median(taken["seconds"]["none"]), taken["bytes of a whole snapshot"]
    rows = [
        [name, f"{1000 * one['seconds of each']:.0f} ms", f"{one['share of the run']:.0%}"]
        for name, one in taken["price"].items()
    ]
    head = (
        f"**Files written during a run** ({where(taken['about'])}). A checkpoint of {kept['bytes'] / 2**20:.0f} MiB "
        f"once a minute stops the run for {still:.2%} of the time; writing it takes {beside:.2%} of the time, "
        f"concurrently with the run. Snapshots of {size / 2**20:.0f} MiB cost a radar run that keeps all cores busy "
        f"for {usual:.1f} s:"
    )
    return "\n".join([head, "", *table(["snapshots", "each", "of the run"], rows)])


def directives() -> str:
    """The three-point stencil with directives and with peergrid, on each machine that was measured."""
    found = [load(name) for name in ("directives", "h200-x1-directives", "h200-x2-directives")]
    columns = ("directives", "one step per pass", "several")
    rows = [
        [row["devices"], str(each["steps"]), *(_rate(row["gcells_per_second"].get(name)) for name in columns)]
        for each in found
        for row in each["rows"]
    ]
    places = "; ".join(f"{each['hardware'].get('gpus', 'processor')}: {where(each)}" for each in found)
    cells = " and ".join(sorted({f"{each['cells']:,}" for each in found}))
    head = ["devices", "steps", "directives", "peergrid, one step per pass", "peergrid, several"]
    return "\n".join([f"GCells/s, {cells} cells ({places}).", "", *table(head, rows)])


def _rate(gcells: float | None) -> str:
    return "–" if gcells is None else f"{gcells:,.3g}" if gcells < 1000 else f"{gcells:,.0f}"


def _waves_on_both(name: str, title: str, scheme: str) -> str:
    """The comparison on each processor on which it was recorded."""
    return "\n\n".join(_waves(one, title, scheme) for one in (name, f"{name}_xeon"))


def _waves(name: str, title: str, scheme: str) -> str:
    found = load(name)
    rates = {name: entry["median"] for name, entry in found["results"].items()}
    rows = [["Devito " + found["versions"]["devito"], f"{rates['devito']:,.0f}", "1.00"]]
    for name, times in found["times_devito_median_of_rounds"].items():
        depth = name.rpartition("_")[2]
        row = "peergrid, one step per pass" if depth == "1" else f"peergrid, {depth} steps per pass"
        rows.append([row, f"{rates[name]:,.0f}", f"{times:.2f}"])
    grid, rounds = " × ".join(map(str, found["cells"])), len(found["results"]["devito"]["samples"])
    return "\n".join(
        [
            f"**{title} on {found['threads']} CPU threads**, {grid} cells, float32, {scheme}, programs alternately, "
            f"medians of {rounds} rounds ({where(found)}).",
            "",
            *table(["program", "Mcells/s", "against Devito"], rows),
        ]
    )


def fdtd_cpu() -> str:
    found = load("fdtd_cpu")
    median = {name: entry["median"] for name, entry in found["results"].items()}
    copied = median["copy_bytes_per_s"]
    one_pass = copied / found["bytes_per_cell_and_step"] / 1e6
    rates = {
        "gprMax 4.0.1": median["gprmax"],
        "peergrid, one step per pass": median["peergrid_depth_1"],
        "peergrid, 8 steps per pass": median["peergrid_depth_8"],
        "peergrid, 16 steps per pass": median["peergrid_depth_16"],
    }
    rows = [
        [name, f"{rate:,.0f}", f"{rate / median['gprmax']:.1f}", f"{rate / one_pass:.0%}"]
        for name, rate in rates.items()
    ]
    grid = " × ".join(map(str, found["cells"]))
    return "\n".join(
        [
            f"**Radar on {found['threads']} CPU threads**, {grid} cells, float32, with CPML, programs alternately, "
            f"medians of {len(found['results']['gprmax']['samples'])} rounds ({where(found)}; copy bandwidth in the "
            f"same run {copied / 1e9:.0f} GB/s, which allows {one_pass:,.0f} Mcells/s one step at a time).",
            "",
            *table(["program", "Mcells/s", "against gprMax", "of the one-pass limit"], rows),
        ]
    )
