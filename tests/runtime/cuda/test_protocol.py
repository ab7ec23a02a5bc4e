"""The protocol of kernels with fused exchange, read from their text, in every order that weak memory allows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest
from fused_protocol.model import Protocol, explore, mutants
from fused_protocol.text import KernelText
from runtime_problems import random_heat, yee_with_absorber

from peergrid.codegen.cuda.choose.shape2d import pass_kernel
from peergrid.codegen.cuda.fused.peer import PeerKernel
from peergrid.codegen.cuda.fused.persistent import PersistentKernel
from peergrid.codegen.cuda.skeletons import expanded


def texts() -> Iterator[KernelText]:
    for problem in (random_heat((90, 200)), yee_with_absorber((150, 330))):
        made = pass_kernel(problem, 3)
        assert made is not None
        peer, resident = PeerKernel.of(made), (PersistentKernel(made, interior=plain) for plain in (True, False))
        programs = [peer.interior, peer.boundary, peer.layer, *(kernel.program for kernel in resident)]
        yield from (KernelText(expanded(program.source), program.entry) for program in programs if program is not None)


@cache
def protocols() -> tuple[Protocol, ...]:
    return tuple(dict.fromkeys(protocol for text in texts() for protocol in text.protocols().values()))


def test_the_texts_have_three_protocols() -> None:
    """Of kernels for each pass, and of interior and boundary tiles in one for all."""
    assert sorted((protocol.resident, protocol.direct) for protocol in protocols()) == [
        (False, False),
        (True, False),
        (True, True),
    ]
    for protocol in protocols():
        assert protocol.acquire
        assert protocol.release
        assert protocol.parity


@pytest.mark.parametrize(("devices", "tiles", "ring"), [(2, 1, False), (2, 2, False), (2, 1, True), (3, 1, False)])
def test_nothing_goes_wrong_in_any_order(devices: int, tiles: int, ring: bool) -> None:
    for protocol in protocols():
        found = explore(protocol, devices, 3, tiles, ring=ring)
        assert found.fault == ""
        assert found.states > 50


def test_nothing_goes_wrong_on_four_devices() -> None:
    (launched,) = (protocol for protocol in protocols() if not protocol.resident)
    assert explore(launched, 4, 3).fault == ""


def fault(protocol: Protocol) -> str:
    """The first fault on two devices with one or two tiles at each end."""
    return next((found for tiles in (1, 2) if (found := explore(protocol, 2, 3, tiles).fault)), "")


SPARE = {
    (False, False): {"no fence (6)", "no release", "no parity"},
    (True, False): {"no sync (6)", "no sync (10)"},
    (True, True): set[str](),
}
"""What may be left out alone, by `resident` and `direct`. Where kernels end with each pass, either of fence and release
is enough, and no tile makes its next pass before another has signalled this one. Interior tiles in a kernel for all
passes have a barrier of their warp behind that of the block, and one at the end of a pass, behind which they wait.
"""


def test_whatever_is_left_out_is_found() -> None:
    for protocol in protocols():
        unfound = {name for name, mutant in mutants(protocol) if not fault(mutant)}
        assert unfound == SPARE[protocol.resident, protocol.direct]


@pytest.mark.parametrize(("entry", "part", "instead"), [
    ("persistent2d", "red.release.sys", "red.relaxed.sys"),
    ("persistent2d", "ld.acquire.sys", "ld.relaxed.sys"),
    ("persistent2d", "red.release.gpu", "red.relaxed.gpu"),
    ("persistent2d", "e.side[side].remote + (passed & 1)", "e.side[side].remote"),
    ("persistent2d", "          __syncwarp();\n          if (lane == 0) signal_n", "          if (lane == 0) signal_n"),
    ("persistent2d", "if (threadIdx.x == 0) arrive_device(p.arrived);\n        }", ";\n        }"),
    ("stream2d_peer", "  __syncwarp();\n  if (lane == 0) signal_n", "  if (lane == 0) signal_n"),
    ("stream2d_peer", "if (lane == 0) signal_neighbours(a, e, tile, e.passed);", ""),
    ("stream2d_peer", "put_halos(a, e, tile, a.target, lane, 32);", ""),
    ("stream2d_peer", "if (lane == 0) fine = await_neighbours(a, e, tile, e.passed);", ""),
    ("edge2d_peer", "  const int fine = *word;\n  __syncthreads();", "  const int fine = *word;"),
])  # fmt: skip
def test_what_is_left_out_of_the_text_is_found(entry: str, part: str, instead: str) -> None:
    text = next(text for text in texts() if text.entry == entry)
    assert part in text.source
    broken = replace(text, source=text.source.replace(part, instead))
    changed = [p for p in broken.protocols().values() if p not in protocols()]
    if entry == "edge2d_peer":  # the block's barrier before is enough
        assert not changed
        return
    assert changed
    assert all(map(fault, changed))


@pytest.mark.parametrize("name", ["signal_neighbours", "await_neighbour"])
def test_a_text_of_another_shape_is_refused(name: str) -> None:
    text = next(texts())
    with pytest.raises(ValueError, match=f"no function {name}"):
        replace(text, source=text.source.replace(name, f"{name}_of_ones_own")).protocols()
    with pytest.raises(ValueError, match="no function nobody"):
        replace(text, entry="nobody").protocols()
