"""Compiled code on disk: found again, and no harm where it cannot be kept."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stream_problems import plain

from peergrid.codegen.cache import default_cache
from peergrid.codegen.cpu import common, native
from peergrid.codegen.cpu.native import compile_function
from peergrid.codegen.cpu.vectors import copy_code
from peergrid.runtime.cpu.kernel import compile_kernel

PROBLEM = plain((5, 6), ("fixed", "fixed"), "float32")
TEXT = copy_code(PROBLEM, "u").text
WORKS = """
import sys
from pathlib import Path
import llvmlite.binding as llvm
from peergrid.codegen.cpu import common
from peergrid.codegen.cpu.native import compile_function

def forbidden(*arguments, **options):
    raise AssertionError("compiled again")

if sys.argv[2] == "warm":
    llvm.parse_assembly, parse = lambda text: parse(text) if text == "" else forbidden(), llvm.parse_assembly
    llvm.TargetMachine.emit_object = forbidden
folder = Path(sys.argv[1])
assert compile_function(Path(sys.argv[3]).read_text(), "rows", folder).address
assert common.norm("float32", folder)
"""
ROWS = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2)
Works = Callable[[Path | None], bool]
"""Whether code that is kept in a folder does what it should."""


@pytest.fixture(autouse=True)
def forgetful() -> None:
    """Nothing is known of what other tests compiled."""
    forget()


def forget() -> None:
    compile_function.cache_clear()
    for function in (common.driver, common.norm, common.reduce):
        function.cache_clear()


def copies(folder: Path | None) -> bool:
    """Of a row function."""
    function = compile_function(TEXT, "rows", folder)
    source, target = np.arange(40, dtype=np.float32), np.zeros(40, dtype=np.float32)
    pointers = np.array([target.ctypes.data, source.ctypes.data])
    strides = np.zeros(2, dtype=np.int64)
    ROWS(function.address)(pointers.ctypes.data, strides.ctypes.data, 1, 33)
    return bool((target[:33] == source[:33]).all() and not target[33:].any())


def sums(folder: Path | None) -> bool:
    """Of the sums of a norm, which is the same for all problems."""
    before, after = np.zeros((2, 40), dtype=np.float32), np.ones((2, 40), dtype=np.float32)
    found, halves = np.zeros(1), np.empty(10, dtype=np.float32)
    fields = (before.ctypes.data, 40, after.ctypes.data, 40)
    common.norm("float32", folder)(*fields, 2, 33, found.ctypes.data, 1, halves.ctypes.data)
    return bool(found[0] == 66)


every_function = pytest.mark.parametrize("works", [copies, sums])


def files(folder: Path) -> dict[str, int]:
    """The files and when they were written; what a start writes only the time of its use on is left out."""
    return {
        str(path.relative_to(folder)): 0 if path.suffix == ".o" else path.stat().st_mtime_ns
        for path in folder.rglob("*")
    }


def test_a_second_start_compiles_nothing(tmp_path: Path) -> None:
    text, folder = tmp_path / "text", tmp_path / "cache"
    text.write_text(TEXT)
    command = [sys.executable, "-W", "error", "-c", WORKS, str(folder)]
    subprocess.run([*command, "cold", str(text)], check=True, timeout=60)
    kept = files(folder)
    assert len(kept) == 2
    subprocess.run([*command, "warm", str(text)], check=True, timeout=60)
    assert files(folder) == kept


def test_a_zipped_package_computes(tmp_path: Path) -> None:
    package = Path(common.__file__).parents[3]
    archive = shutil.make_archive(str(tmp_path / "package"), "zip", package.parent, package.name)
    works = f"""
import sys
sys.path.insert(0, {archive!r})
import peergrid

@peergrid.stencil
def double(u):
    u.next[0] = 2 * u[0]

assert {archive!r} in peergrid.__file__
assert (peergrid.run(double(peergrid.Grid(9).field("u", 1.0)), 3, devices="cpu:2").fields["u"] == 8).all()
"""
    subprocess.run([sys.executable, "-W", "error", "-c", works], check=True, timeout=60, cwd=tmp_path)


@every_function
def test_without_a_folder_nothing_is_written(works: Works, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert works(None)
    assert not files(tmp_path)


@every_function
def test_a_folder_that_cannot_be_made_does_no_harm(works: Works, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert works(tmp_path / "file" / "cache")


@every_function
def test_a_full_disk_does_no_harm(works: Works, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert works(tmp_path)
    assert not files(tmp_path)


@every_function
def test_damaged_files_are_made_anew(works: Works, tmp_path: Path) -> None:
    assert works(tmp_path)
    for path in tmp_path.rglob("peergrid_*"):
        if path.is_file():
            path.write_bytes(b"damaged")
    forget()
    assert works(tmp_path)


def test_the_usual_folder_follows_the_xdg_specification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_cache() == tmp_path / "peergrid"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache() == tmp_path / ".cache" / "peergrid"


def test_a_user_without_a_home_has_a_folder_that_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(NotADirectoryError):
        default_cache().mkdir(parents=True)


@pytest.mark.parametrize("folder", ["cache", "file/cache"], ids=["kept", "that cannot be made"])
def test_a_process_loads_or_compiles_a_text_once(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("in the way")
    one, two = compile_kernel(PROBLEM, tmp_path / folder), compile_kernel(PROBLEM, tmp_path / folder)
    one.prepare(PROBLEM.grid.box, 2)
    made = compile_function.cache_info().misses
    two.prepare(PROBLEM.grid.box, 2)
    assert made == compile_function.cache_info().misses


def test_functions_are_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(
        "peergrid.runtime.cpu.kernel.compile_function",
        lambda text, name, cache: compiled.append(text) or compile_function(text, name, cache),
    )
    kernel = compile_kernel(PROBLEM, tmp_path)
    for steps in (1, 2, 5):
        kernel.prepare(PROBLEM.grid.box, steps)
    assert len(compiled) == len(set(compiled)) == 3  # the update; values carried over, of many cells and of few


def code_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("peergrid_*.o"))


@every_function
def test_machine_code_with_one_bit_changed_is_compiled_anew(works: Works, tmp_path: Path) -> None:
    """It would run, or end every later start."""
    assert works(tmp_path)
    assert code_in(tmp_path)
    for path in code_in(tmp_path):
        good = path.read_bytes()
        for place in (len(good) // 7, len(good) // 2):
            bad = good[:place] + bytes([good[place] ^ 4]) + good[place + 1 :]
            path.write_bytes(bad)
            forget()
            assert works(tmp_path)
            assert path.read_bytes() != bad
            good = path.read_bytes()


@every_function
def test_a_folder_that_others_may_write_to_is_not_used(works: Works, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert works(shared)
    assert not files(shared)


@every_function
def test_a_folder_that_is_made_is_the_users_alone(works: Works, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        assert works(tmp_path / "cache")
    finally:
        os.umask(before)
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700


def test_a_relative_folder_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_cache() == tmp_path / ".cache" / "peergrid"


def test_a_process_bounds_a_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bounded: list[Path] = []
    monkeypatch.setattr(native, "keep_within", bounded.append)
    compile_kernel(PROBLEM, tmp_path).prepare(PROBLEM.grid.box, 2)
    assert len(code_in(tmp_path)) > 1
    assert bounded == [tmp_path]
