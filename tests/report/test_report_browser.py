"""The page in a real browser, at phone and desktop width: no overflow, no message on the console."""

from __future__ import annotations

import html
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from report_examples import host_only, two_gpus

from peergrid.probe.profile import Profile, read
from peergrid.report import page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTHS = (390, 1280)
RECORDED = sorted((Path(__file__).parents[2] / "benchmarks" / "results").glob("profile-*.json"))
NAMES = ["host", "gpus", *(path.stem for path in RECORDED)]
MEASURE = """
<script>onload = () => { document.title = [...document.querySelectorAll("iframe")].map(frame => {
  const root = frame.contentDocument.documentElement;
  return root.scrollWidth + "/" + root.clientWidth + "/" + root.scrollHeight; }).join(" "); }</script>
"""


def in_browser(content: str, folder: Path) -> tuple[list[tuple[int, int, int]], str]:
    """Scroll width, client width and height of the page at each width, and what the browser said."""
    frames = "".join(
        f'<iframe width="{width}" height="800" style="border:0" srcdoc="{html.escape(content)}"></iframe>'
        for width in WIDTHS
    )
    place = folder / "frames.html"
    place.write_text(f"<!DOCTYPE html><body>{frames}{MEASURE}</body>", encoding="utf-8")
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]
    home = [f"--user-data-dir={folder / 'home'}", "--window-size=1400,900"]
    done = subprocess.run(
        [str(CHROMIUM), *arguments, *home, place.as_uri()], capture_output=True, text=True, timeout=240, check=True
    )
    title = re.search(r"<title>([\d/ ]+)</title>", done.stdout)
    assert title is not None, done.stdout[:500]
    sizes = [tuple(int(part) for part in one.split("/")) for one in title.group(1).split()]
    return [(size[0], size[1], size[2]) for size in sizes], done.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("made", [host_only, two_gpus, *(partial(read, path) for path in RECORDED)], ids=NAMES)
def test_nothing_overflows_and_the_console_is_silent(made: Callable[[], Profile], tmp_path: Path) -> None:
    sizes, said = in_browser(page(made()), tmp_path)
    assert len(sizes) == len(WIDTHS)
    for scroll, client, height in sizes:
        assert scroll <= client
        assert height > 800
    assert "CONSOLE" not in said
