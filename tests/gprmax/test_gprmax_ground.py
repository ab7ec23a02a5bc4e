"""Soil in gprMax's input files: the same media on every node as gprMax 4.0.1 has, and what is refused."""

from __future__ import annotations

import random
from math import prod
from pathlib import Path

import numpy as np
import pytest

from peergrid.errors import UsageError
from peergrid.gprmax import read
from peergrid.models.fdtd3d import COMPONENTS, Medium, Pole

HERE = Path(__file__).parent
SMALL = """\
#domain: 0.03 0.03 0.03
#dx_dy_dz: 0.001 0.001 0.001
#time_window: 20
#material: 4 0.001 1 0 sand
#soil_peplinski: 0.5 0.3 2.0 2.66 0.001 0.25 loam
#fractal_box: 0 0 0 0.03 0.03 0.015 1.5 1 1 1 4 loam soil 1
"""


def _properties(medium: Medium) -> tuple[float, ...]:
    """As recorded: four numbers, then the strength and the relaxation time of a Debye pole."""
    (pole,) = medium.poles or (Pole(0.0, -1e300),)
    time = -1 / complex(pole.rate).real
    strength = complex(pole.weight).real * time
    return (
        medium.permittivity, medium.conductivity, medium.permeability, medium.magnetic_loss,
        strength, time if medium.poles else 0.0,
    )  # fmt: skip


def test_soils_and_their_faces_give_each_component_the_medium_of_gprmax() -> None:
    domain = read(HERE / "soils.in").domain
    with np.load(HERE / "soils.npz") as recorded:
        theirs, properties = recorded["ids"], recorded["properties"]
    own = np.array([_properties(medium) for medium in domain.media])
    for place, component in enumerate(COMPONENTS):
        axis, electric = "xyz".index(component[1]), component[0] == "E"
        live = tuple(slice(int((k == axis) != electric), -1) for k in range(3))  # the rest never changes
        columns = [0, 1, 4, 5] if electric else [2, 3]
        expected = properties[theirs[place][live]][..., columns]
        found = own[domain.ids[place][live]][..., columns]
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=component)


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "model.in"
    path.write_text(text)
    return path


def test_without_a_seed_the_soil_is_the_same_in_every_run_and_that_is_said(tmp_path: Path) -> None:
    model = read(_file(tmp_path, SMALL.replace("soil 1\n", "soil\n")))
    assert any("#fractal_box has no seed" in note for note in model.build().warnings)
    np.testing.assert_array_equal(model.domain.ids, read(_file(tmp_path, SMALL)).domain.ids)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#fractal_box: 0 0 0 0.03 0.03 0.015 1.5 1 1 1 1 loam other 1", "to ask for two media"),
        ("#fractal_box: 0 0 0 0.03 0.03 0.015 1.5 1 1 1 4 loan other 1", "did you mean 'loam'?"),
        ("#fractal_box: 0 0 0.02 0.03 0.03 0.015 1.5 1 1 1 4 loam other 1", "lower to higher nodes"),
        ("#fractal_box: 0 0 0 0.03 0.03 0.015 1.5 1 1 1 4 loam other -1", "as word 14, got '-1'"),
        ("#material_list: sand sandy few\n#fractal_box: 0 0 0 1e-2 1e-2 1e-2 1 1 1 1 2 few b 1", "mean 'sand'?"),
        ("#material_list: sand sand few\n#fractal_box: 0 0 0 1e-2 1e-2 1e-2 1 1 1 1 3 few b 1", "at most 2 media"),
        ("#soil_peplinski: 0.5 0.3 2.7 2.66 0.001 0.25 mud", "up to that of the particles"),
        ("#soil_peplinski: 1 0 1 2 0.1 0.2 dry\n#fractal_box: 0 0 0 1e-2 1e-2 1e-2 1 1 1 1 2 dry b 1", "not below 0"),
        ("#material_range: 2 1 0 0 1 1 0 0 r", "to have limits that rise"),
        ("#material_crim: sand 0.6 loam 0.05 0.3 1e8 2e9 0.5 m\n#fractal_box: 0 0 0 1e-2 1e-2 1e-2 1 1 1 1 2 m b 1",
         "to name a material, got 'loam'"),
        ("#material_crim: sand 0.6 sand 0.05 0.3 1e8 2e9 0.5 m\n#fractal_box: 0 0 0 1e-2 1e-2 1e-2 1 1 1 1 2 m b 1",
         "one Debye pole"),
        ("#add_surface_roughness: 0 0 0.015 0.03 0.03 0.015 1 1 1 0.01 0.02 sail 1", "to name a #fractal_box"),
        ("#add_surface_roughness: 0 0 0.014 0.03 0.03 0.014 1 1 1 0.01 0.02 soil 1", "to lie on a face"),
        ("#add_surface_roughness: 0 0 0.015 0.03 0.03 0.015 1 1 1 0.01 0.2 soil 1", "within the domain"),
        ("#add_surface_water: 0 0 0.015 0.03 0.03 0.015 0.016 soil", "on a rough face"),
        ("#add_grass: 0 0 0 0.03 0.03 0 1 0.01 0.02 9 soil 1", "looks to higher nodes"),
        ("#add_grass: 0 0 0.015 0.03 0.03 0.015 1 0.02 0.025 901 soil 1", "at most 900 blades"),
    ],
)  # fmt: skip
def test_soil_that_cannot_be_is_one_sentence(tmp_path: Path, line: str, expected: str) -> None:
    with pytest.raises(UsageError) as raised:
        _ = read(_file(tmp_path, f"{SMALL}{line}\n")).domain
    found = str(raised.value)
    assert expected in found
    assert "\n" not in found


def test_mutated_soils_are_read_or_refused(tmp_path: Path) -> None:
    chance, lines = random.Random(3), (HERE / "soils.in").read_text().splitlines()
    others = ("nan", "1e400", "-1", "x", "", "9" * 40, "inf", "0", "0.02", "loam", "sand", "2")
    refused: list[str] = []
    for _ in range(300):
        changed = list(lines)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(3, len(lines))
            words = changed[at].split(" ")
            words[chance.randrange(1, len(words))] = chance.choice(others)
            changed[at] = " ".join(words)
        try:
            model = read(_file(tmp_path, "\n".join(changed)))
            if prod(model.shape) < 100_000:
                _ = model.domain
        except UsageError as error:
            refused.append(str(error))
    assert 100 < len(refused) < 300
    assert not [sentence for sentence in refused if "\n" in sentence]
