"""Soils and files of cells in gprMax's input files: on every node the medium of gprMax 4.0.1; what is refused."""

from __future__ import annotations

import json
import random
import shutil
from math import prod
from pathlib import Path

import h5py
import numpy as np
import pytest

from peergrid.errors import UsageError
from peergrid.gprmax import read
from peergrid.gprmax.library import Database
from peergrid.models.fdtd3d import COMPONENTS, PEC, Medium, Pole, debye, drude, lorentz

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


@pytest.mark.parametrize("name", ["soils", "cells"])
def test_each_component_has_the_medium_that_gprmax_gives_it(name: str) -> None:
    domain = read(HERE / f"{name}.in").domain
    with np.load(HERE / f"{name}.npz") as recorded:
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


def test_the_memory_of_a_run_counts_poles_before_anything_is_rasterised(tmp_path: Path) -> None:
    soil = read(_file(tmp_path, SMALL)).memory(computing=True, writing=False)
    dry = SMALL.replace("#soil_peplinski: 0.5 0.3 2.0 2.66 0.001 0.25 loam", "#material_range: 2 9 0 0 1 1 0 0 loam")
    plain = read(_file(tmp_path, dry)).memory(computing=True, writing=False)
    values = 31**3 * 3 * 3  # a memory, twice, and what feeds it, of three components
    assert soil.cells - plain.cells == pytest.approx(1.05 * 4 * values, abs=1)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#fractal_box: 0 0 0 0.03 0.03 0.015 1.5 1 1 1 1 loam other 1", "to ask for at least two media"),
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
        ("#fractal_box: 0 0 0 1e-2 1e-2 1e-2 1 1 1 1 2 loam soil 1\n"
         "#add_surface_roughness: 0 0 0.015 0.03 0.03 0.015 1 1 1 0.01 0.02 soil 1",
         "to have a name of its own, got 'soil' again"),
        ("#add_surface_roughness: 0 0 0.015 0.03 0.03 0.015 1 1 1 0.01 0.02 sail 1",
         "to name a fractal box, got 'sail'; did you mean 'soil'?"),
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


def test_boxes_of_one_name_that_no_surface_names_are_several_boxes(tmp_path: Path) -> None:
    box = "#fractal_box: 0 0 0 1e-2 1e-2 1e-2 1 1 1 1 4 loam again {seed}\n"
    two = "".join(
        box.format(seed=seed).replace("0 0 0 1e-2", place) for seed, place in ((1, "0 0 0 1e-2"), (2, "0 0 0 9e-3"))
    )
    assert read(_file(tmp_path, SMALL + two)).domain.ids.shape == read(_file(tmp_path, SMALL)).domain.ids.shape


def _cells(tmp_path: Path, **others: np.ndarray) -> Path:
    """A model with a file of 2 x 2 x 2 cells, whose arrays `others` may change."""
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        arrays = {"data": np.array([[[0, 1], [-1, 2]], [[2, 2], [1, -1]]], np.int16)} | others
        for name, values in arrays.items():
            file[name] = values
        file.attrs["dx_dy_dz"] = (0.001, 0.001, 0.001)
    (tmp_path / "list.txt").write_text(
        "## three\ntitle: no command\n#material: 1 inf 1 0 pec\n#material: 2 0 1 0 a+b\n#material: 9 1 1 0 c\n"
    )
    return _file(tmp_path, SMALL + "#geometry_objects_read: 0.004 0.005 0.02 cells.h5 list.txt\n")


def test_cells_take_their_media_from_a_list(tmp_path: Path) -> None:
    domain = read(_cells(tmp_path)).domain
    names = [domain.media[number].name for number in domain.ids[2, 4:6, 5, 20]]
    assert names == ["pec", "c{list}"]
    assert domain.media[domain.ids[2, 4, 7, 21]].name == "c{list}"
    assert domain.media[domain.ids[2, 4, 5, 23]].name == "free_space"


def test_a_list_of_media_gives_each_its_poles_once(tmp_path: Path) -> None:
    path, pole = _cells(tmp_path), "#add_dispersion_debye: 1 3 1e-11 c\n"
    with (tmp_path / "list.txt").open("a") as file:
        file.write(pole)
    assert any(len(medium.poles) == 1 for medium in read(path).domain.media)
    with (tmp_path / "list.txt").open("a") as file:
        file.write(pole)
    with pytest.raises(UsageError, match=r"list.txt, line 7: .* to give a medium all its poles, got 'c'"):
        _ = read(path).domain


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ({"data": np.full((2, 2, 2), 3)}, "of which 3 are named"),
        ({"data": np.full((2, 2, 2), -2)}, "of which 3 are named"),
        ({"data": np.full((2, 2, 2), 1.0)}, "no whole numbers"),
        ({"data": np.zeros((2, 2), int)}, "to reach into the domain"),
        ({"ID": np.zeros((6, 3, 3, 2), int), "rigidE": np.zeros(1), "rigidH": np.zeros(1)}, "/ID has shape"),
        ({"ID": np.zeros((6, 3, 3, 3), int), "rigidE": np.zeros(1), "rigidH": np.zeros(1)}, "/rigidE has shape"),
    ],
)  # fmt: skip
def test_files_of_cells_that_cannot_be_are_one_sentence(
    tmp_path: Path, others: dict[str, np.ndarray], expected: str
) -> None:
    with pytest.raises(UsageError) as raised:
        _ = read(_cells(tmp_path, **others)).domain
    assert "line 7: #geometry_objects_read is expected" in str(raised.value)
    assert expected in str(raised.value)


def test_cells_beyond_the_domain_are_left_out_and_that_is_said(tmp_path: Path) -> None:
    for name in ("part.h5", "part_materials.json"):
        shutil.copy(HERE / name, tmp_path)
    line = "#geometry_objects_read: 0.025 0.025 0.02 part.h5 part_materials\n"
    model = read(_file(tmp_path, SMALL + line))
    assert "model.in, line 7: cells of 'part.h5' beyond the domain are left out." in model.build().warnings
    inside = read(_file(tmp_path, SMALL + line.replace("0.025 0.025 0.02", "0.015 0.015 0.01")))
    assert not [note for note in inside.build().warnings if "beyond" in note]
    left, whole = model.domain.ids[2, 26:30, 26:30, 22:30], inside.domain.ids[2, 16:20, 16:20, 12:20]
    for own, expected in zip(left.flat, whole.flat, strict=True):
        assert _properties(model.domain.media[own]) == _properties(inside.domain.media[expected])


def test_a_file_of_cells_that_lies_elsewhere_or_is_none_is_refused(tmp_path: Path) -> None:
    model = _cells(tmp_path)
    (tmp_path / "cells.h5").rename(tmp_path / "other.h5")
    with h5py.File(tmp_path / "cells.h5", "w") as file:
        file["data"] = h5py.ExternalLink("other.h5", "data")
        file.attrs["dx_dy_dz"] = (0.001, 0.001, 0.001)
    with pytest.raises(UsageError, match="lie in another file"):
        _ = read(model).domain
    (tmp_path / "cells.h5").write_text("none")
    with pytest.raises(UsageError, match="to name an HDF5 file of cells"):
        _ = read(model).domain
    (tmp_path / "cells.h5").unlink()
    with pytest.raises(UsageError, match="#geometry_objects_read is expected to name"):
        _ = read(model).domain


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"model": "constant"}, "a fault at 'base'"),
        ({"model": "constant", "base": {"relative_permittivity": 0.5}}, "0.5 below 1"),
        ({"model": "debye", "base": {"relative_permittivity": 2}, "poles": [3]}, "a fault at"),
        ({"model": "odd", "base": {"relative_permittivity": 2}, "poles": [{}]}, "model odd"),
        ({"alias": {"material": "wet"}}, "in a circle"),
        ({"alias": {"material": "wet", "database": "more"}}, "another database"),
        ([], "a fault at"),
    ],
)
def test_databases_with_faults_are_one_sentence(tmp_path: Path, entry: object, expected: str) -> None:
    document = {"schema": "gprMax-material-database", "schema_version": 1, "materials": {"wet": entry}}
    (tmp_path / "own.json").write_text(json.dumps(document))
    with pytest.raises(UsageError, match=expected):
        read(_file(tmp_path, SMALL + "#material_from_database: own wet\n"))
    (tmp_path / "own.json").write_text(json.dumps(document)[:-1])
    with pytest.raises(UsageError, match="A database of materials is expected at 'own"):
        read(_file(tmp_path, SMALL + "#material_from_database: own wet\n"))
    with pytest.raises(UsageError, match="copy gprMax's data/materials file there"):
        read(_file(tmp_path, SMALL + "#material_from_database: gpr wet\n"))


def test_a_database_has_media_of_every_model(tmp_path: Path) -> None:
    base = {"relative_permittivity": 3, "electric_conductivity_s_per_m": 0.1}
    poles = {
        "debye": {"relative_permittivity_difference": 2, "relaxation_time_s": 1e-11},
        "lorentz": {
            "relative_permittivity_difference": 2, "resonance_frequency_hz": 1e9, "damping_coefficient_per_s": 1e8,
        },
        "drude": {"plasma_frequency_hz": 2e9, "collision_frequency_per_s": 5e9},
        "general": {"w_per_s": [2e11, 0], "q_per_s": [-1e11, 0]},
    }  # fmt: skip
    entries: dict[str, object] = {
        model: {"model": model, "base": base, "poles": [pole], "metadata": {"original_id": f"{model} medium"}}
        for model, pole in poles.items()
    }
    entries |= {"metal": {"model": "builtin", "builtin": "pec"}, "wet": {"alias": {"material": "general"}}}
    document = {"schema": "gprMax-material-database", "schema_version": 1, "materials": entries}
    (tmp_path / "own.json").write_text(json.dumps(document))
    database = Database(tmp_path / "own.json")
    assert database.medium("metal") == PEC
    for key, pole in (("debye", debye(2, 1e-11)), ("lorentz", lorentz(2, 1e9, 1e8)), ("drude", drude(2e9, 5e9))):
        assert database.medium(key) == Medium(f"{key} medium", 3.0, 0.1, poles=(pole,))
    assert database.medium("wet", "soil") == Medium("soil", 3.0, 0.1, poles=(Pole(2e11, -1e11),))


def test_a_wall_takes_the_place_of_an_absorber(tmp_path: Path) -> None:
    walls = "#pml_cells: 5\n#symmetry_boundary: zmax pec\n#symmetry_boundary: x0 PEC\n"
    assert read(_file(tmp_path, SMALL + walls)).plan.thickness == {"x+": 5, "y-": 5, "y+": 5, "z-": 5}
    with pytest.raises(UsageError, match="the only kind of wall that is supported, got 'pmc'"):
        read(_file(tmp_path, SMALL + "#symmetry_boundary: x0 pmc\n"))


@pytest.mark.parametrize(("name", "count"), [("soils", 250), ("cells", 100)])
def test_mutated_files_are_read_or_refused(tmp_path: Path, name: str, count: int) -> None:
    chance, lines = random.Random(3), (HERE / f"{name}.in").read_text().splitlines()
    for file in ("part.h5", "bare.h5", "part_materials.json"):
        shutil.copy(HERE / file, tmp_path)
    others = ("nan", "1e400", "-1", "x", "", "9" * 40, "inf", "0", "0.02", "loam", "sand", "2", "../x")
    refused: list[str] = []
    for _ in range(count):
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
    assert count / 3 < len(refused) < count
    assert not [sentence for sentence in refused if "\n" in sentence]
