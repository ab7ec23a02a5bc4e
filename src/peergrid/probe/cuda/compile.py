"""CUDA C++ text of `kernels/` to machine code for one kind of GPU, through NVRTC by cuda.core."""

from __future__ import annotations

from functools import cache
from importlib import resources

from peergrid.errors import DeviceFault, extra

HEADED = ("groups",)
"""Sources that include headers of CUDA, which not every machine has."""
SOURCES = ("copy", "chase", "atomics", "order", "launch", "warp", "barrier", "arithmetic", "sparse", "reduction")


def text(source: str) -> str:
    """The text of a source with the common part before it."""
    folder = resources.files("peergrid.probe.cuda").joinpath("kernels")
    parts = [folder.joinpath(name).read_text(encoding="utf-8") for name in ("common.cuh", f"{source}.cu")]
    return "\n".join(parts)


@cache
def headers() -> tuple[str, ...]:
    """Folders with the headers of CUDA and its C++ library; empty if either is missing."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return ()
    found = [find_nvidia_header_directory(name) for name in ("cudart", "cccl")]
    return tuple(folder for folder in found if folder) if all(found) else ()


@cache
def cubin(source: str, architecture: str) -> bytes:
    """Machine code of a source for an architecture such as 'sm_90'; each is compiled once per process.

    Raises:
        DeviceFault: NVRTC is missing or refuses the text; the message holds its log.
    """
    try:
        from cuda import core
    except ImportError as error:
        raise DeviceFault(f"Kernels need cuda.core, which is not installed: {extra('cuda')}.") from error
    if not hasattr(core, "Program"):  # releases before 1.0 kept it in a room of its own
        from cuda.core import experimental as core
    folders = list(headers()) if source in HEADED else None
    options = core.ProgramOptions(std="c++17", arch=architecture, name=f"{source}.cu", include_path=folders)
    try:
        return bytes(core.Program(text(source), "c++", options).compile("cubin").code)
    except Exception as error:  # cuda.core raises several kinds, all with NVRTC's log in the text
        raise DeviceFault(f"NVRTC did not compile '{source}.cu' for {architecture}: {error}") from error
