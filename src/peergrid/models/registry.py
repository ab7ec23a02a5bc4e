"""The kinds of models by name: those of peergrid, and those that installed packages register.

A package registers a kind in the group `peergrid.models` of its entry points, in its `pyproject.toml`:

    [project.entry-points."peergrid.models"]
    heat2d = "my_package.heat:read"

where `read` is a `Reader` (`models.model`). It is imported when a model of that kind is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from peergrid.errors import UsageError
from peergrid.io.rule import shown
from peergrid.io.schema import either
from peergrid.models.model import Model, Reader

GROUP = "peergrid.models"
WAVES = ("acoustic2d", "acoustic3d", "vti2d", "vti3d", "tti2d", "tti3d")
OWN = (
    EntryPoint("fdtd2d", "peergrid.models.fdtd:read", GROUP),
    EntryPoint("fdtd3d", "peergrid.gprmax.modelfile:read", GROUP),
    *(EntryPoint(kind, "peergrid.models.wave:read", GROUP) for kind in WAVES),
)

FILES = {".in": EntryPoint("gprmax", "peergrid.gprmax:read", "peergrid.files")}
"""Files that are models without being TOML, by how their names end: a function from a path to a model."""


def kinds() -> Mapping[str, EntryPoint]:
    """Every installed kind, peergrid's own first. Raises UsageError if two packages register the same name."""
    found = {entry.name: entry for entry in OWN}
    for entry in entry_points(group=GROUP):
        if found.setdefault(entry.name, entry) != entry:
            raise UsageError(
                f"One kind of model is expected to be called '{entry.name}', and two are installed: "
                f"{found[entry.name].value} and {entry.value}; uninstall a package."
            )
    return found


def file_reader(name: str) -> Callable[[Path], Model] | None:
    """The reader of files with this suffix; None for model files in TOML."""
    entry = FILES.get(Path(name).suffix.lower())
    found: Callable[[Path], Model] | None = entry.load() if entry else None
    return found


def reader(kind: str) -> Reader:
    """The reader of a kind. Raises UsageError if none is installed, or it cannot be imported."""
    known = kinds()
    if kind not in known:
        close = get_close_matches(kind, known, n=1)
        advice = f"did you mean '{close[0]}'?" if close else "use one of them."
        expected = either([f"'{name}'" for name in known])
        raise UsageError(f"model.kind is expected to be {expected}, got '{shown(kind)}'; {advice}")
    try:
        found: Reader = known[kind].load()
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"model.kind '{kind}' is expected to be found at {known[kind].value}, got: {shown(str(error), 200)}; "
            "install its package again."
        ) from None
    return found
