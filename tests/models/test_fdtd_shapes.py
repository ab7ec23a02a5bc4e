"""Shapes on cells: areas, order, the rough surface, voxels from files."""

from __future__ import annotations

from math import pi
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from peergrid.errors import UsageError
from peergrid.models.fdtd.materials import CellMap
from peergrid.models.fdtd.raster import rasterise
from peergrid.models.fdtd.shapes import Box, Cylinder, Ellipse, Layer, Polygon, Shape, Triangle, Voxels, relief

INDEX = {"air": 0, "a": 1, "b": 2}


def drawn(*shapes: Shape, extent: tuple[int, int] = (200, 100), spacing: float = 0.01) -> CellMap:
    return rasterise(extent, (spacing, spacing), 0, shapes, INDEX)


@pytest.mark.parametrize(
    ("shape", "area"),
    [
        (Box("a", (0.3, 0.2), (1.1, 0.7)), 0.8 * 0.5),
        (Cylinder("a", (1.0, 0.5), 0.4), pi * 0.16),
        (Ellipse("a", (1.0, 0.5), (0.6, 0.2), 25.0), pi * 0.12),
        (Triangle("a", ((0.1, 0.1), (1.9, 0.2), (0.7, 0.9))), 0.5 * abs(1.8 * 0.8 - 0.6 * 0.1)),
        (Polygon("a", ((0.2, 0.2), (1.8, 0.2), (1.8, 0.8), (1.0, 0.4), (0.2, 0.8))), 1.6 * 0.6 - 0.5 * 1.6 * 0.4),
        (Layer("a", 0.2, 0.6), 2.0 * 0.4),
        (Layer("a", 0.5, 1.25, axis="x"), 0.75 * 1.0),
    ],
    ids=lambda v: getattr(v, "kind", ""),
)
def test_a_shape_covers_its_area(shape: Shape, area: float) -> None:
    """Counting cells by their centres errs by less than one cell for each cell of outline, mostly far less."""
    assert np.count_nonzero(drawn(shape)) * 1e-4 == pytest.approx(area, rel=0.01)


def test_an_ellipse_turns_from_x_towards_y() -> None:
    cells = drawn(Ellipse("a", (1.0, 0.5), (0.4, 0.05), 45.0))
    assert cells[120, 70] == 1
    assert cells[120, 30] == 0


def test_later_shapes_cover_earlier_ones() -> None:
    whole, part = Box("a", (0, 0), (2, 1)), Box("b", (0.5, 0.2), (1.0, 0.4))
    assert set(np.unique(drawn(whole, part))) == {1, 2}
    assert set(np.unique(drawn(part, whole))) == {1}


def test_the_lower_edge_of_a_box_belongs_to_it_and_the_upper_does_not() -> None:
    cells = drawn(Box("a", (1.0, 1.0), (3.0, 4.0)), extent=(5, 5), spacing=1.0)
    assert np.argwhere(cells).min(axis=0).tolist() == [1, 1]
    assert np.argwhere(cells).max(axis=0).tolist() == [2, 3]


@given(
    centre=st.tuples(st.floats(-0.2, 1.2), st.floats(-0.2, 1.2)),
    radius=st.floats(0.06, 0.5),
    extent=st.tuples(st.integers(10, 40), st.integers(10, 40)),
)
def test_only_cells_whose_centre_lies_inside_are_filled(
    centre: tuple[float, float], radius: float, extent: tuple[int, int]
) -> None:
    """Against the plain formula over all cells: the window around a shape must cut nothing off."""
    step = 1 / min(extent)
    x, y = ((np.arange(n) + 0.5) * step for n in extent)
    inside = (x[:, None] - centre[0]) ** 2 + (y[None, :] - centre[1]) ** 2 < radius**2
    if inside.any():
        cells = rasterise(extent, (step, step), 0, [Cylinder("a", centre, radius)], INDEX)
        np.testing.assert_array_equal(cells == 1, inside)


def test_the_relief_has_variance_one_and_the_documented_correlation() -> None:
    """Mean over 400 surfaces; their spread allows about 2 / √400 = 0.1, and the seeds are fixed."""
    distance = np.linspace(0.0, 2.0, 5)
    surfaces = np.array([relief(distance, seed) for seed in range(400)])
    correlation = (surfaces[:, :1] * surfaces).mean(axis=0)
    np.testing.assert_allclose(correlation, np.exp(-(distance**2)), atol=0.1)


def test_a_rough_layer_is_the_same_surface_at_every_spacing() -> None:
    layer = Layer("a", -1.0, 0.5, roughness=0.05, correlation=0.2, seed=4)
    coarse, fine = drawn(layer), drawn(layer, extent=(600, 300), spacing=0.01 / 3)
    np.testing.assert_array_equal(coarse, fine[1::3, 1::3])
    assert len(set(coarse.sum(axis=1))) > 5, "its surface is not flat"
    assert not np.array_equal(coarse, drawn(Layer("a", -1.0, 0.5, roughness=0.05, correlation=0.2, seed=5)))


def test_voxels_from_npy_and_hdf5_fill_the_same_cells(tmp_path: Path) -> None:
    values = np.array([[0, 1, -1], [1, -1, 0]])
    np.save(tmp_path / "v.npy", values)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        file["grains"] = values
    background = Box("b", (0, 0), (9, 9))
    for name in ("v.npy", "v.h5"):
        voxels = Voxels(str(tmp_path / name), ("air", "a"), dataset="grains", origin=(2.0, 1.0))
        cells = drawn(background, voxels, extent=(5, 5), spacing=1.0)
        np.testing.assert_array_equal(cells[2:4, 1:4], [[0, 1, 2], [1, 2, 0]])
        assert (cells == 2).sum() == 25 - 4


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32", "uint64", "int8"])
def test_voxels_of_any_whole_numbers(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.array([[0, 1], [1, 0]], dtype))
    voxels = Voxels(str(tmp_path / "v.npy"), ("air", "a"))
    cells = drawn(Box("b", (0, 0), (9, 9)), voxels, extent=(2, 2), spacing=1.0)
    np.testing.assert_array_equal(cells, [[0, 1], [1, 0]])


def broken(tmp_path: Path, values: object, **changes: object) -> str:
    np.save(tmp_path / "v.npy", np.asarray(values))
    keys: dict[str, object] = {"file": str(tmp_path / "v.npy"), "materials": ("air", "a"), **changes}
    with pytest.raises(UsageError) as caught:
        drawn(Voxels(**keys), extent=(4, 4), spacing=1.0)  # type: ignore[arg-type]
    return str(caught.value).replace(str(tmp_path), "")


def test_voxels_that_cannot_be_meant(tmp_path: Path) -> None:
    assert broken(tmp_path, [[0, 2]]) == (
        "shape[1].file is expected to hold numbers below 2 (one for each of shape[1].materials), it holds 2; "
        "name more materials."
    )
    assert broken(tmp_path, [[0.5]]) == (
        "shape[1].file is expected to hold a two-dimensional array of whole numbers, '/v.npy' holds 2 dimensions of "
        "float64."
    )
    assert broken(tmp_path, [[0] * 5]) == (
        "shape[1] is expected to lie inside the grid of 4 by 4 cells, its cells reach from (0, 0) to (1, 5); "
        "change shape[1].origin or crop the array."
    )
    (tmp_path / "v.h5").write_bytes(b"no HDF5")
    assert broken(tmp_path, [[0]], file=str(tmp_path / "v.h5")).startswith(
        "shape[1].file is expected to be a readable .npy or HDF5 file, got '/v.h5':"
    )
    with h5py.File(tmp_path / "w.h5", "w") as file:
        file["other"] = [[0]]
    assert broken(tmp_path, [[0]], file=str(tmp_path / "w.h5")) == (
        "shape[1].dataset is expected to name an array in '/w.h5', got 'data'; correct it."
    )
    objects = np.array([[{}]], dtype=object)
    np.save(tmp_path / "o.npy", objects, allow_pickle=True)
    assert broken(tmp_path, [[0]], file=str(tmp_path / "o.npy")).startswith(
        "shape[1].file is expected to be a readable .npy or HDF5 file, got '/o.npy': Array can't be memory-mapped"
    )
