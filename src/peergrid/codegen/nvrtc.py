"""Compile CUDA C++ to machine code by NVRTC through cuda.core, with a cache on disk; without a GPU or a toolkit."""

from __future__ import annotations

import hashlib
import io
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

from peergrid.codegen.cache import MOST_BYTES
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.errors import DoesNotFit, PeergridError, UsageError, extra

IMPORTING = threading.Lock()
"""The lock of imports of cuda.core, and of modules that import it, without which a second thread finds it half made."""


CHECKSUM_BYTES = 32
CHECKED = "checked"  # a separate folder: older versions, which check nothing, would load the checksum as code
_NO_MEMORY = re.compile("out of memory|memory allocation failure", re.IGNORECASE)


class CompileError(PeergridError):
    """The compiler refuses a generated kernel, a fault of peergrid; the message has its log and the text."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message)
        self.source = source


@dataclass(frozen=True)
class Resources:
    """The resources that a kernel takes, from the compiler's report.

    registers: of a thread; stack, spills: bytes of local memory of a thread, and those of them for spilled registers;
    shared: bytes of shared memory that the text declares.
    """

    registers: int
    stack: int
    spills: int
    shared: int


def compile_cubin(source: str, arch: str, cache: Path | None = None, file: Path | None = None) -> bytes:
    """The machine code of a program for an architecture such as `sm_90`.

    IEEE arithmetic as written: no contraction, no fast math. cache: a folder that keeps results between runs (one that
    cannot be written does no harm); file: where the text lies, for profilers to show its lines.

    Raises CompileError if the compiler refuses the text, DoesNotFit if it has too little memory, UsageError without the
    packages.
    """
    program = _program(source, arch, file=file)
    log = io.StringIO()
    try:
        found = _compile(program, log, cache)
    except Exception as error:
        said = f"{error} {log.getvalue()}"
        if isinstance(error, MemoryError) or _NO_MEMORY.search(said):
            raise DoesNotFit("NVRTC has too little memory on this machine to compile a kernel; free some.") from error
        raise CompileError(_refusal(error, log.getvalue()), source) from error
    finally:
        program.close()
    return bytes(found.code)


def relocatable_cubin(source: str, arch: str, headers: Sequence[Path]) -> bytes:
    """The machine code of a program that calls functions of a library, to be completed by it; headers: their folders.

    Raises CompileError if the compiler refuses the text.
    """
    from cuda.core import Program, ProgramOptions

    options = ProgramOptions(
        arch=arch,
        std="c++17",
        include_path=[str(folder) for folder in headers],
        relocatable_device_code=True,
        device_as_default_execution_space=True,  # some headers leave the space of their functions out
    )
    log, program = io.StringIO(), Program(expanded(source), "c++", options)
    try:
        return bytes(program.compile("cubin", logs=log).code)
    except Exception as error:
        raise CompileError(_refusal(error, log.getvalue()), source) from error
    finally:
        program.close()


def link(relocatable: bytes, arch: str, library: Path) -> bytes:
    """Machine code completed by the functions of a library. Raises UsageError where that is of another version."""
    from cuda.core import Linker, LinkerOptions, ObjectCode

    parts = ObjectCode.from_cubin(relocatable), ObjectCode.from_library(str(library))
    try:
        return bytes(Linker(*parts, options=LinkerOptions(arch=arch)).link("cubin").code)
    except Exception as error:
        raise UsageError(
            f"'{library}' does not link with a generated kernel; install another version: {error}"
        ) from error


def resources(source: str, arch: str) -> dict[str, Resources]:
    """The resources of each kernel of a program, by its name."""
    program = _program(source, arch, ["-v"])
    log = io.StringIO()
    try:
        program.compile("cubin", logs=log)
    except Exception as error:
        raise CompileError(_refusal(error, log.getvalue()), source) from error
    finally:
        program.close()
    return _parse(log.getvalue())


def version() -> str:
    """The version of NVRTC in use, as exactly as known."""
    try:
        return metadata.version("nvidia-cuda-nvrtc")
    except metadata.PackageNotFoundError:
        from cuda.bindings import nvrtc

        _, major, minor = nvrtc.nvrtcVersion()
        return f"{major}.{minor}"


def _program(source: str, arch: str, ptxas: list[str] | None = None, file: Path | None = None) -> Any:
    try:
        with IMPORTING:
            from cuda.core import Program, ProgramOptions
    except ImportError:
        raise UsageError(f"Kernels for GPUs need the CUDA packages: {extra('cuda')}.") from None
    options = ProgramOptions(
        arch=arch,
        std="c++17",
        fma=False,
        ftz=False,
        prec_div=True,
        prec_sqrt=True,
        use_fast_math=False,
        ptxas_options=ptxas,
        **({} if file is None else {"lineinfo": True, "name": str(file)}),
    )
    return Program(expanded(source), "c++", options)


def _compile(program: Any, log: io.StringIO, folder: Path | None) -> Any:
    """The compiled program, from the cache if possible."""
    if folder is not None:
        try:
            return program.compile(
                "cubin", logs=log, cache=_checked_cache()(str(folder / CHECKED), max_size_bytes=MOST_BYTES)
            )
        except OSError:
            pass
    return program.compile("cubin", logs=log)


@lru_cache(maxsize=1)
def _checked_cache() -> Any:
    """The class of a disk cache that detects damaged entries, which are then compiled again."""
    with IMPORTING:
        from cuda.core.utils import FileStreamProgramCache

    def checksum(key: bytes | str, code: bytes) -> bytes:
        return hashlib.sha256((key.encode() if isinstance(key, str) else bytes(key)) + code).digest()

    class CheckedCache(FileStreamProgramCache):  # type: ignore[misc]
        """Each entry begins with the SHA-256 of its key and its code."""

        def __getitem__(self, key: bytes | str) -> bytes:
            stored = bytes(super().__getitem__(key))
            code = stored[CHECKSUM_BYTES:]
            if stored[:CHECKSUM_BYTES] != checksum(key, code):
                raise KeyError(key)
            return code

        def __setitem__(self, key: bytes | str, value: Any) -> None:
            code = bytes(getattr(value, "code", value))
            super().__setitem__(key, checksum(key, code) + code)

    return CheckedCache


def _refusal(error: Exception, log: str) -> str:
    said = log.strip() or str(error)
    return f"NVRTC refused a generated kernel; please report it with this text: {said}"


def _parse(log: str) -> dict[str, Resources]:
    found: dict[str, Resources] = {}
    for part in re.split(r"Compiling entry function ", log)[1:]:
        name = part[1 : part.index("'", 1)]
        numbers = {
            key: int(match[1]) if (match := re.search(pattern, part)) else 0
            for key, pattern in (
                ("registers", r"Used (\d+) registers"),
                ("stack", r"(\d+) bytes stack frame"),
                ("spills", r"(\d+) bytes spill stores"),
                ("shared", r"(\d+) bytes smem"),
            )
        }
        found[name] = Resources(**numbers)
    return found
