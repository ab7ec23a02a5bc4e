"""The text of an input file as commands: `#name: words`, with included files in the place where they are named.

Lines that begin with `##` are comments, as is every line that does not begin with `#`. Included files are searched in
the folder of the file that names them, and must lie inside the folder of the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.files import read_plain, reason
from peergrid.io.rule import shown

LARGEST = 1 << 26  # bytes of a file
DEEPEST = 16  # files that include one another
MOST = 1 << 21  # commands of a model, its included files' among them
NAME = re.compile(r"#([A-Za-z_][A-Za-z0-9_]*):(?:\s|$)")
ALMOST = re.compile(r"\s*#?([a-z_]{1,40}):(?:\s|$)")


@dataclass(frozen=True)
class Command:
    """A command as written: its name without `#`, the text after the colon, and its place in the file.

    A table of a model file is one without a name. comment: its line does not begin with #, as one of a command does.
    """

    name: str
    text: str
    where: str
    comment: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The text after the colon, split at spaces."""
        return tuple(self.text.split())

    @classmethod
    def table(cls, path: str) -> Command:
        """That of a table of a model file."""
        return cls("", "", path)

    @property
    def what(self) -> str:
        """The command with its place, as messages begin."""
        return f"{self.where}: #{self.name}" if self.name else self.where

    def of_trace(self, number: int) -> Command:
        """The same command in a trace of a survey, for messages."""
        where = f"{self.where}, trace {number}" if self.name else f"survey, trace {number}: {self.where}"
        return replace(self, where=where)

    def fault(self, expected: str, came: str, advice: str) -> UsageError:
        """The error of a command with words that are not valid."""
        return UsageError(f"{self.what} is expected {expected}, got {shown(came)}; {advice}.")

    def again(self, name: str) -> UsageError:
        """The error of a command with a name that another has."""
        return self.fault("to have a name of its own", f"'{name}' again", "rename it")

    def unknown(self, kind: str, name: str, known: Iterable[str]) -> UsageError:
        """The error of a command with a name that nothing has; it has the closest known name, in upper or lower case.

        kind: of what should have the name, as in "a material".
        """
        names = {one.lower(): one for one in known}
        close = get_close_matches(name.lower(), names, n=1)
        advice = f"did you mean '{shown(names[close[0]])}'?" if close else "define it."
        return UsageError(f"{self.what} is expected to name {kind}, got '{shown(name)}'; {advice}")


def check_names(named: Iterable[tuple[Command, str]]) -> None:
    """Raises UsageError for the first command with the name of one before it."""
    known = set[str]()
    for command, name in named:
        if name in known:
            raise command.again(name)
        known.add(name)


def commands(file: Path) -> tuple[Command, ...]:
    """The commands of a file and of those that it includes, in order, each with its file and line for messages.

    Raises UsageError, one sentence with the line, for lines that are no commands, for `#python` blocks, which are never
    executed, and for included files that cannot be read or lie outside the model's folder.
    """
    found: list[Command] = []
    for command in _commands(_text(file), file, file.parent.resolve(), (file.resolve(),), file.name):
        found.append(command)
        if len(found) > MOST:
            raise UsageError(
                f"{command.where}: a model is expected to have at most {MOST:,} commands, got more; merge boxes."
            )
    return tuple(found)


def _commands(text: str, file: Path, home: Path, path: tuple[Path, ...], name: str) -> Iterator[Command]:
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{name}, line {number}"
        if not line.startswith("#"):
            if almost := ALMOST.match(line):
                yield Command(almost[1], "", where, comment=True)
            continue
        if line.startswith("##"):
            continue
        match = NAME.match(line)
        if match is None:
            raise UsageError(
                f"{where}: a command is expected to be '#name: words' with a space after the colon, got "
                f"'{shown(line)}'; correct it, or begin the line with ## to make it a comment."
            )
        command = Command(match[1], line[match.end() :].strip(), where)
        if command.name in ("python", "end_python"):
            raise UsageError(
                f"{where}: #{command.name} is not supported, blocks of Python are never executed; expand them "
                "beforehand with gprMax's option --write-processed and run the file that it writes."
            )
        if command.name == "include_file":
            yield from _included(command, file, home, path)
        else:
            yield command


def _included(command: Command, file: Path, home: Path, path: tuple[Path, ...]) -> Iterator[Command]:
    inner = beside(command, command.text, file.parent, home)
    if inner in path or len(path) >= DEEPEST:
        raise command.fault(
            "to include files that do not include themselves, at most 16 deep", f"'{command.text}' again",
            "take the line out",
        )  # fmt: skip
    try:
        text = _decoded(inner)
    except (OSError, ValueError) as error:
        raise command.fault(
            "to name a file of UTF-8 text", f"'{command.text}': {reason(error)}", "correct it"
        ) from None
    yield from _commands(text, inner, home, (*path, inner), str(inner.relative_to(home)))


def beside(command: Command, name: str, folder: Path, home: Path) -> Path:
    """The file that a command names, inside the model's folder. Raises UsageError for one outside."""
    try:
        found = (folder / name).resolve()
        inside = bool(name) and found.is_relative_to(home)
    except (OSError, ValueError, RuntimeError):
        inside = False
    if not inside:
        raise command.fault(
            "to name a file inside the model's folder", f"'{name}'", "copy the file there and name it so"
        )
    return found


def _decoded(file: Path) -> str:
    return read_plain(file, LARGEST).decode("utf-8-sig")


def _text(file: Path) -> str:
    try:
        return _decoded(file)
    except UnicodeDecodeError:
        raise UsageError(
            f"{file.name}: an input file is expected to be UTF-8 text, got other bytes; save it so."
        ) from None
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{file.name}: an input file is expected at '{shown(str(file))}', got: {reason(error)}; check the path."
        ) from None
