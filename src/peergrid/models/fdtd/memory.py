"""The host memory of a run of a model, computed from its description before any array exists."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from peergrid.models.fdtd.check import check_window
from peergrid.models.fdtd.constants import SPEED_OF_LIGHT
from peergrid.models.fdtd.materials import BUILT_IN, CONDUCTOR, Material
from peergrid.models.fdtd.model import PlaneWave, RadarModel
from peergrid.models.fdtd.shapes import Voxels
from peergrid.models.model import Memory

COMPONENTS = 3
ARRAYS = 8  # two slots of three fields and two coefficients: the least that any such model needs on GPUs
CELL = 2  # bytes of the material of a cell
COUNTING = 8  # bytes of a cell while materials are counted, with a wider integer type
WAITING = 6  # snapshots between the run and the disk at most, with the one that is taken and the one that is written
DRAWN = 5  # copies of a snapshot that drawing it makes
PIXEL = 136  # bytes of each pixel of a map while it is drawn, of at most so many along each axis:
LARGEST = 1600
LIBRARIES = 88 << 20  # bytes of compiled kernels and of libraries loaded during a run
GHOSTS = 1.05  # fields with what devices have twice
SAMPLES = 32  # bytes of a source for each step while it is computed; twice as many for a plane wave


def memory(model: RadarModel, *, computing: bool, writing: bool) -> Memory:
    """The peak memory of a run; arguments as in `Model.memory`."""
    nodes, item = prod(n + 1 for n in model.cells), _itemsize(model)
    coefficients = _coefficients(model) * item
    lasting = CELL + coefficients + (int(GHOSTS * (2 * COMPONENTS * item + coefficients)) if computing else 0)
    passing = [2 * CELL, COUNTING, COMPONENTS * item]
    if writing:
        passing += [(COMPONENTS + 2) * item, *_of_snapshots(model, item)]
    pixels = prod(min(n, LARGEST) for n in model.cells) if writing and model.output.pictures else 0
    cells = nodes * (lasting + max(passing)) + PIXEL * pixels + LIBRARIES
    steps = most_steps(model)
    return Memory(cells, steps * step_bytes(model), steps, prod(model.cells) * item * ARRAYS)


def step_bytes(model: RadarModel) -> int:
    """Bytes for each step of a run: signals of sources, records of receivers."""
    recorded = sum(len(r.fields) for r in model.receivers)
    recorded += sum(len(array.fields) * array.count for array in model.receiver_arrays)
    waves = sum(2 if isinstance(source, PlaneWave) else 1 for source in model.sources)
    return 3 * recorded * _itemsize(model) + SAMPLES * waves


def most_steps(model: RadarModel) -> int:
    """The steps of the run; if a time is given, an upper bound, from the time step in vacuum. Raises UsageError for too
    many.
    """
    if model.grid.steps is not None:
        return model.grid.steps
    dx, dy = model.grid.spacings
    shortest = model.grid.courant / (SPEED_OF_LIGHT * (1 / dx**2 + 1 / dy**2) ** 0.5)
    slowness = min((m.slowness for m in _named(model) if m != CONDUCTOR), default=1.0)
    check_window(model, shortest * slowness)
    return int((model.grid.time_window or 0.0) / (shortest * slowness)) + 1


def _of_snapshots(model: RadarModel, item: int) -> Iterator[int]:
    """Bytes a cell while snapshots wait for the disk, and while one is drawn."""
    if model.output.snapshots:
        share = item / model.output.stride**2
        yield int(len(model.output.fields) * (item + WAITING * share)) + item
        yield int(DRAWN * share) + item


def _coefficients(model: RadarModel) -> int:
    """The coefficients that differ from cell to cell."""
    media = _named(model)
    permittivities = {(m.permittivity, m.conductivity) for m in media}
    electric = 1 + any(m.conductivity for m in media) if len(permittivities) > 1 or CONDUCTOR in media else 0
    return electric + (2 if len({m.permeability for m in media}) > 1 else 0)


def _named(model: RadarModel) -> list[Material]:
    """The materials that some cell may have."""
    names = {model.grid.background}
    for shape in model.shapes:
        names |= set(shape.materials) if isinstance(shape, Voxels) else {shape.material}
    return [material for material in (*BUILT_IN, *model.materials) if material.name in names]


def _itemsize(model: RadarModel) -> int:
    return 4 if model.grid.dtype == "float32" else 8
