"""Boxes cut into parts, against what each cell says of itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product

import numpy as np
import pytest

from peergrid.codegen.regions import Part, cover, mirror_cuts, mirrored, split, unmirrored
from peergrid.grid import Box, Grid, Index


def cells(box: Box) -> set[Index]:
    return set(product(*(range(lo, hi) for lo, hi in zip(box.lo, box.hi, strict=True))))


def drawn(seed: int, axes: int) -> list[tuple[Box, str]]:
    """Boxes that overlap, some of them empty, with labels."""
    random = np.random.default_rng(seed)
    corners = [sorted(random.integers(0, 8, 2).tolist()) for _ in range(5 * axes)]
    return [
        (Box(*(tuple(corners[axes * n + k][end] for k in range(axes)) for end in (0, 1))), label)
        for n, label in enumerate("abcab")
    ]


Cut = Callable[[list[Part[str]], Box, str], list[Part[str]]]


def covered(parts: list[Part[str]], box: Box, label: str) -> list[Part[str]]:
    """By two boxes, one half each."""
    middle = (box.lo[0] + box.hi[0]) // 2
    return cover(parts, [box.with_axis(0, box.lo[0], middle), box.with_axis(0, middle, box.hi[0])], label)


@pytest.mark.parametrize("axes", [1, 2, 3])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("cut", [split, covered])
def test_every_cell_has_the_labels_of_its_boxes(cut: Cut, seed: int, axes: int) -> None:
    whole = Box((2,) * axes, (6,) * axes)
    parts: list[Part[str]] = [(whole, frozenset())]
    given = drawn(seed, axes)
    for box, label in given:
        parts = cut(parts, box, label)
    assert not any(one.overlaps(two) for (one, _), (two, _) in combinations(parts, 2))
    found = {cell: labels for box, labels in parts for cell in cells(box)}
    expected = cells(whole).union(*(cells(box) for box, _ in given)) if cut is covered else cells(whole)
    assert found == {cell: frozenset(label for box, label in given if cell in box) for cell in expected}
    assert not any(box.empty for box, _ in parts)


OFFSETS = [(-2, 1), (1, 0), (0, 3)]


@pytest.mark.parametrize("boundary", ["fixed", "reflecting", ("reflecting", "fixed")])
def test_where_no_read_is_mirrored(boundary: object) -> None:
    grid = Grid((9, 8), boundary)  # type: ignore[arg-type]
    inside = unmirrored(grid, OFFSETS)
    for cell in cells(grid.box):
        plain = all(mirrored(grid, cell, offset) == offset for offset in OFFSETS)
        assert plain == (cell in inside)


def test_cuts_at_mirrors_are_as_few_as_can_be() -> None:
    grid = Grid((9, 8), "reflecting")
    found = list(mirror_cuts(grid, grid.box, OFFSETS))
    assert sum(box.size for box in found) == grid.box.size == len(set().union(*map(cells, found)))
    assert max(found, key=lambda box: box.size) == unmirrored(grid, OFFSETS) & grid.box
    for box in found:
        for offset in OFFSETS:
            assert len({mirrored(grid, cell, offset) for cell in cells(box)}) == 1


def test_an_empty_box_covers_nothing() -> None:
    assert cover([], [Box((3,), (3,))], "a") == []
    assert cover([], [Box((3,), (5,))], "a") == [(Box((3,), (5,)), frozenset("a"))]
