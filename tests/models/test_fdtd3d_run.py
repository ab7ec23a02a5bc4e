"""Domains carried out: the same bits however they run, and one sentence for each fault."""

from __future__ import annotations

import sys
from dataclasses import replace
from math import sqrt
from pathlib import Path
from typing import Any

import h5py
import matplotlib
import numpy as np
import pytest
from fdtd3d_examples import SPACING, absorbing, vacuum
from PIL import Image

import peergrid
from peergrid import Options, UsageError
from peergrid.jobs import run_model
from peergrid.models import Snapshots
from peergrid.models.fdtd3d import (
    PEC,
    VACUUM,
    Absorber,
    Domain,
    DomainModel,
    Drive,
    ElectricDipole,
    Grading,
    MagneticDipole,
    Medium,
    Pictures,
    PlaneWave,
    Receiver,
    Slab,
    Stretch,
    TransmissionLine,
    VoltageSource,
    build,
    debye,
    lorentz,
)
from peergrid.models.fdtd3d.isosurface import picture_surfaces
from peergrid.models.fdtd3d.model import LIBRARIES
from peergrid.models.fdtd3d.picture import CONDUCTOR
from peergrid.models.fdtd3d.results import write_results
from peergrid.models.survey import Trace
from peergrid.models.waveforms import Ricker

pytestmark = pytest.mark.filterwarnings("ignore:Source . is at its strongest:UserWarning")  # runs end early here
PULSE = Drive(Ricker(4e9))


def everything() -> Domain:
    """A small domain with every kind of medium and source, of different thickness on every side."""
    ids = np.zeros((6, 17, 19, 21), np.uint8)
    ids[:3, :, :, :9] = 1
    ids[:3, 9:12, :, 11:14] = 2
    ids[2, 6, 6, 10:13] = 3
    ids[3:, 3:6, 3:6, 3:6] = 4
    media = (
        VACUUM, Medium("wet", 4.0, 0.01, poles=(debye(2.0, 1e-11),)),
        Medium("resonant", 2.0, poles=(lorentz(1, 5e9, 1e9),)), PEC, Medium("iron", 1.0, 0.0, 2.0, 100.0),
    )  # fmt: skip
    sources = (
        ElectricDipole("z", (8, 9, 12), PULSE), MagneticDipole("x", (7, 9, 11), PULSE),
        VoltageSource("y", (9, 7, 12), PULSE, 50.0), VoltageSource("x", (9, 12, 12), PULSE, 0.0),
        TransmissionLine("z", (11, 11, 12), PULSE, 73.0),
        PlaneWave((5, 4, 12), (9, 8, 15), (1, -2, 3), (0.0, 3 / sqrt(13), 2 / sqrt(13)), PULSE),
    )  # fmt: skip
    return vacuum(
        (16, 18, 20), 24, ids=ids, media=media, sources=sources, absorber=Absorber((("x-", Slab(3)), ("z+", Slab(4)))),
        receivers=(Receiver((9, 9, 13)), Receiver((8, 9, 10), ("Ez", "Iz"))), dtype="float32",
    )  # fmt: skip


def test_the_bits_are_the_same_on_any_devices() -> None:
    problem = build(everything()).problem
    chosen = ((1, "serial", 1), (2, "overlap", 2), (3, "peer", 1), (4, "async", 3), (7, "threads", 1), (2, "graph", 1))
    ways = [(f"cpu:{count}", Options(strategy, depth=depth)) for count, strategy, depth in chosen]
    found = [peergrid.run(problem, steps=24, devices=devices, options=options) for devices, options in ways]
    assert len({one.sha256 for one in found}) == 1
    assert len({np.stack(list(one.traces.values())).tobytes() for one in found}) == 1
    assert np.abs(found[0].fields["Ez"]).max() > 0


SMALL = vacuum((8, 9, 10), 5, sources=(ElectricDipole("z", (4, 4, 4), PULSE),), receivers=(Receiver((2, 2, 2)),))
TWO = (Stretch(), Stretch(sigma=Grading(0.0, 5.0, 3)))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"shape": (8, 9, 1)}, "at least two cells along each axis"),
        ({"ids": np.zeros((6, 8, 9, 10), np.uint8)}, r"shape \(6, 9, 10, 11\), got \(6, 8, 9, 10\)"),
        ({"media": ()}, "at least one medium"),
        ({"ids": np.full((6, 9, 10, 11), 7, np.uint8)}, "below 2, the number of media, got 7"),
        ({"dt": 1e-11}, "to be stable, got 1e-11 s"),
        ({"media": (VACUUM, Medium("odd", poles=(debye(1.0, -1e-11),)))}, "poles that decay"),
        ({"steps": 0}, "steps are expected"),
        ({"receivers": (Receiver((9, 0, 0)),)}, r"Receiver 1 .* got \(9, 0, 0\)"),
        ({"sources": (ElectricDipole("z", (4, 4, 11), PULSE),)}, r"Source 1 .* got \(4, 4, 11\)"),
        ({"sources": (ElectricDipole("z", (4, 4, 10), PULSE),)}, r"Source 1 .* to \(8, 9, 9\), which have Ez, got \(4"),
        ({"sources": (MagneticDipole("y", (8, 4, 4), PULSE),)}, r"Source 1 .* to \(7, 9, 9\), which have Hy, got \(8"),
        ({"sources": (VoltageSource("z", (4, 4, 4), PULSE, 50.0),), "ids": np.ones((6, 9, 10, 11), np.uint8)},
         "Source 1 is expected between conductors, got 'pec' at its edge"),
        ({"sources": (VoltageSource("z", (4, 4, 4), PULSE, -1.0),)}, "resistance not below 0"),
        ({"sources": (TransmissionLine("z", (4, 4, 4), PULSE, 0.0),)}, "resistance above 0"),
        ({"sources": (TransmissionLine("z", (4, 4, 4), PULSE, 50.0),)}, "10 cells beside it"),
        ({"absorber": absorbing(4)}, "leave cells between its sides along x, got 8 of 8 cells"),
        ({"absorber": replace(absorbing(2), stretches=())}, "one stretch or two"),
        ({"absorber": replace(absorbing(2), stretches=(Stretch(kappa=Grading(0.0, 0.0)),))}, "1, each above 0"),
        ({"absorber": replace(absorbing(2), stretches=(Stretch(), Stretch(kappa=Grading())))}, "above 0, got 1 and 0;"),
        ({"absorber": replace(absorbing(2), stretches=TWO)}, "damp waves of every frequency"),
    ],
)  # fmt: skip
def test_faults_are_said_in_a_sentence(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        build(replace(SMALL, **changed))


def test_a_plane_refuses_what_it_does_not_have() -> None:
    source = ElectricDipole("x", (4, 4, 0), PULSE)
    with pytest.raises(UsageError, match="drives Ex, which mode TMz does not have"):
        build(vacuum((8, 9, 1), 5, mode="TMz", sources=(source,)))
    for source in (ElectricDipole("z", (8, 9, 0), PULSE), MagneticDipole("x", (8, 8, 0), PULSE)):
        assert build(vacuum((8, 9, 1), 5, mode="TMz", sources=(source,))).problem.signals


def test_media_cost_memory_only_where_they_differ() -> None:
    """In vacuum there are no fields of coefficients, and an absorber's memories are as large as the absorber."""
    bare = build(vacuum((20, 20, 20), 5)).problem
    assert sorted(bare.fields) == ["Ex", "Ey", "Ez", "Hx", "Hy", "Hz"]
    fields = build(everything()).problem.fields
    assert fields["Ey.x-.memory1"].box.shape == (3, 18, 19)
    assert fields["Hy.x-.memory1"].box.shape == (3, 18, 20)
    assert fields["Ez.pole1.real"].box.hi[2] == 14
    assert "Ex.z+.memory1" in fields
    assert "Ez.x+.memory1" not in fields


def test_results_are_laid_out_as_gprmax_does(tmp_path: Path) -> None:
    """With the current around an edge, what is sent along a line, and snapshots."""
    model = DomainModel(replace(everything(), title="small"), snapshots=Snapshots(8, ("Ez",), 2))
    found = run_model(model, tmp_path / "out", devices="cpu:1", strategy="async", depth=1)
    with h5py.File(tmp_path / "out" / "results.h5") as file:
        assert file.attrs["Iterations"] == 25
        assert list(file.attrs["nx_ny_nz"]) == [16, 18, 20]
        receiver = file["rxs/rx1"]
        assert list(receiver.attrs["GridPosition"]) == [9, 9, 13]
        assert receiver["Hx"].attrs["TimeSampleOffset"] == -0.5 * found.model.dt
        np.testing.assert_allclose(receiver["Ez"][1:], found.traces["rx1.Ez"], rtol=1e-6)
        h = [found.fields[name] for name in ("Hx", "Hy")]
        loop = SPACING * (h[1][8, 9, 10] - h[1][7, 9, 10] - h[0][8, 9, 10] + h[0][8, 8, 10])
        assert file["rxs/rx2/Iz"][-1] == pytest.approx(loop, rel=1e-4)
        assert file["srcs/src1"].attrs["Type"] == "HertzianDipole"
        assert file["srcs/src4/excitation/samples"].shape == (25,)
        line = file["tls/tl1"]
        assert line["Vtotal"].shape == line["Vinc"].shape == line["Itotal"].shape == (25,)
        ratio = np.fft.rfft(line["Vtotal"][:] - line["Vinc"][:]) / np.fft.rfft(line["Vinc"][:])
        np.testing.assert_allclose(line["S11"][:], ratio[: len(line["S11"])], rtol=1e-5)
        np.testing.assert_array_equal(file["fields/Ez"][:], found.fields["Ez"])
    with h5py.File(tmp_path / "out" / "snapshots.h5") as file:
        assert file["Ez"].shape == (3, 9, 10, 11)


@pytest.mark.parametrize("receivers", [(Receiver((2, 2, 2), ("Ez",)),), ()])
def test_results_of_a_run_that_was_ended_have_as_many_samples_as_it_made(
    tmp_path: Path, receivers: tuple[Receiver, ...]
) -> None:
    built = build(replace(SMALL, receivers=receivers))
    found = peergrid.run(built.problem, steps=3, devices="cpu:1", options=Options("serial", depth=1))
    write_results(tmp_path / "results.h5", built, found.traces, about={"steps": 3})
    with h5py.File(tmp_path / "results.h5") as file:
        assert (file.attrs["Iterations"], file["time"].shape) == (4, (4,))
        for receiver in file.get("rxs", {}).values():
            assert receiver["Ez"].shape == file["time"].shape


def test_a_survey_lies_side_by_side(tmp_path: Path) -> None:
    """Of two traces: the second's source and receiver are a cell further along x."""
    built = [
        build(
            replace(
                SMALL,
                sources=(ElectricDipole("z", (4 + k, 4, 4), PULSE),),
                receivers=(Receiver((2 + k, 2, 2), ("Ez", "Iz")), Receiver((4 + k, 5, 6), ("Hx",))),
            )
        )
        for k in range(2)
    ]
    traces = []
    for one in built:
        records = peergrid.run(one.problem, steps=5, devices="cpu:1", options=Options("serial", depth=1)).traces
        units = {receiver.name: one.units[receiver.field] for receiver in one.problem.receivers}
        values = np.stack([records[name] * units[name] for name in one.receivers])
        traces.append(Trace(one.sources, tuple(one.receivers.values()), values))
    built[0].write_survey(tmp_path, traces, {"traces": 2})
    with h5py.File(tmp_path / "results.h5") as file:
        assert list(file.attrs["srcsteps"]) == list(file.attrs["rxsteps"]) == [1, 0, 0]
        assert file["rxs/rx1/Ez"].shape == (6, 2)
        places = [file[f"rxs/rx{number}"].attrs["Position"] for number in (1, 2)]
        np.testing.assert_allclose(file["survey/receivers"][0], places)
        np.testing.assert_allclose(file["survey/receivers"][1], np.add(places, (SPACING, 0, 0)))
        assert [dimension.label for dimension in file["rxs/rx1/Iz"].dims] == ["time", "trace"]
        assert (file["rxs/rx1/Iz"].attrs["units"], file["survey/sources"].attrs["units"]) == ("A", "m")
        np.testing.assert_allclose(file["rxs/rx1/Ez"][1:, 1], traces[1].values[0], rtol=1e-12)
        factors = [1, -1, -1, 1]
        expected = sum(f * SPACING * v for f, v in zip(factors, traces[1].values[1:5], strict=True))
        np.testing.assert_allclose(file["rxs/rx1/Iz"][1:, 1], expected, rtol=1e-9, atol=1e-12)


def test_memory_is_bounded_from_the_description() -> None:
    model = DomainModel(everything())
    fields = model.build().problem.fields
    needed = sum(field.box.size for name, field in fields.items() if field.full) * 4
    bound = model.memory(computing=True, writing=True)
    assert needed < bound.cells - LIBRARIES
    assert bound.steps == 24


def test_the_picture_shows_conductors_in_every_slice(tmp_path: Path) -> None:
    """Pixels of the colour of conductors: as the cells of a cube of twice the width, but for the legend."""
    counts = []
    for wide in (0, 4, 8):
        domain = vacuum((20, 16, 24), 2, media=(Medium("soil", 5.0), PEC), absorber=absorbing(3))
        ids = np.zeros((6, 21, 17, 25), np.uint8)
        ids[:, 6 : 6 + wide, 4 : 4 + wide, 8 : 8 + wide] = 1
        source = ElectricDipole("z", (8, 6, 10), Drive(Ricker(1e9)))
        built = build(replace(domain, ids=ids, sources=(source,), receivers=(Receiver((12, 12, 12)),)))
        built.picture(tmp_path / "picture.png")
        with Image.open(tmp_path / "picture.png") as image:
            pixels = np.asarray(image.convert("RGB"), np.int16)
        counts.append(int((np.abs(pixels - np.round(255 * np.array(CONDUCTOR))).max(axis=2) < 2).sum()))
    small, large = counts[1] - counts[0], counts[2] - counts[0]
    assert small > 3000
    assert large == pytest.approx(4 * small, rel=0.05)


def test_a_run_draws_media_traces_slices_of_snapshots_and_an_animation(tmp_path: Path) -> None:
    """Slices through the source show its field, those inside a conductor none."""
    ids = np.zeros((6, 21, 17, 25), np.uint8)
    ids[:, 12:] = 1
    domain = replace(
        vacuum((20, 16, 24), 20), ids=ids, dtype="float32",
        sources=(ElectricDipole("z", (8, 6, 10), PULSE),), receivers=(Receiver((8, 8, 10), ("Ez", "Hx"), "a/b"),),
    )  # fmt: skip
    coloured = []
    for still, through in (("png", None), (None, (16 * SPACING, 12 * SPACING, 18 * SPACING))):
        pictures = Pictures(still, "own", "gif", "x", through, 320)
        model = DomainModel(domain, snapshots=Snapshots(5, ("Ez",), 2), pictures=pictures)
        found = run_model(model, tmp_path / str(still), devices="cpu:1")
        names = ["model.png", "receiver-a_b.png", *(f"snapshot-Ez-{step:06d}.png" for step in (10, 15, 20))]
        expected = ["results.h5", "snapshots.h5", *(names if still else ()), "animation.gif"]
        assert [file.name for file in found.outputs] == expected
        with Image.open(found.outputs[-1]) as film:
            assert film.n_frames == 4
            film.seek(3)
            pixels = np.asarray(film.convert("RGB"), np.int16)
        coloured.append(int((np.abs(pixels[..., 0] - pixels[..., 2]) > 60).sum()))
    assert coloured[0] > 500
    assert coloured[1] == 0


def test_a_picture_of_surfaces_shows_where_a_field_has_an_amplitude(tmp_path: Path) -> None:
    """Of a field that falls as 1 / r: a ball, positive, of twice the radius at half the amplitude; and a plate."""
    ids = np.zeros((6, 21, 21, 21), np.uint8)
    ids[:, :2] = 1
    built = build(replace(vacuum((20, 20, 20), 20), ids=ids))
    x, y, z = np.ogrid[-10:11, -10:11, -10:11]
    values = 1 / np.sqrt(x * x + y * y + z * z + 0.1)
    counts = []
    for level in (0.5, 0.25):
        picture_surfaces(tmp_path / "surfaces.png", built, "Ez", values, 1e-9, level)
        with Image.open(tmp_path / "surfaces.png") as image:
            pixels = np.asarray(image.convert("RGB"), np.int16)
        red, blue = (int((pixels[..., a] - pixels[..., b] > 40).sum()) for a, b in ((0, 2), (2, 0)))
        counts.append(red)
        assert blue == 0
        assert (np.abs(pixels - 153).max(axis=2) < 30).sum() > 3000
    assert counts[1] == pytest.approx(4 * counts[0], rel=0.1)


def test_a_run_draws_surfaces_of_its_snapshots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    domain = replace(vacuum((20, 16, 24), 10), sources=(ElectricDipole("z", (8, 6, 10), PULSE),))
    model = DomainModel(domain, snapshots=Snapshots(10, ("Ez",), 2), pictures=Pictures("png", surfaces=0.5))
    assert "surfaces-Ez-000010.png" in [file.name for file in run_model(model, tmp_path, devices="cpu:1").outputs]
    monkeypatch.setitem(sys.modules, "skimage", None)
    with pytest.raises(UsageError, match="install peergrid with its extra 'surfaces'"):
        run_model(model, tmp_path, devices="cpu:1")


def test_animations_too_tall_for_their_files_are_refused_before_a_run(tmp_path: Path) -> None:
    """A slice of 2 by 100 cells; GIF has at most 65535 pixels, and a frame is drawn in memory."""
    domain = replace(vacuum((4, 2, 100), 10), sources=(ElectricDipole("z", (2, 1, 10), PULSE),))
    model = DomainModel(domain, snapshots=Snapshots(5, ("Ez",)), pictures=Pictures(animation="gif", slice="x"))
    with pytest.raises(UsageError, match=r"at most 8,000 pixels upwards, got 36,000; use at most 160, or"):
        run_model(model, tmp_path, devices="cpu:1")
    assert not list(tmp_path.iterdir())
    run_model(replace(model, pictures=replace(model.pictures, width=160)), tmp_path, devices="cpu:1")
    assert (tmp_path / "animation.gif").exists()


def test_a_plane_has_no_other_slice(tmp_path: Path) -> None:
    plane = replace(vacuum((20, 16, 1), 5, mode="TMz"), sources=(ElectricDipole("z", (8, 6, 0), PULSE),))
    model = DomainModel(plane, pictures=Pictures("png", through=(0.01, 0.01, float("inf"))))
    assert tmp_path / "model.png" in run_model(model, tmp_path, devices="cpu:1").outputs


def test_pictures_of_a_plane_and_sections_of_a_survey(tmp_path: Path) -> None:
    plane = replace(
        vacuum((20, 16, 1), 20, mode="TMz"), sources=(ElectricDipole("z", (8, 6, 0), PULSE),),
        receivers=(Receiver((9, 6, 0), ("Ez",)), Receiver((9, 6, 0), ("Hz",))),
    )  # fmt: skip
    model = DomainModel(plane, snapshots=Snapshots(10, ("Ez",)), pictures=Pictures("svg", animation="gif"))
    found = run_model(model, tmp_path, devices="cpu:1")
    assert {"model.svg", "snapshot-Ez-000020.svg", "animation.gif"} <= {file.name for file in found.outputs}
    values = np.stack([found.traces["rx1.Ez"]])
    traces = [Trace(((0.0, 0.0, 0.0),), ((k * SPACING, 0.0, 0.0),), values) for k in range(3)]
    merged = model.build().write_survey(tmp_path, traces, {})
    assert merged.name == "results.h5"
    with h5py.File(merged) as file:  # what stays zero has no record, so that its positions are not known
        assert np.isnan(file["survey/receivers"][:]).all(axis=(0, 2)).tolist() == [False, True]
        assert file.attrs["rxsteps"].tolist() == [1, 0, 0]
    for pictures, label in ((model.pictures, "Ez, automatic gain"), (replace(model.pictures, gain="none"), "Ez (V/m)")):
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            (section,) = replace(model, pictures=pictures).build().write_others(merged, lambda _: True)
        assert section.name == "section-rx1.svg"
        assert label in section.read_text()
