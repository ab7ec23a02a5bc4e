"""The three figures of the README, each against a program that does the same."""

from __future__ import annotations

from figures.gpu import SAMPLES, best_samples, jacobi_rates
from figures.records import load


def headline() -> str:
    """Jacobi beside NVIDIA's samples, radar beside gprMax, acoustic waves beside Devito."""
    return "\n".join((_gpus(), _radar(), _waves()))


def _gpus() -> str:
    theirs, single, several = best_samples(1000), jacobi_rates("one step"), jacobi_rates("several steps")
    counts = (min(theirs), max(theirs))
    alike = ", ".join(f"{single[n][0]:,.0f} on {n} ({single[n][0] / theirs[n][0]:.1f} ×)" for n in counts)
    fused = ", ".join(f"{several[n][0]:,.0f} on {n} ({several[n][0] / theirs[n][0]:.0f} ×)" for n in counts)
    program = load(SAMPLES)["about"]["program"]
    return (
        f"- **GPUs** (H200), Jacobi on 17408 × 17408 cells, billion cells a second, beside {program}: one step per "
        f"pass like these, {alike}; several steps per pass, {fused}."
    )


def _radar() -> str:
    found = load("fdtd_cpu")
    median = {name: entry["median"] for name, entry in found["results"].items()}
    one, several = median["peergrid_depth_1"], median["peergrid_depth_16"]
    return (
        f"- **CPUs** ({found['threads']} threads), radar with absorbers, million cells a second, beside gprMax "
        f"({median['gprmax']:,.0f}): one step per pass like this, {one:,.0f} ({one / median['gprmax']:.1f} ×); sixteen "
        f"steps per pass, {several:,.0f} ({several / median['gprmax']:.0f} ×)."
    )


def _waves() -> str:
    found = load("waves_cpu")
    rates = {name: entry["median"] for name, entry in found["results"].items()}
    times = found["times_devito_median_of_rounds"]
    best = max((name for name in times if name != "peergrid_depth_1"), key=lambda name: float(times[name]))
    one, several = (f"{rates[name]:,.0f} ({times[name]:.2f} ×)" for name in ("peergrid_depth_1", best))
    return (
        f"- **CPUs** ({found['threads']} threads), acoustic waves in 3D, 8th order, million cells a second, beside "
        f"Devito ({rates['devito']:,.0f}): one step per pass like this, {one}; {best.rpartition('_')[2]} steps per "
        f"pass, {several}."
    )
