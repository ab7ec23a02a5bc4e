"""The rates of the README, each beside those of a program that does the same."""

from __future__ import annotations

from figures.gpu import SAMPLES, best_samples, jacobi_rates
from figures.records import load, table

HEADS = ["problem", "machine", "compared with", "peergrid, one step per pass", "peergrid, several steps per pass"]


def headline() -> str:
    """Jacobi beside NVIDIA's samples, radar beside gprMax, acoustic waves beside Devito."""
    lines = table(HEADS, [*_gpus(), _radar(), _waves()])
    return "\n".join(
        [
            *lines,
            "",
            "A row has one unit: 10⁹ (G) or 10⁶ (M) cells per second. The other programs make one step per pass.",
        ]
    )


def _gpus() -> list[list[str]]:
    theirs, single, several = best_samples(1000), jacobi_rates("one step"), jacobi_rates("several steps")
    program = load(SAMPLES[0])["about"]["program"]
    return [
        [
            "Jacobi, 17408 × 17408 cells",
            f"{n} × H200",
            f"{program}: {theirs[n][0]:,.0f} Gcells/s",
            f"{single[n][0]:,.0f} ({single[n][0] / theirs[n][0]:.1f} ×)",
            f"{several[n][0]:,.0f} ({several[n][0] / theirs[n][0]:.0f} ×)",
        ]
        for n in (min(theirs), max(theirs))
    ]


def _radar() -> list[str]:
    found = load("fdtd_cpu")
    median = {name: entry["median"] for name, entry in found["results"].items()}
    one, several = median["peergrid_depth_1"], median["peergrid_depth_16"]
    return [
        "radar with absorbers",
        f"{found['threads']} CPU threads, {found['hardware']['cpu']}",
        f"gprMax: {median['gprmax']:,.0f} Mcells/s",
        f"{one:,.0f} ({one / median['gprmax']:.1f} ×)",
        f"{several:,.0f} ({several / median['gprmax']:.0f} ×), 16 steps",
    ]


def _waves() -> list[str]:
    found = load("waves_cpu")
    rates = {name: entry["median"] for name, entry in found["results"].items()}
    times = found["times_devito_median_of_rounds"]
    best = max((name for name in times if name != "peergrid_depth_1"), key=lambda name: float(times[name]))
    one, several = (f"{rates[name]:,.0f} ({times[name]:.2f} ×)" for name in ("peergrid_depth_1", best))
    return [
        "acoustic waves in 3D, 8th order",
        f"{found['threads']} CPU threads, {found['hardware']['cpu']}",
        f"Devito: {rates['devito']:,.0f} Mcells/s",
        one,
        f"{several}, {best.rpartition('_')[2]} steps",
    ]
