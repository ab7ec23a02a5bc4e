"""The description of this machine; everything that cannot be read is listed as missing."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import Any

from peergrid.errors import DeviceFault
from peergrid.machine import gpus, host, modes, nvml, settings
from peergrid.machine.driver import call, find
from peergrid.machine.model import Gpu, Machine, Missing, NumaNode, Peer, Software


def discover() -> Machine:
    """Describe this machine. Creates a context on each GPU to check that peer copies arrive."""
    driver, no_cuda = find()
    with nvml.session() as (management, no_nvml):
        found, silent = gpus.readable(driver, management)
        nodes = host.nodes()
        pairs, unknown = _peers(driver, management, found)
        return Machine(
            memory=host.memory(),
            cpu=host.cpu(),
            nodes=nodes,
            gpus=found,
            links=gpus.links(management, found),
            peers=pairs,
            software=software(driver, management),
            settings=(*settings.in_force(os.environ), *modes.in_force(management, found)),
            missing=(
                *silent,
                *unknown,
                *(nvml.forbidden(management, nvml.handle(management, found[0].pci)) if found else ()),
                *_missing(no_cuda, no_nvml, found, nodes, pairs),
            ),
        )


def _peers(driver: Any, management: Any, found: tuple[Gpu, ...]) -> tuple[tuple[Peer, ...], tuple[Missing, ...]]:
    """The pairs of GPUs that reach each other, or the reason why this is not known."""
    try:
        return gpus.peers(driver, management, found), ()
    except DeviceFault as fault:
        return (), (Missing("peer access", str(fault).rstrip(".")),)


def software(driver: Any = None, management: Any = None) -> Software:
    """Versions of the system, Python, the NVIDIA driver, CUDA, and the Python packages that reach it."""
    version = int(call(driver, "cuDriverGetVersion")) if driver is not None else 0
    return Software(
        system=f"{platform.system()} {platform.release()}",
        python=platform.python_version(),
        driver=str(nvml.attempt(management, "", "nvmlSystemGetDriverVersion")),
        cuda=f"{version // 1000}.{version % 1000 // 10}" if version else "",
        bindings=_package("cuda-bindings"),
        core=_package("cuda-core"),
        nvrtc=_nvrtc(),
    )


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _nvrtc() -> str:
    """The version of NVRTC that would compile kernels; '' if it cannot be loaded."""
    try:
        from cuda.bindings import nvrtc

        code, major, minor = nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError):
        return ""
    return f"{major}.{minor}" if int(code) == 0 else ""


def _missing(
    no_cuda: Missing | None,
    no_nvml: Missing | None,
    found: tuple[Gpu, ...],
    nodes: tuple[NumaNode, ...],
    pairs: tuple[Peer, ...],
) -> tuple[Missing, ...]:
    lost: list[Missing] = []
    if no_cuda:
        lost.append(Missing("GPUs", no_cuda.why))
    elif no_nvml:
        lost.append(Missing("NVLink lines and CPU affinity", no_nvml.why))
    if len(found) == 1:
        lost.append(Missing("links between GPUs", "there is one GPU only"))
    lost += [
        Missing(f"peer access {pair.source} → {pair.target}", "reported, but a copy did not arrive intact")
        for pair in pairs
        if pair.access and pair.arrives is False
    ]
    if len(nodes) == 1:
        lost.append(Missing("NUMA effects", "the system shows one memory node"))
    return tuple(lost)
