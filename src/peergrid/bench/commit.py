"""The commit of the sources: as `git archive` wrote it into them, else that of the checkout."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def commit(root: Path = ROOT) -> str:
    """The commit of the sources under `root`, with '-dirty' if tracked files differ from it; '' if unknown."""
    archived = root / ".git_archival.txt"
    written = re.search(r"[0-9a-f]{40}", archived.read_text()) if archived.exists() else None
    if written:
        return written[0]
    if not (root / ".git").exists():  # an installed package may be inside the checkout of another project
        return ""
    head = _git(root, "rev-parse", "HEAD")
    return head + ("-dirty" if head and _git(root, "status", "--porcelain", "--untracked-files=no", "src") else "")


def _git(where: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=where, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
