"""What lies in the cache of machine code is checked before it is used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from peergrid.codegen.nvrtc import compile_cubin

pytest.importorskip("cuda.core")
pytestmark = pytest.mark.nvrtc
TEXTS = tuple(f'extern "C" __global__ void store(int* a) {{ *a = {n}; }}' for n in (1, 2))


def files(cache: Path) -> list[Path]:
    return sorted(path for path in cache.rglob("*") if path.is_file() and path.stat().st_size > 1000)


def flipped(code: bytes) -> bytes:
    middle = len(code) // 2
    return code[:middle] + bytes([code[middle] ^ 1]) + code[middle + 1 :]


@pytest.mark.parametrize(
    "damage", [flipped, lambda code: code[:-7], lambda code: bytes(len(code)), lambda _: b"x" * 40]
)
def test_a_damaged_entry_is_compiled_anew(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    code = compile_cubin(TEXTS[0], "sm_90", tmp_path)
    (file,) = files(tmp_path)
    file.write_bytes(damage(file.read_bytes()))
    assert compile_cubin(TEXTS[0], "sm_90", tmp_path) == code


def test_an_entry_under_the_name_of_another_is_compiled_anew(tmp_path: Path) -> None:
    code = compile_cubin(TEXTS[0], "sm_90", tmp_path / "one")
    compile_cubin(TEXTS[1], "sm_90", tmp_path / "two")
    (mine,), (other,) = files(tmp_path / "one"), files(tmp_path / "two")
    mine.write_bytes(other.read_bytes())
    assert compile_cubin(TEXTS[0], "sm_90", tmp_path / "one") == code


def test_a_good_entry_is_used(tmp_path: Path) -> None:
    code = compile_cubin(TEXTS[0], "sm_90", tmp_path)
    (file,) = files(tmp_path)
    before = file.stat().st_mtime_ns, file.stat().st_ino
    assert compile_cubin(TEXTS[0], "sm_90", tmp_path) == code
    assert (file.stat().st_mtime_ns, file.stat().st_ino) == before
