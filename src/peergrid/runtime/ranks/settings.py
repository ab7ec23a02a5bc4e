"""Settings of MPI, its transports, NCCL, NVSHMEM and CUDA that are in force: of the environment, and of files."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

NAMES = (
    *("UCX_", "FI_", "MPICH_", "MPIR_CVAR_", "I_MPI_", "OMPI_MCA_", "PRTE_MCA_"),
    *("NCCL_", "NVSHMEM_", "CUDA_VISIBLE_DEVICES"),
)
"""The first letters of the names of variables that MPI, its transports, NCCL, NVSHMEM and CUDA read."""
SECONDS = 10.0  # for ucx_info


def settings(environment: Mapping[str, str] = os.environ, root: Path = Path("/")) -> dict[str, str]:
    """Values by name, with the place behind those that no variable sets; a file's value holds where no variable does.

    Files: `ucx.conf` of the home folder, of /etc/ucx and of UCX_CONFIG_DIR, Open MPI's `mca-params.conf`, NCCL's
    `nccl.conf`. Where `ucx_info` is installed, further settings that it finds are reported, too (`ucx_info -caf`).
    """
    found = {key: value for key, value in sorted(environment.items()) if key.startswith(NAMES)}
    for path, prefix in _files(environment, root):
        for key, value in _entries(path):
            found.setdefault(f"{prefix}{key}", f"{value} (of {path})")
    for key, value in _of_ucx(environment).items():
        found.setdefault(key, f"{value} (by ucx_info)")
    return found


def _files(environment: Mapping[str, str], root: Path) -> Iterator[tuple[Path, str]]:
    """The files that are read, those that go first before the others, and what their names lack."""
    home = Path(environment.get("HOME", "/nowhere"))
    folders = [home, root / "etc" / "ucx"]
    if environment.get("UCX_CONFIG_DIR"):
        folders.insert(0, Path(environment["UCX_CONFIG_DIR"]))
    yield from ((folder / "ucx.conf", "") for folder in folders)
    yield home / ".openmpi" / "mca-params.conf", "OMPI_MCA_"
    yield root / "etc" / "openmpi" / "openmpi-mca-params.conf", "OMPI_MCA_"
    yield Path(environment.get("NCCL_CONF_FILE") or home / ".nccl.conf"), ""
    yield root / "etc" / "nccl.conf", ""


def _entries(path: Path) -> Iterator[tuple[str, str]]:
    """The names and values of a file of such lines; none where it cannot be read."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        key, equals, value = line.partition("#")[0].partition("=")
        if equals and key.strip():
            yield key.strip(), value.strip()


def _of_ucx(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings of UCX that differ from those of its bare library; none where its tool is not installed."""
    tool = shutil.which("ucx_info", path=environment.get("PATH", ""))
    if tool is None:
        return {}
    bare = {key: value for key, value in environment.items() if not key.startswith("UCX_")}
    nowhere = {**bare, "UCX_CONFIG_DIR": "/nowhere", "HOME": "/nowhere"}
    here, usual = (_reported(tool, one) for one in (environment, nowhere))
    return {key: value for key, value in here.items() if usual.get(key) != value}


def _reported(tool: str, environment: Mapping[str, str]) -> dict[str, str]:
    try:
        done = subprocess.run(
            [tool, "-caf"], capture_output=True, text=True, timeout=SECONDS, env=dict(environment), check=False
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    lines = (line.partition("=") for line in done.stdout.splitlines() if line.startswith("UCX_"))
    return {key.strip(): value.strip() for key, _, value in lines}
