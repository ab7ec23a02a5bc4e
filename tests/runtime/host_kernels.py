"""Generated kernels as shared libraries of this host; each text is compiled once, for all tests and later runs."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

from peergrid.codegen.cuda.skeletons import expanded, skeleton

COMPILER = shutil.which("g++")
HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / ".pytest_cache" / "d" / "host-kernels"
QUICKER = ("exceptions", "asynchronous-unwind-tables", "use-linker-plugin", "ipa-icf", "ipa-modref", "ipa-pure-const")
"""What takes an eighth of the compiler's time and is not needed."""
OPTIONS = (
    *("-std=c++20", "-O1", "-ffp-contract=off", "-fno-math-errno", "-fno-tree-pta", "-fPIC", "-shared", "-w"),
    *(f"-fno-{one}" for one in QUICKER),
    f"-I{HERE}",
)
HEAD = (HERE / "host_device.hpp").read_text()
OWN = {
    skeleton("async_copy.cuh"): "template <int N> struct Pack { R v[N]; };\n",
    skeleton("system_memory.cuh"): "",
    skeleton("nvshmem.cuh"): (HERE / "host_nvshmem.hpp").read_text(),
    "extern __shared__ __align__(128) unsigned char shared[];": "unsigned char* const shared = host::memory();",
}
"""What of generated text is CUDA's own, and what stands for it on the host."""


def kernels(source: str) -> str:
    """Generated text as C++."""
    source = expanded(source)
    for own, host in OWN.items():
        source = source.replace(own, host)
    return f'#include "host_device.hpp"\n{source}'


def library(text: str) -> Path:
    """The library of a text that includes `host_device.hpp`."""
    return _compiled(text, str(_fibres()))


@cache
def _fibres() -> Path:
    return _compiled((HERE / "fibres.cpp").read_text())


def _compiled(text: str, *linked: str) -> Path:
    """Written under a name of its own first, so that nobody sees half of a file; who else wants it waits for it."""
    known = "\0".join((*OPTIONS, *linked, HEAD, text))
    path = FOLDER / f"{hashlib.sha256(known.encode()).hexdigest()[:24]}.so"
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        with (FOLDER / f"{path.name[:2]}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                _compile(text, linked, path)
    return path


def _compile(text: str, linked: tuple[str, ...], path: Path) -> None:
    part = path.with_suffix(f".{os.getpid()}")
    command = [str(COMPILER), *OPTIONS, "-o", str(part), "-x", "c++", "-", "-x", "none", *linked]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    part.replace(path)
