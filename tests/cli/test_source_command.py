"""`peergrid source`: the kernels of a model, without a GPU."""

from __future__ import annotations

from pathlib import Path

from cli_call import Call


def test_the_kernels_of_a_model(call: Call, model: Path) -> None:
    found = call("source", model, "--steps", 1)
    assert found.code == 0, found.err
    assert found.out.startswith("// One step per pass")
    assert "__global__ void __launch_bounds__(256) cells_0" in found.out
    assert "def " in call("source", model, "--target", "cpu").out


def test_refusals(call: Call, model: Path) -> None:
    for words, sentence in (
        (("--steps", 0), "'--steps' takes a whole number above 0, got 0.\n"),
        (("--target", "ptx"), "Source is generated for cpu or cuda, got 'ptx'.\n"),
        (("--steps", 99), "No kernel makes 99 steps of this problem in one pass; ask for fewer, or for 1.\n"),
    ):
        found = call("source", model, *words)
        assert (found.code, found.err) == (2, sentence)
