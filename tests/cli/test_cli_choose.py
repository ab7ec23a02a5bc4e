"""What the command line asks for goes before the model file."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_call import MODEL, Call

from peergrid import UsageError
from peergrid.cli.choose import CommandLineOptions
from peergrid.models.modelfile import parse

RUN = '[run]\ndevices = "cpu:3"\nstrategy = "peer"\ndepth = 4\nexchange = "pairwise"\nroute = "store"\n'


def test_the_command_line_goes_first() -> None:
    model = parse(MODEL + RUN)
    found = CommandLineOptions().requested(model)
    assert (str(found.devices), found.strategy, found.depth, found.order, found.route, found.split) == (
        "cpu:3", "peer", 4, "pairwise", "store", None
    )  # fmt: skip
    found = CommandLineOptions("cpu:4", "async", "2", "all", "host", "2x2").requested(model)
    assert (str(found.devices), found.strategy, found.depth, found.order, found.route, found.split) == (
        "cpu:4", "async", 2, "all", "host", (2, 2)
    )  # fmt: skip
    found = CommandLineOptions("cpu:1").requested(parse(MODEL))
    assert (found.strategy, found.depth, found.order, found.route, found.split) == (None,) * 5


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (CommandLineOptions(strategy="fast"), "A strategy is one of serial, async"),
        (CommandLineOptions(depth="0"), "'--depth' takes a whole number above 0 "),
        (CommandLineOptions(order="any"), "An exchange order is one of "),
        (
            CommandLineOptions(route="nvlink"),
            "A route is one of copy, store, host, mpi, mpi-direct, nccl, nvshmem, got 'nvlink'.",
        ),
        (CommandLineOptions(split="2"), "'--split' takes 2 numbers such as 2x2, got '2'."),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: CommandLineOptions, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence.replace("(", r"\(")):
        arguments.requested(parse(MODEL))


def test_the_depth_is_at_most_the_steps_of_the_run(call: Call, model: Path) -> None:
    """Else every pass would be made ready for steps that never come, for minutes."""
    words = ("--devices", "cpu:1", "--steps", 6, "--depth", 10_000, "--no-write", "--json")
    found = call("run", model, *words).json
    assert found["depth"] == 6
    assert found["notes"] == ["A run of 6 steps cannot have more between exchanges: the depth is 6, not 10000."]


def test_every_command_that_arranges_has_every_option(call: Call, model: Path) -> None:
    words = (
        "--devices",
        "cpu:2",
        "--strategy",
        "peer",
        "--depth",
        2,
        "--order",
        "all",
        "--route",
        "store",
        "--split",
        "2x1",
    )
    for command in ("plan", "run", "trace"):
        extra = ("--no-write",) if command == "run" else ()
        found = call(command, model, *words, *extra, "--json")
        assert found.code == 0, found.err
        assert (found.json["strategy"], found.json["depth"]) == ("peer", 2)
        assert found.json["notes"] == []
