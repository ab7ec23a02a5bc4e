"""From LLVM's intermediate representation to machine code of this processor, kept in a folder as it was emitted."""

from __future__ import annotations

import hashlib
import os
import tempfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

DIGEST = 32  # bytes of a checksum, before the code
HEAD = "; rows in vectors"  # the first line of a module that is compiled here


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


def _machine() -> Any:
    triple, cpu, features = _processor()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=cpu, features=features, opt=3, reloc="pic", codemodel="jitdefault", jit=True
    )


def compile_native(text: str, cache: Path | None) -> Native:
    """The function `rows` of a module."""
    machine = _machine()
    key = repr((text, _processor(), llvm.llvm_version_info))
    path = None if cache is None else cache / f"peergrid_vectors_{hashlib.sha256(key.encode()).hexdigest()[:24]}.o"
    code = None if path is None else _kept(path)
    if code is None:
        module = llvm.parse_assembly(text)
        module.triple, module.data_layout = _processor()[0], str(machine.target_data)
        module.verify()
        code = machine.emit_object(module)
        if path is not None:
            _keep(path, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return Native(engine.get_function_address("rows"), engine)


def _kept(path: Path) -> bytes | None:
    """The code of a file, if it is there and whole."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code = content[DIGEST:]
    return code if hashlib.sha256(code).digest() == content[:DIGEST] else None


def _keep(path: Path, code: bytes) -> None:
    """Write a file whole or not at all; a folder that cannot be written does no harm."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError:
        return
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(draft, path)
    except OSError:
        Path(draft).unlink(missing_ok=True)
