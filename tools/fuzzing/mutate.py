"""Files a little other than they should be: bytes, lines and numbers are changed, doubled, moved and left out."""

from __future__ import annotations

import re
from random import Random

NUMBERS = (
    b"0", b"-1", b"1", b"-0.0", b"nan", b"inf", b"-inf", b"1e308", b"-1e308", b"1e-308", b"1e20", b"1e21", b"1e-20",
    b"2147483648", b"4294967296", b"9223372036854775808", b"1e9", b"1000000000", b"0x" + b"f" * 400, b"1" * 4400,
    b"1_0", b"0.1", b"65536", b"true", b'"1"', b"[]", b"[1]", b"{}", b"1979-05-27", b"''",
)  # fmt: skip
TOKENS = (
    b"[", b"]", b"[[", b"]]", b"{", b"}", b'"', b"'", b'"""', b"=", b",", b".", b"\n", b"\x00", b"\\u0000", b"\\n",
    b"$", b"%s", b"../", b"/dev/zero", b"/etc/passwd", b"<script>", b"\xff\xfe", b"\xe2\x80\xae", b"#",
    b"[grid]", b"[run]",
    b'kind = "plane_wave"', b'kind = "voxels"', b"a" * 300, b"\x1b[31m", b"[" * 1000,
)  # fmt: skip
NUMBER = re.compile(rb"-?\d[\d.]*(?:e-?\d+)?")
WORD = re.compile(rb"[A-Za-z_]{2,}")


def mutated(data: bytes, choose: Random) -> bytes:
    """The same with some changes."""
    for _ in range(choose.choice((1, 1, 1, 2, 3, 8))):
        data = choose.choice((_bits, _piece, _number, _number, _token, _lines, _words, _cut))(data, choose)
    return data[: 1 << 20]


def _bits(data: bytes, choose: Random) -> bytes:
    if not data:
        return data
    place = choose.randrange(len(data))
    return data[:place] + bytes([data[place] ^ 1 << choose.randrange(8)]) + data[place + 1 :]


def _piece(data: bytes, choose: Random) -> bytes:
    """A piece that is left out, doubled or filled with one byte."""
    start = choose.randrange(len(data) + 1)
    end = min(len(data), start + choose.choice((1, 2, 4, 8, 50, 400)))
    filled = bytes([choose.randrange(256)]) * (end - start)
    return data[:start] + choose.choice((b"", 2 * data[start:end], filled)) + data[end:]


def _number(data: bytes, choose: Random) -> bytes:
    return _replaced(data, NUMBER, choose.choice(NUMBERS), choose)


def _words(data: bytes, choose: Random) -> bytes:
    found = WORD.findall(data)
    return _replaced(data, WORD, choose.choice(found), choose) if found else data


def _replaced(data: bytes, pattern: re.Pattern[bytes], value: bytes, choose: Random) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    one = choose.choice(found)
    return data[: one.start()] + value + data[one.end() :]


def _token(data: bytes, choose: Random) -> bytes:
    place = choose.randrange(len(data) + 1)
    return data[:place] + choose.choice(TOKENS) + data[place:]


def _lines(data: bytes, choose: Random) -> bytes:
    """Two lines change places, or one takes that of another."""
    lines = data.split(b"\n")
    one, two = choose.randrange(len(lines)), choose.randrange(len(lines))
    lines[one] = lines[two] if choose.random() < 0.5 else lines[one]
    lines[one], lines[two] = lines[two], lines[one]
    return b"\n".join(lines)


def _cut(data: bytes, choose: Random) -> bytes:
    return data[: choose.randrange(len(data) + 1)]
