"""From LLVM's intermediate representation to machine code of this processor, kept in a folder as it was emitted."""

from __future__ import annotations

import hashlib
import os
import stat
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from peergrid.codegen.cache import keep_within
from peergrid.files import draft

OTHERS = stat.S_IWGRP | stat.S_IWOTH
DIGEST = 32  # bytes of a checksum, before the code
KEPT = 256  # texts whose code stays in the process


@dataclass(frozen=True, eq=False)
class Native:
    """A compiled function: its address, and the engine that its code belongs to."""

    address: int
    engine: Any


@lru_cache(maxsize=1)
def _processor() -> tuple[str, str, str]:
    """The target of machine code: the kind of machine, the processor, its features."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def shifts_vectors() -> bool:
    """True if this processor takes one instruction to shift two vectors of 64 bytes together."""
    return "+avx512f" in _processor()[2].split(",")


def _machine() -> Any:
    triple, cpu, features = _processor()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="jitdefault", jit=True
    )


@lru_cache(maxsize=KEPT)
def compile_function(text: str, name: str, cache: Path | None, *, optimise: bool = False) -> Native:
    """A function of a module; cache: folder for machine code, where one can be had; optimise: by all passes of LLVM,
    which row functions do without.
    """
    machine = _machine()
    key = hashlib.sha256(repr((text, optimise, _processor(), llvm.llvm_version_info)).encode()).hexdigest()
    path = None if cache is None else cache / f"peergrid_{name}_{key[:24]}.o"
    code = None if path is None else _kept(path)
    if code is None:
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = _processor()[0], str(machine.target_data)
        module.verify()
        if optimise:
            options = llvm.create_pipeline_tuning_options(speed_level=3)
            passes = llvm.create_pass_builder(machine, options)
            passes.getModulePassManager().run(module, passes)
        code = machine.emit_object(module)
        if path is not None:
            _keep(path, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Native(engine.get_function_address(name), engine)


def _kept(path: Path) -> bytes | None:
    """The code of a file in a folder of this user's alone, if it is there and whole."""
    try:
        _make_private(path.parent)
        content = path.read_bytes()
        os.utime(path)  # used now
    except OSError:
        return None
    code = content[DIGEST:]
    return code if hashlib.sha256(code).digest() == content[:DIGEST] else None


def _keep(path: Path, code: bytes) -> None:
    """Write a file for the next start; a folder that cannot be written does no harm."""
    with suppress(OSError):
        _make_private(path.parent)
        with draft(path) as file:
            file.write_bytes(hashlib.sha256(code).digest() + code)
        _bound(path.parent)


@lru_cache
def _bound(folder: Path) -> None:
    """Keep a folder within its bound, once per process: with thousands of files that takes longer than to compile."""
    keep_within(folder)


def _make_private(folder: Path) -> None:
    """Make a folder for machine code, if it is not there.

    Raises OSError where others may write to it: what lies in it is executed.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = folder.stat()
    if found.st_uid != os.geteuid() or found.st_mode & OTHERS:
        raise PermissionError(f"{folder} is not this user's alone")
