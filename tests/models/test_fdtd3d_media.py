"""Media by index: one field says what each cell is made of, and every coefficient is what the cell's media have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from fdtd3d_examples import vacuum
from hypothesis import given, settings
from hypothesis import strategies as st
from test_fdtd3d_run import everything

import peergrid
from peergrid import Options
from peergrid.models.fdtd3d import PEC, VACUUM, Domain, Medium, combinations
from peergrid.models.fdtd3d.build import build
from peergrid.models.fdtd3d.domain import lorentz
from peergrid.models.fdtd3d.lattice import Lattice
from peergrid.models.fdtd3d.media import placed

SOIL, LOSSY = Medium("soil", 4.0), Medium("lossy", 6.0, 0.01)
HEAVY, RINGING = Medium("heavy", 2.0, 0.0, 3.0, 0.5), Medium("ringing", 2.0, 0.0, poles=(lorentz(1.0, 3e9, 1e9),))
SHAPE = (9, 8, 12)


def mixed(media: tuple[Medium, ...], seed: int = 1, **given: Any) -> Domain:
    """Each component of each node has any of the media."""
    domain = vacuum(SHAPE, 12, media=media, **given)
    ids = np.random.default_rng(seed).integers(0, len(media), domain.ids.shape, np.uint8)
    return replace(domain, ids=ids)


def layers(media: tuple[Medium, ...], **given: Any) -> Domain:
    """Layers along the last axis."""
    domain = vacuum(SHAPE, 12, media=media, **given)
    domain.ids[:] = np.arange(domain.ids.shape[3]) * len(media) // domain.ids.shape[3]
    return domain


def as_fields(domain: Domain) -> Any:
    """The problem with fields of coefficients."""
    with patch.object(combinations, "MOST", 0):
        return build(domain).problem


def coefficients(problem: Any) -> list[str]:
    return [name for name in problem.coefficients if problem.fields[name].full]


@pytest.mark.parametrize("devices", ["cpu:1", "cpu:3"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bits_are_those_of_fields_of_coefficients(devices: str, dtype: str) -> None:
    """Of a model with losses, poles, absorbers, wires and sources of all kinds, and of one with many media."""
    for domain in (everything(), layers((VACUUM, SOIL, LOSSY, HEAVY, RINGING), dtype=dtype)):
        problem, plain = build(domain).problem, as_fields(domain)
        assert coefficients(problem) == ["media"]
        assert len(coefficients(plain)) == len(problem.tables) > 2
        asked = {"devices": devices, "options": Options("overlap", depth=2), "steps": 12}
        assert peergrid.run(problem, **asked).sha256 == peergrid.run(plain, **asked).sha256


@settings(max_examples=15, deadline=None)
@given(st.sets(st.sampled_from([VACUUM, SOIL, LOSSY, HEAVY, PEC]), min_size=2), st.integers(0, 9), st.booleans())
def test_every_cell_finds_the_numbers_of_its_media(media: set[Medium], seed: int, several: bool) -> None:
    """Also where a component has several media of the same numbers."""
    chosen = tuple(sorted(media, key=lambda medium: medium.name))
    domain = mixed((*chosen, replace(chosen[0], name="again")) if several else chosen, seed)
    with patch.object(combinations, "MOST", 256):
        problem = build(domain).problem
    if not problem.tables:  # more combinations than are numbered
        assert "media" not in problem.fields
        return
    lattice, index = Lattice.of(domain), problem.fields["media"].global_array().astype(int)
    for name, table in problem.tables.items():
        component, what = name.split(".")
        own = np.array([placed(lattice, component, m)[what == "factor"] for m in lattice.media])  # type: ignore[arg-type]
        inside = lattice.region(component).slices((0,) * 3)  # type: ignore[arg-type]
        expected = own[lattice.ids(component)[inside]]  # type: ignore[arg-type]
        assert np.array_equal(table.values[index[inside]], expected)


@pytest.mark.parametrize(
    ("domain", "found"),
    [
        (vacuum(SHAPE, 5, media=(LOSSY,)), []),
        (layers((VACUUM, SOIL)), ["media"]),
        (layers((VACUUM, LOSSY)), ["media"]),
        (layers((VACUUM, RINGING)), ["media"]),
        (layers((VACUUM, replace(VACUUM, name="air"))), []),
    ],
)
def test_a_cell_takes_one_value_for_its_media(domain: Domain, found: list[str]) -> None:
    assert coefficients(build(domain).problem) == found


def test_a_single_coefficient_is_a_field_and_so_are_those_of_a_plane() -> None:
    domain = vacuum(SHAPE, 5, media=(VACUUM, SOIL))
    domain.ids[2, :, :, 5:] = 1
    assert coefficients(build(domain).problem) == ["Ez.factor"]
    plane = vacuum((8, 9, 1), 5, media=(VACUUM, LOSSY), mode="TMz")
    plane.ids[:, 4:] = 1
    assert coefficients(build(plane).problem) == ["Ez.keep", "Ez.factor"]


def test_more_combinations_than_are_numbered_are_fields() -> None:
    many = tuple(Medium(f"m{k}", 2.0 + k) for k in range(5))
    assert len(coefficients(build(mixed(many)).problem)) == 3
    few = build(mixed(many[:4])).problem
    assert coefficients(few) == ["media"]
    assert all(50 < len(table) <= 4**3 for table in few.tables.values())
