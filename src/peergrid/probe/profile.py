"""The profile: every number of a machine in one JSON file. The schema is described in docs/profile.md."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from peergrid.errors import UsageError
from peergrid.files import check_regular, read_plain, reason, replacing
from peergrid.machine import Machine, decode, encode
from peergrid.probe.experiment import Measurement, Scalar
from peergrid.version import VERSION as OWN_VERSION

FORMAT = "peergrid-profile"
VERSION = 1
LARGEST = 64 << 20  # bytes of a profile


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one experiment.

    `status` is 'done', 'impossible' (this machine cannot give it), 'failed', or 'timeout'; `reason` says why
    where it is not 'done', and what this machine cannot give of one that is.
    """

    name: str
    group: str
    title: str
    unit: str
    method: str
    status: str
    reason: str
    seconds: float
    results: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """A measured machine. `format` and `version` say how to read the file; `created` is UTC, ISO 8601.

    command, commit: how it was measured, and the commit of the sources where that is known; notes: sentences that were
    added later about numbers that are known to be wrong, or that a newer profile replaces.
    """

    format: str
    version: int
    created: str
    peergrid: str
    quick: bool
    machine: Machine
    probes: tuple[Outcome, ...]
    command: str = ""
    commit: str = ""
    notes: tuple[str, ...] = ()

    def results(self, quantity: str = "") -> Iterator[Measurement]:
        """All results, or those of one quantity."""
        for outcome in self.probes:
            for item in outcome.results:
                if quantity in ("", item.quantity):
                    yield item

    def find(self, quantity: str, at: Mapping[str, Scalar]) -> Measurement | None:
        """The first result of `quantity` whose coordinates include `at`; None if there is none."""
        for item in self.results(quantity):
            if all(item.at.get(key) == value for key, value in at.items()):
                return item
        return None


def new(machine: Machine, probes: tuple[Outcome, ...], quick: bool, *, command: str = "", commit: str = "") -> Profile:
    """A profile of now."""
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Profile(FORMAT, VERSION, created, OWN_VERSION, quick, machine, probes, command, commit)


def dumps(profile: Profile) -> str:
    """The profile as JSON text."""
    return json.dumps(encode(profile), ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def loads(text: str, name: str = "the profile") -> Profile:
    """Read a profile from JSON text.

    Raises:
        UsageError: the text is damaged, belongs to another program or to a later version.
    """
    try:
        data: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(
            f"'{name}' should be a profile in JSON, but is damaged at line {error.lineno}: measure it again."
        ) from error
    except (RecursionError, ValueError) as error:  # nested too deep, or with huge integers
        raise UsageError(f"'{name}' should be a profile in JSON, but is damaged: measure it again.") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UsageError(
            f'\'{name}\' should say "format": "{FORMAT}", but does not: give a file that peergrid probe wrote.'
        )
    version = data.get("version")
    if version != VERSION:
        raise UsageError(
            f"'{name}' has version {version!r} of the profile, but this peergrid reads version {VERSION}: "
            "update peergrid or measure again."
        )
    return decode(Profile, data, f"'{name}'")


def read(path: Path) -> Profile:
    """Read a profile from a file.

    Raises:
        UsageError: there is no such file, or it is no readable profile.
    """
    try:
        text = read_plain(path, LARGEST).decode("utf-8")
    except OSError as error:
        raise UsageError(
            f"'{path}' should be a profile, but cannot be read ({reason(error)}): give an existing file."
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"'{path}' should be a profile in JSON, but is not text: measure it again.") from error
    return loads(text, path.name)


def write(path: Path, profile: Profile) -> None:
    """Write a profile, completely or not at all.

    Raises:
        UsageError: the place cannot be written, or holds something that is no profile.
    """
    guard(path)
    with replacing(path) as partial:
        partial.write_text(dumps(profile), encoding="utf-8")


def guard(path: Path) -> None:
    """Refuse to replace a file that is not a profile, and a folder that cannot be written, before anything is measured.

    Raises:
        UsageError: the path holds such a file, or cannot be written.
    """
    if not path.parent.is_dir():
        raise UsageError(f"'{path}' should lie in an existing folder, but '{path.parent}' is none: create it.")
    check_regular(path)
    try:
        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise UsageError(
            f"'{path}' should lie in a folder that can be written, got: {reason(error)}; choose another."
        ) from None
    if path.exists() and path.stat().st_size:
        try:
            read(path)
        except UsageError as error:
            raise UsageError(
                f"'{path}' should be free or a profile to replace, but holds something else: "
                "choose another name or remove it."
            ) from error
