"""What tools and benchmarks take from peergrid is there, also what only a machine with GPUs would come to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def scripts() -> Iterator[Path]:
    """Python files of both folders, with and without the suffix."""
    for path in sorted(path for folder in ("tools", "benchmarks") for path in (ROOT / folder).rglob("*")):
        if path.suffix == ".py" or (path.is_file() and path.read_bytes().startswith(b"#!/usr/bin/env python")):
            yield path


@pytest.mark.parametrize("script", tuple(scripts()), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_import_exists(script: Path) -> None:
    tree = ast.parse(script.read_text(encoding="utf-8"))
    taken = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    for node in (node for node in taken if (node.module or "").partition(".")[0] == "peergrid"):
        module = import_module(str(node.module))
        for name in (alias.name for alias in node.names):
            assert hasattr(module, name) or find_spec(f"{node.module}.{name}"), f"{node.module} has no {name}"
