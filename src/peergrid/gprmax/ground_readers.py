"""From the words of commands about soil and files to data: mixing models, boxes of soil, cells, views."""

from __future__ import annotations

from pathlib import Path

from peergrid.gprmax.arguments import at_least, counted, not_negative, number, one_of, point, positive, whole
from peergrid.gprmax.items import Choice, DatabaseMedium, Item, Mixing, Moist, Saved, SnapshotFile, View, ending, free
from peergrid.gprmax.library import Database
from peergrid.gprmax.objects import DataFile, Flood, FractalBox, Lawn, Roughness, Voxels
from peergrid.gprmax.soils import Limits, Soil, Spread
from peergrid.gprmax.text import Command, beside

MOST_BINS = 10_000
LARGEST_SEED = (1 << 32) - 1


def peplinski(command: Command, folder: Path) -> Item:
    """A soil by its sand, clay, densities and water."""
    words = counted(command, 7)
    sand, clay = (_share(command, place) for place in (0, 1))
    particles = number(command, 3, lambda v: 0 < v <= 100, "a density above 0 in g/cm³")
    bulk = number(command, 2, lambda v: 0 <= v <= particles, "a density up to that of the particles")
    water = _limits(command, 4, 0.0, 1.0)
    if water[1] == 0:
        raise command.fault("to have water in the wettest soil", "none", "correct word 6")
    return Mixing(command, Soil(words[6], sand, clay, bulk, particles, water))


def spread(command: Command, folder: Path) -> Item:
    """Limits of the four properties."""
    words = counted(command, 9)
    limits = [_limits(command, place, least, 1e20) for place, least in ((0, 1.0), (2, 0.0), (4, 1.0), (6, 0.0))]
    return Mixing(command, Spread(words[8], *limits))


def choice(command: Command, folder: Path) -> Item:
    """Materials, then the name of their list."""
    *materials, name = at_least(command, 2)
    return Choice(command, name, tuple(materials))


def moist(command: Command, folder: Path) -> Item:
    """A mixture of rock, a liquid and air."""
    words = counted(command, 9)
    share, limits = _share(command, 1), _limits(command, 3, 0.0, 1.0)
    if share + limits[1] > 1:
        raise command.fault("to have fractions up to 1 in all", f"{share + limits[1]:g}", "lower them")
    band = (positive(command, 5), positive(command, 6))
    if band[1] <= band[0]:
        raise command.fault("to have frequencies that rise", f"{band[0]:g} and {band[1]:g} Hz", "swap them")
    exponent = number(command, 7, lambda v: 0.01 <= v <= 1, "an exponent from 0.01 to 1")
    return Moist(command, words[8], words[0], share, words[2], limits, band, exponent)


def fractal_box(command: Command, folder: Path) -> Item:
    """A box, its dimension and weights, the media, its name; then perhaps a seed, y or n for smoothing, and a tag."""
    words = counted(command, 13, 14, 15, 16)
    weights = tuple(not_negative(command, place) for place in (7, 8, 9))
    return FractalBox(
        command, point(command, 0), point(command, 3), _dimension(command, 6), words[11],
        (weights[0], weights[1], weights[2]), whole(command, 10, 1, MOST_BINS), words[12], _seed(command, 13),
        len(words) > 14 and one_of(command, 14, ("y", "n")) == "y",
    )  # fmt: skip


def roughness(command: Command, folder: Path) -> Item:
    """A face, its dimension and weights, two limits, the box; then perhaps a seed."""
    words = counted(command, 12, 13)
    weights = (not_negative(command, 7), not_negative(command, 8))
    limits = (not_negative(command, 9), not_negative(command, 10))
    return Roughness(
        command, point(command, 0), point(command, 3), _dimension(command, 6), limits, words[11], weights,
        _seed(command, 12),
    )  # fmt: skip


def water(command: Command, folder: Path) -> Item:
    """A rough face, the level of the water, the box."""
    words = counted(command, 8)
    return Flood(command, point(command, 0), point(command, 3), positive(command, 6), words[7])


def grass(command: Command, folder: Path) -> Item:
    """A face, its dimension, two limits, the number of blades, the box; then perhaps a seed."""
    words = counted(command, 11, 12)
    limits = (not_negative(command, 7), not_negative(command, 8))
    return Lawn(
        command, point(command, 0), point(command, 3), _dimension(command, 6), limits, whole(command, 9, 1),
        words[10], _seed(command, 11),
    )  # fmt: skip


def voxels(command: Command, folder: Path) -> Item:
    """A corner, a file of cells, a database beside it or a list of materials; then y or n for smoothing."""
    words = counted(command, 5, 6)
    file = beside(command, words[3], folder, folder)
    if words[4].endswith(".txt"):
        materials = beside(command, words[4], folder, folder)
    else:
        materials = beside(command, f"{words[4]}.json", file.parent, folder)
    smooth = len(words) > 5 and one_of(command, 5, ("y", "n")) == "y"
    return Voxels(command, point(command, 0), str(file), DataFile(str(materials)), smooth)


def snapshot(command: Command, folder: Path) -> Item:
    """Two corners, the spacing of samples, seconds or a step, and a name that may end in .vtkhdf or .h5."""
    words = counted(command, 11)
    step = (positive(command, 6), positive(command, 7), positive(command, 8))
    name = _name(command, 10)
    if not ending(name):
        raise command.fault("to have a name in .vtkhdf or .h5, not that of results", f"'{name}'", "rename it")
    steps = words[9].isascii() and words[9].isdigit()
    time, after = (None, whole(command, 9, 0)) if steps else (not_negative(command, 9), None)
    return SnapshotFile(command, point(command, 0), point(command, 3), name, time, after, step)


def view(command: Command, folder: Path) -> Item:
    """Two corners, the spacing of samples, a name, and n for cells or f for edges."""
    counted(command, 11)
    step = (positive(command, 6), positive(command, 7), positive(command, 8))
    edges = one_of(command, 10, ("n", "f")) == "f"
    return View(command, point(command, 0), point(command, 3), _name(command, 9), step, edges)


def saved(command: Command, folder: Path) -> Item:
    """Two corners and a name."""
    counted(command, 7)
    return Saved(command, point(command, 0), point(command, 3), _name(command, 6))


def _name(command: Command, place: int) -> str:
    """A word that can be a file name in the folder of results."""
    word = command.words[place]
    if not free(word):
        raise command.fault("to have a name without folders", f"'{word}'", "use letters, digits, '_' and '-'")
    return word


def from_database(command: Command, folder: Path) -> Item:
    """A database in the model's folder, a key, and optionally another name."""
    words = counted(command, 2, 3)
    file = beside(command, f"{words[0]}.json", folder, folder)
    if not file.is_file():
        raise command.fault(
            f"to find '{file.name}' in the model's folder", "no such file", "copy gprMax's data/materials file there"
        )
    return DatabaseMedium(command, Database(file).medium(words[1], words[-1]))


def _dimension(command: Command, place: int) -> float:
    return number(command, place, lambda v: 0 <= v <= 100, "a fractal dimension from 0 to 100")


def _seed(command: Command, place: int) -> int | None:
    return whole(command, place, 0, LARGEST_SEED) if len(command.words) > place else None


def _share(command: Command, place: int) -> float:
    return number(command, place, lambda v: 0 <= v <= 1, "a fraction from 0 to 1")


def _limits(command: Command, place: int, least: float, most: float) -> Limits:
    """Two numbers that do not fall."""
    low, high = (number(command, place + k, lambda v: least <= v <= most, f"a number from {least:g}") for k in (0, 1))
    if low > high:
        raise command.fault("to have limits that rise", f"{low:g} and {high:g}", "swap them")
    return low, high
