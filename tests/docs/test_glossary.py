"""Names and docstrings keep to docs/glossary.md: coined words occur only where it says that they still do."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "peergrid"
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
TERMS, _, COINED = GLOSSARY.partition("## Words not to use")
CELLS = re.compile(r"^\| ([^|]+?) \| ([^|]*?) \| ([^|]*?) \|$", re.MULTILINE)
HEADS = ("term", "word", "---")
COINED_ROWS = [(words, rooms) for words, _, rooms in CELLS.findall(COINED) if words not in HEADS]
TERM_ROWS = [term for term, _, _ in CELLS.findall(TERMS) if term not in HEADS]


def parts(name: str) -> Iterator[str]:
    """The words of an identifier in lower case: `shortTiles_of` has three."""
    yield from (part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name))


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Those of modules, classes, functions, and of names behind whose assignment a string stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
        if isinstance(node, ast.Module | ast.ClassDef):
            for name, text in pairwise(node.body):
                if isinstance(name, ast.Assign | ast.AnnAssign) and isinstance(text, ast.Expr):
                    yield text.value.value if isinstance(text.value, ast.Constant) else ""


def names(text: str) -> Iterator[str]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            yield from parts(token.string)


def room_of(file: Path) -> str:
    """The folder below src/peergrid that a file lies in; of files that lie in none their own name."""
    inside = file.relative_to(SOURCES)
    return "/".join(inside.parts[:-1]) or inside.stem


@cache
def vocabulary() -> dict[str, set[str]]:
    """For each word of names and docstrings the rooms in which it occurs."""
    found: dict[str, set[str]] = {}
    for file in SOURCES.rglob("*.py"):
        text = file.read_text()
        prose = " ".join(docstrings(ast.parse(text)))
        for word in {*names(text), *(word.lower() for word in re.findall(r"[A-Za-z]+", prose))}:
            found.setdefault(word, set()).add(room_of(file))
    return found


@pytest.mark.parametrize(("words", "rooms"), COINED_ROWS, ids=[words for words, _ in COINED_ROWS])
def test_a_coined_word_occurs_in_no_other_room(words: str, rooms: str) -> None:
    """Rooms that are named include what lies below them."""
    allowed = [room for room in rooms.split(", ") if room]
    for word in words.split(", "):
        strays = {
            room for room in vocabulary().get(word, ()) if not any(f"{room}/".startswith(f"{a}/") for a in allowed)
        }
        assert not strays, f"'{word}' of docs/glossary.md is not to be used; found in {', '.join(sorted(strays))}"


CLAUSE = re.compile(r"(What|Whether|Which|How|Where|When|Who|Why)\b")


def test_docstrings_open_with_nouns() -> None:
    found = [
        f"{file.relative_to(SOURCES)}: {text.splitlines()[0]}"
        for file in sorted(SOURCES.rglob("*.py"))
        for text in docstrings(ast.parse(file.read_text()))
        if CLAUSE.match(text)
    ]
    assert not found, "\n".join(("docstrings say what things are, in nouns and whole sentences", *found))


DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "docs" / "glossary.md"})
CODE = re.compile(r"<!-- figures.*?<!-- end -->|```.*?```|`[^`]*`|\]\([^)]*\)", re.DOTALL)
WORDS_ALLOWED = {
    "prediction.md": {"fitted"},  # figures are fitted to measurements
    "040-gpus-rest-before-each-sample.md": {"held"},  # the name of a series
    "044-one-glossary-for-names-and-documents.md": {"rim", "zone", "shell", "tape", "station", "turn"},  # examples
    "072-nvshmem-is-no-route-yet.md": {"linked"},  # by a linker
}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_documents_use_no_coined_word(document: Path) -> None:
    """But for names of code, and figures, which have the names of recorded rows."""
    words = {word.lower() for word in re.findall(r"[A-Za-z]+", CODE.sub("", document.read_text()))}
    coined = {word for words, _ in COINED_ROWS for word in words.split(", ")}
    assert not words & coined - WORDS_ALLOWED.get(document.name, set())


@pytest.mark.parametrize("term", TERM_ROWS)
def test_every_term_occurs(term: str) -> None:
    """In names or docstrings, word by word, in singular or plural."""
    for word in re.findall(r"[a-z]+", term.lower()):
        forms = {word, f"{word}s", word.removesuffix("s"), f"{word}es", f"{word.removesuffix('y')}ies"}
        assert forms & vocabulary().keys(), word


def test_a_term_has_one_meaning() -> None:
    assert len(TERM_ROWS) == len(set(TERM_ROWS)) > 80


def test_no_term_is_a_word_not_to_use() -> None:
    coined = {word for words, _ in COINED_ROWS for word in words.split(", ")}
    assert not {term for term in TERM_ROWS if coined & set(term.split())}
