"""`peergrid source`: the kernels of a model, without a GPU."""

from __future__ import annotations

import re
from pathlib import Path

from cli_call import Call


def test_the_kernels_of_a_model(call: Call, model: Path) -> None:
    found = call("source", model, "--steps", 1)
    assert found.code == 0, found.err
    assert found.out.startswith("// 1 step per pass, strategy overlap, 1 GPU: what the run compiles")
    assert re.search(r"^// a.fields: .*\[\d+\] Ez\b", found.out, re.MULTILINE)
    assert re.search(r"^// cells_0: .* small regions$", found.out, re.MULTILINE)
    assert "__global__ void __launch_bounds__(256) cells_0" in found.out
    assert "define void @rows(" in call("source", model, "--target", "cpu").out


def test_kernels_that_exchange_by_themselves(call: Call, model: Path) -> None:
    for words, kernel in (
        (("--strategy", "peer"), "edge2d_peer"),
        (("--strategy", "persistent", "--gpus", 2), "persistent2d"),
    ):
        found = call("source", model, "--steps", 2, *words)
        assert f"2 steps per pass, strategy {words[1]}, 2 GPUs" in found.out, found.err
        assert re.search(rf"^// {kernel}: ", found.out, re.MULTILINE)
        assert re.search(rf"\b{kernel}\(const", found.out)


def test_refusals(call: Call, model: Path) -> None:
    for words, sentence in (
        (("--steps", 0), "'--steps' takes a whole number above 0, got 0.\n"),
        (("--gpus", 0), "'--gpus' takes a whole number above 0, got 0.\n"),
        (
            ("--strategy", "rings"),
            "A strategy is one of serial, async, threads, overlap, graph, peer, persistent, got 'rings'.\n",
        ),
        (
            ("--strategy", "peer", "--target", "cpu"),
            "Kernels for CPUs are the same under every strategy; leave 'strategy' out.\n",
        ),
        (("--target", "ptx"), "Source is generated for cpu or cuda, got 'ptx'.\n"),
        (("--steps", 99), "No kernel makes 99 steps of this problem in one pass; use fewer, or 1.\n"),
    ):
        found = call("source", model, *words)
        assert (found.code, found.err) == (2, sentence)
