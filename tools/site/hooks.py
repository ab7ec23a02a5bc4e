"""What mkdocs does beside its own: pages of files in the root, and links to files that are no pages."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, normpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changes.md", "CONTRIBUTING.md": "contributing.md",
         "SECURITY.md": "security.md"}  # fmt: skip
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """The pages of files that lie in the root of the repository."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=LINK.sub(_from_root, text)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links out of the documents lead to a page where the file is one; elsewhere their text is left."""

    def link(found: re.Match[str]) -> str:
        target = normpath(f"{dirname(page.file.src_uri)}/{found[3]}".lstrip("/"))
        if not target.startswith(".."):
            return found[0]
        page_of = PAGES.get(target.removeprefix("../"))
        up = "../" * page.file.src_uri.count("/")
        return f"[{found[2]}]({up}{page_of})" if page_of else found[2]

    return LINK.sub(link, markdown)


def _from_root(found: re.Match[str]) -> str:
    """A link of a file in the root, as it is among the documents."""
    target = found[3]
    if target.startswith("docs/"):
        inside = target.removeprefix("docs/")
        return (
            f"{found[1]}[{found[2]}]({inside}/README.md)"
            if inside == "decisions"
            else found[0].replace(f"({target}", f"({inside}")
        )
    return f"[{found[2]}]({PAGES[target]})" if target in PAGES else found[2]
