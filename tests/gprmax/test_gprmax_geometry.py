"""Files of a model's geometry: those of gprMax 4.0.1 again, and views that VTK reads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray

from peergrid.errors import UsageError
from peergrid.gprmax import geometry, read
from peergrid.gprmax.library import SCHEMA, Database, entry
from peergrid.jobs import run_model
from peergrid.models import modelfile
from peergrid.models.fdtd3d import PEC, PMC, Medium, debye, drude, lorentz

pytestmark = pytest.mark.filterwarnings("ignore:Source . is at its strongest:UserWarning")  # runs end early here
HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("geometry")
    names = {path.name for path in geometry.write(read(HERE / "part.in").plan, "float32", folder)}
    assert names == {"part.h5", "part_materials.json", "seen.vtkhdf", "wires.vtkhdf"}
    return folder


def _properties(folder: Path) -> NDArray[np.float64]:
    """Four numbers of each medium of a file of cells, then those of a Debye pole."""
    with h5py.File(folder / "part.h5") as file:
        keys = [key.decode() for key in file["material_keys"][:]]
    materials = json.loads((folder / "part_materials.json").read_text())["materials"]
    base = [[float(value) for value in materials[key]["base"].values()] for key in keys]
    poles = [list(materials[key].get("poles", [{"a": 0, "b": 0}])[0].values()) for key in keys]
    return np.concatenate([base, poles], axis=1)


def test_a_file_of_cells_has_the_media_and_marks_that_gprmax_writes(written: Path) -> None:
    own, theirs = _properties(written), _properties(HERE)
    with h5py.File(written / "part.h5") as new, h5py.File(HERE / "part.h5") as old:
        np.testing.assert_array_equal(new["rigidE"], old["rigidE"])
        np.testing.assert_array_equal(new["rigidH"], old["rigidH"])
        np.testing.assert_allclose(own[new["data"][:]], theirs[old["data"][:]], rtol=1e-12)
        for place in range(6):
            columns = [0, 1, 4, 5] if place < 3 else [2, 3]
            found, expected = own[new["ID"][place]], theirs[old["ID"][place]]
            np.testing.assert_allclose(found[..., columns], expected[..., columns], rtol=1e-12)
        assert new.attrs["dx_dy_dz"].tolist() == [0.001, 0.001, 0.001]
        assert new.attrs["MaterialDatabase"] == "part_materials"


def test_a_file_of_cells_is_read_again(written: Path) -> None:
    model = written / "model.in"
    head = [
        line for line in (HERE / "part.in").read_text().splitlines() if line.startswith(("#domain", "#dx", "#time"))
    ]
    model.write_text("\n".join([*head, "#geometry_objects_read: 0.001 0.001 0.001 part.h5 part_materials"]))
    again, first = read(model).domain, read(HERE / "part.in").domain
    where = (slice(0, 3), slice(2, 11), slice(2, 10), slice(2, 12))  # inside: faces are averaged with what is beside
    for own, expected in zip(again.ids[where].flat, first.ids[where].flat, strict=True):
        assert replace(again.media[own], name="") == replace(first.media[expected], name="")


def test_cells_of_a_te_plane_are_read_again(tmp_path: Path) -> None:
    """Both cells along the flat axis, between which the fields lie."""
    head = "#domain: 0.03 inf 0.03\n#domain_mode: TE\n#dx_dy_dz: 0.001 0.001 0.001\n#time_window: 9\n"
    bodies = "#material: 6 0 1 0 soil\n#box: 0 0 0 0.03 0.001 0.02 soil\n#edge: 0.01 inf 0.01 0.02 inf 0.01 pec\n"
    model = tmp_path / "model.in"
    model.write_text(f"{head}{bodies}#geometry_objects_write: 0 0 0 0.03 inf 0.03 all\n")
    first = read(model)
    geometry.write(first.plan, "float32", tmp_path)
    model.write_text(f"{head}#geometry_objects_read: 0 0 0 all.h5 all_materials\n")
    again = read(model).domain
    for component in (0, 2, 4):
        found, expected = (
            np.array([medium.permittivity for medium in domain.media])[domain.ids[component, 1:-1, :, 1:-1]]
            for domain in (again, first.domain)
        )
        np.testing.assert_array_equal(found, expected)
        assert (component == 4) or 3.5 in found


def test_views_are_images_and_lines_of_vtk(written: Path) -> None:
    domain = read(HERE / "part.in").domain
    names = [medium.name for medium in domain.media]
    with h5py.File(written / "seen.vtkhdf") as file:
        group = file["VTKHDF"]
        assert group["FieldData/MaterialNames"].asstr()[:].tolist() == names
        assert (group.attrs["Type"], group.attrs["WholeExtent"].tolist()) == (b"ImageData", [0, 12, 0, 11, 0, 7])
        np.testing.assert_allclose(group.attrs["Spacing"], (0.001, 0.001, 0.002))
        cells = group["CellData/Material"]
        assert cells.shape == (7, 11, 12)
        assert [names[cells[at]] for at in ((2, 3, 3), (0, 0, 0), (2, 5, 6))] == ["pec", "sand", "clay"]
    with h5py.File(written / "wires.vtkhdf") as file:
        group = file["VTKHDF"]
        ends = group["Points"][:][group["Connectivity"][:].reshape(-1, 2)]
        assert (group.attrs["Type"], group["NumberOfCells"][0]) == (b"UnstructuredGrid", len(ends))
        nodes = np.rint(ends / 0.001).astype(int)
        steps = nodes[:, 1] - nodes[:, 0]
        assert np.unique(steps, axis=0).tolist() == [[0, 0, 1], [0, 1, 0], [1, 0, 0]]
        along = steps.argmax(axis=1)
        expected = domain.ids[(along, *nodes[:, 0].T)]
        np.testing.assert_array_equal(group["CellData/Material"], expected)
        assert group["Offsets"][-1] == 2 * len(ends) == group["NumberOfConnectivityIds"][0]


def test_a_run_leaves_them_beside_its_results(tmp_path: Path) -> None:
    model = modelfile.read(HERE.parents[1] / "examples" / "soil.in").with_steps(20)
    run_model(model, tmp_path / "out", devices="cpu:1")
    assert {"results.h5", "ground.vtkhdf"} <= {path.name for path in (tmp_path / "out").iterdir()}
    with h5py.File(tmp_path / "out" / "results.h5") as file:
        assert np.abs(file["rxs/rx1/Ex"][:]).max() > 1e-6


def test_media_of_every_kind_come_back_from_a_database(tmp_path: Path) -> None:
    media = [
        PEC, PMC,
        Medium("wet soil", 4.0, 0.01, 1.5, 2.0, (debye(3.0, 1e-11), debye(1.0, 2e-10))),
        Medium("glass", 2.0, poles=(lorentz(1.0, 3e9, 1e9),)),
        Medium("plasma", 1.0, poles=(drude(2e9, 5e9),)),
    ]  # fmt: skip
    entries = {f"key_{place}": entry(medium) for place, medium in enumerate(media)}
    document = {"schema": SCHEMA, "schema_version": 1, "materials": entries}
    (tmp_path / "own.json").write_text(json.dumps(document))
    database = Database(tmp_path / "own.json")
    for place, medium in enumerate(media):
        found = database.medium(f"key_{place}")
        assert (found.name, found.permittivity, found.magnetic_loss) == (
            medium.name, medium.permittivity, medium.magnetic_loss
        )  # fmt: skip
        dc = [m.conductivity + 8.8541878e-12 * sum(pole.conductivity for pole in m.poles) for m in (found, medium)]
        assert dc[0] == pytest.approx(dc[1], rel=1e-6)
        for own, pole in zip(found.poles, medium.poles, strict=True):
            assert complex(own.weight) == pytest.approx(complex(pole.weight), rel=1e-12)
            assert complex(own.rate) == pytest.approx(complex(pole.rate), rel=1e-12)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("#geometry_objects_write: 0 0 0 0.01 0.01 0.01 ../part", "to have a name without folders"),
        ("#geometry_view: 0 0 0 0.01 0.01 0.01 0.001 0.001 0.001 .hidden n", "to have a name without folders"),
        ("#geometry_view: 0 0 0 0.01 0.01 0.01 0.001 0.001 0.001 seen x", "to have n or f"),
        ("#geometry_view: 0 0 0 0.01 0.01 0 0.001 0.001 0.001 flat n", "from lower to higher nodes"),
        ("#geometry_objects_write: 0 0 0 0.02 0.01 0.01 large", "to lie within the domain"),
        (
            "#geometry_view: 0 0 0 0.01 0.01 0.01 0.001 0.001 0.001 seen f",
            "to have a name of its own, got 'seen.vtkhdf'",
        ),
        (
            "#geometry_view: 0 0 0 0.01 0.01 0.01 0.001 0.0005 0.001 fine n",
            "to have samples 1 to (12, 11, 13) cells apart",
        ),
        (
            "#geometry_view: 0 0 0 0.01 0.01 0.01 0.001 0.002 0.001 lines f",
            "samples a cell apart, as edges are, got (1, 2, 1)",
        ),
        ("#geometry_objects_write: 0 0 0 0.01 0.01 0.01 results", "to have another name than results"),
    ],
)
def test_files_that_cannot_be_written_are_one_sentence(tmp_path: Path, line: str, expected: str) -> None:
    model = tmp_path / "model.in"
    model.write_text(f"{(HERE / 'part.in').read_text()}{line}\n")
    with pytest.raises(UsageError) as raised:
        modelfile.read(model).build()
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)
