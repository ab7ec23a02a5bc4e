"""docs/command-line.md names every command, every option, every key of `--json`."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer

from peergrid.cli import app
from peergrid.cli.choose import CommandLineOptions
from peergrid.cli.farm import FarmSummary
from peergrid.cli.image import Changed
from peergrid.cli.plan import Plan
from peergrid.cli.summary import Summary
from peergrid.cli.survey import SurveySummary
from peergrid.cli.trace import Traced

TEXT = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text()
WORDS = set(re.findall(r"`([^`]+)`", TEXT))


def test_every_command() -> None:
    named = {word.split()[0] for word in WORDS}
    assert {command.callback.__name__ for command in app.registered_commands if command.callback} <= named


def test_every_option_of_the_arrangement() -> None:
    assert {f"--{field.name}" for field in fields(CommandLineOptions)} <= WORDS


COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_every_command(name: str) -> None:
    named = set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", " ".join(WORDS)))
    taken = [one for one in COMMANDS[name].params if one.param_type_name == "option"]
    assert {word for one in taken for word in (*one.opts, *one.secondary_opts)} - {"--help"} <= named


OBJECTS = {
    "`run`": Summary,
    "`run`, of a survey": SurveySummary,
    "`plan`": Plan,
    "`trace`": Traced,
    "`farm`": FarmSummary,
    "`image`": Changed,
}


@pytest.mark.parametrize(("head", "kind"), OBJECTS.items(), ids=OBJECTS)
def test_every_key(head: str, kind: type) -> None:
    table = TEXT.partition(f"| {head} | |\n")[2].partition("\n\n")[0]
    named = set(re.findall(r"`(\w+)`", table))
    assert {field.name for field in fields(kind)} <= named
