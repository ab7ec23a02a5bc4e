"""The version that a package is built with: that of the tag of its commit, else the one on the way to the next.

v0.2.0                                     0.2.0
three commits after it                     0.2.1.dev3+g1a2b3c4
with other files than that                 0.2.1.dev3+g1a2b3c4.dirty
a clone or an archive without tags         0.2.0.dev0+g1a2b3c4, `NEXT` on its way
neither                                    0.2.0.dev0
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

NEXT = "0.2.0"
"""The version that is worked on, said where no tag is."""

ROOT = Path(__file__).resolve().parents[1]
DESCRIBED = re.compile(r"v(\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?)(?:-(\d+)-g([0-9a-f]+))?(-dirty)?")
ALONE = re.compile(r"([0-9a-f]{7,40})(-dirty)?")


def version(root: Path = ROOT) -> str:
    """The version of the sources under `root`, from a source package, an archive of git or a checkout."""
    packaged, archived = root / "PKG-INFO", root / ".git_archival.txt"
    if packaged.exists() and (found := re.search(r"^Version: (\S+)$", packaged.read_text(), re.MULTILINE)):
        return found[1]
    if (root / ".git").exists():
        return of(_git(root, "describe", "--tags", "--match", "v[0-9]*", "--always", "--dirty", "--abbrev=8"))
    lines = dict(re.findall(r"^(\w+): (\S+)$", archived.read_text(), re.MULTILINE)) if archived.exists() else {}
    return of(lines.get("describe", lines.get("node", "")[:8]))


def of(described: str) -> str:
    """The version that `git describe` means."""
    if tagged := DESCRIBED.fullmatch(described):
        release, since, commit, dirty = tagged.groups()
        local = ".".join(part for part in (commit and f"g{commit}", dirty and "dirty") if part)
        return (f"{_following(release)}.dev{since}" if since else release) + (f"+{local}" if local else "")
    alone = ALONE.fullmatch(described)
    return f"{NEXT}.dev0" + (f"+g{alone[1]}{'.dirty' if alone[2] else ''}" if alone else "")


def _following(release: str) -> str:
    """The version after a release, or that which a candidate is on the way to."""
    first, second, third, before = re.findall(r"(\d+)\.(\d+)\.(\d+)(\D.*)?", release)[0]
    return f"{first}.{second}.{int(third) + (not before)}"


def _git(where: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=where, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
