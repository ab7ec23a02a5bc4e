"""NVRTC of a folder of one's own, called through ctypes: the package `cuda.core` has one version in a process."""

from __future__ import annotations

from ctypes import CDLL, byref, c_char_p, c_int, c_size_t, c_void_p, create_string_buffer
from pathlib import Path

from peergrid.codegen.cuda.skeletons import expanded

OPTIONS = ("--std=c++17", "--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true")
"""As `peergrid.codegen.nvrtc` asks for them."""


def load(folder: Path) -> CDLL:
    """The library below a folder. Raises FileNotFoundError where there is none."""
    for found in sorted(folder.rglob("libnvrtc.so.*")):
        for beside in found.parent.glob("libnvrtc-builtins.so.*"):
            CDLL(str(beside))  # which the library asks for by its name alone
        return CDLL(str(found))
    raise FileNotFoundError(f"{folder} has no libnvrtc.so: pip install --target {folder} nvidia-cuda-nvrtc==VERSION")


def version(nvrtc: CDLL) -> str:
    """Major and minor number."""
    major, minor = c_int(), c_int()
    nvrtc.nvrtcVersion(byref(major), byref(minor))
    return f"{major.value}.{minor.value}"


def refusal(nvrtc: CDLL, source: str, arch: str) -> str:
    """The first error in the compiler's words; an empty string where it made code for the architecture."""
    program, arguments = c_void_p(), [f"--gpu-architecture={arch}", *OPTIONS]
    nvrtc.nvrtcCreateProgram(byref(program), expanded(source).encode(), b"kernels.cu", 0, None, None)
    given = (c_char_p * len(arguments))(*(word.encode() for word in arguments))
    failed = nvrtc.nvrtcCompileProgram(program, len(arguments), given)
    said = _log(nvrtc, program) if failed else ""
    nvrtc.nvrtcDestroyProgram(byref(program))
    errors = [line for line in said.splitlines() if "error" in line]
    return (errors or [said.strip() or f"error {failed}"])[0] if failed else ""


def _log(nvrtc: CDLL, program: c_void_p) -> str:
    size = c_size_t()
    nvrtc.nvrtcGetProgramLogSize(program, byref(size))
    text = create_string_buffer(size.value)
    nvrtc.nvrtcGetProgramLog(program, text)
    return text.value.decode(errors="replace")
