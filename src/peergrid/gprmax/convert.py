"""From an input file's items to the text of an equivalent model file of the kind fdtd3d."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from peergrid.errors import UsageError
from peergrid.gprmax import directions
from peergrid.gprmax.assemble import FED, Plan, requested_far_fields, waveform
from peergrid.gprmax.items import (
    AnyPole,
    Choice,
    DatabaseMedium,
    Dispersion,
    Faces,
    FarDirections,
    IgnoredCommand,
    Incoming,
    Material,
    Mixing,
    Moist,
    PoleSpec,
    ReceiverNode,
    ReceiverRows,
    SampledWaves,
    Saved,
    Setting,
    SnapshotFile,
    Source,
    Spectrum,
    Stretching,
    View,
    Wall,
    Wave,
)
from peergrid.gprmax.objects import Body, DataFile, FractalBox, Layer, Placed, Shape, Voxels, Wire
from peergrid.gprmax.tables import (
    AbsorberSpec,
    CoaxialFeed,
    Conductivity,
    ElectricDipole,
    FarFieldSpec,
    Graded,
    GridSpec,
    MagneticDipole,
    Mixture,
    PlaneWave,
    PointSource,
    StretchSpec,
    Tables,
    TransmissionLine,
    VoltageSource,
    Waveform,
)
from peergrid.gprmax.waves import Column
from peergrid.grid import Dtype
from peergrid.io.rule import shown
from peergrid.io.schema import read_value
from peergrid.io.toml import document, plain
from peergrid.models.fdtd3d import Grading, Pole
from peergrid.models.fdtd3d.domain import SIDES
from peergrid.models.model import Head
from peergrid.models.survey import Survey

KIND = TypeVar("KIND", bound=Placed)
WRITTEN = (
    Material, DatabaseMedium, Dispersion, Mixing, Choice, Moist, Body, FractalBox, Layer, Voxels, Wire, Wave,
    SampledWaves, Source, Incoming, ReceiverNode, ReceiverRows, Faces, Spectrum, FarDirections, Wall, SnapshotFile,
    View, Saved, Stretching, IgnoredCommand,
)  # fmt: skip
SETTINGS = (
    "title", "domain", "dx_dy_dz", "time_window", "time_step_stability_factor", "domain_mode", "magnetic_averaging",
    "dispersive_averaging", "pml_cells", "pml_formulation", "src_steps", "rx_steps", "study",
)  # fmt: skip


def text(plan: Plan, dtype: Dtype, survey: Survey | None, folder: Path) -> str:
    """The text of the model file; files are named relative to `folder`.

    Raises UsageError, one sentence with the command and its line, for items that a model file cannot express.
    """
    for item in plan.items:
        if isinstance(item, Placed) and not isinstance(item, WRITTEN):
            raise item.command.fault("to have a table in model files", "none", "run the input file as it is")
        if isinstance(item, Setting) and item.name not in SETTINGS:
            raise UsageError(f"#{item.name} is expected to have a key in model files, got none; run the input file.")
    settings = plan.settings
    tables = Tables(
        grid=_grid(plan, dtype),
        model=Head(str(settings.get("title", "")), "fdtd3d"),
        materials=tuple(_checked(Material, _materials(plan))),
        mixtures=tuple(one.model if isinstance(one, Mixing) else one for one in _mixtures(plan)),
        shapes=tuple(_checked(Shape | FractalBox | Voxels | Wire, _shapes(plan, folder))),
        surfaces=tuple(_checked(Layer, _layers(plan))),
        sources=tuple(_checked(PointSource | PlaneWave, _sources(plan, folder))),
        receivers=tuple(_checked(ReceiverNode, plan.of(ReceiverNode))),
        receiver_arrays=tuple(_checked(ReceiverRows, plan.of(ReceiverRows))),
        far_fields=tuple(_checked(FarFieldSpec, _far_fields(plan))),
        absorber=_absorber(plan),
        snapshots=tuple(_checked(SnapshotFile, plan.of(SnapshotFile))),
        views=tuple(_checked(View, plan.of(View))),
        cells=tuple(_checked(Saved, plan.of(Saved))),
        survey=survey,
    )
    return document(tables)


def _checked(hint: Any, items: Iterable[KIND]) -> Iterator[KIND]:
    """The items. Raises UsageError for one that a model file cannot express."""
    for item in items:
        try:
            read_value(hint, plain(item), "value")
        except UsageError as error:
            raise item.command.fault("to be what a model file can say", str(error), "correct it") from None
        yield item


def _grid(plan: Plan, dtype: Dtype) -> GridSpec:
    settings, window = plan.settings, plan.settings["time_window"]
    spacing = settings["dx_dy_dz"]
    return GridSpec(
        size=settings["domain"],
        spacing=spacing[0] if len(set(spacing)) == 1 else spacing,
        time_window=None if isinstance(window, int) else window,
        steps=window - 1 if isinstance(window, int) else None,
        courant=settings.get("time_step_stability_factor", 1.0),
        mode=settings.get("domain_mode"),
        dtype=dtype,
        magnetic_averaging=settings.get("magnetic_averaging", "harmonic"),
        dispersive_averaging=settings.get("dispersive_averaging", False),
    )


def _absorber(plan: Plan) -> AbsorberSpec:
    stretches = tuple(_stretch(item) for item in plan.of(Stretching))
    cells = tuple(plan.requested_thickness[side] for side in SIDES)
    same = cells[0] if len(set(cells)) == 1 else cells
    return AbsorberSpec(same, plan.settings.get("pml_formulation", "HORIPML"), stretches)  # type: ignore[arg-type]


def _stretch(item: Stretching) -> StretchSpec:
    def graded(given: Grading) -> Graded:
        assert given.most is not None
        return Graded(given.most, given.least, given.order, given.reverse)

    sigma = item.stretch.sigma
    return StretchSpec(
        graded(item.stretch.alpha),
        graded(item.stretch.kappa),
        Conductivity(sigma.most, sigma.least, sigma.order, sigma.reverse),
    )


def _materials(plan: Plan) -> Iterator[Material]:
    """Media with the poles that other commands add."""
    named = [item for item in plan.items if isinstance(item, Material | DatabaseMedium)]
    poles: dict[str, tuple[PoleSpec, ...]] = {item.name: () for item in named}
    for item in plan.of(Dispersion):
        for name in item.materials:
            if name not in poles:
                raise item.command.fault("to be of a material of the model", f"'{shown(name)}'", "give it a #material")
            poles[name] += item.poles
    for one in named:
        if isinstance(one, Material):
            yield replace(one, poles=one.poles + poles[one.name])
        else:
            medium = one.medium
            yield Material(
                one.command, medium.name, medium.permittivity, medium.conductivity, medium.permeability,
                medium.magnetic_loss, (*map(_pole, medium.poles), *poles[one.name]),
            )  # fmt: skip


def _pole(given: Pole) -> AnyPole:
    weight, rate = complex(given.weight), complex(given.rate)
    return AnyPole((weight.real, weight.imag), (rate.real, rate.imag), given.conductivity)


def _mixtures(plan: Plan) -> Iterator[Mixing | Choice | Moist]:
    for item in plan.items:
        if isinstance(item, Mixing | Choice | Moist):
            try:
                read_value(Mixture, plain(item.model if isinstance(item, Mixing) else item), "value")
            except UsageError as error:
                raise item.command.fault("to be what a model file can say", str(error), "correct it") from None
            yield item


def _shapes(plan: Plan, folder: Path) -> Iterator[Shape | FractalBox | Voxels | Wire]:
    for item in plan.items:
        if isinstance(item, Voxels):
            files = _relative(item.file, folder), DataFile(_relative(item.materials, folder))
            yield replace(item, given=files[0], media=files[1])
        elif isinstance(item, Body):
            yield replace(item, material=item.materials[0]) if len(item.materials) == 1 else item
        elif isinstance(item, FractalBox | Wire):
            yield item


def _layers(plan: Plan) -> Iterator[Layer]:
    return (item for item in plan.items if isinstance(item, Layer))


def _sources(plan: Plan, folder: Path) -> Iterator[PointSource | PlaneWave]:
    kinds = {kind.kind: kind for kind in (ElectricDipole, MagneticDipole, VoltageSource, TransmissionLine, CoaxialFeed)}
    for item in plan.items:
        if not isinstance(item, Source | Incoming):
            continue
        wave = waveform(plan, item)
        if isinstance(wave, Column):
            wave = replace(wave, file=_relative(Path(wave.file), folder))
        assert isinstance(wave, Waveform)
        if isinstance(item, Incoming):
            x, y, z = directions.whole(item.direction, plan.frame.spacing)
            yield PlaneWave(
                item.command, item.lo, item.hi, (x, y, z), item.polarisation, wave,
                item.medium or PlaneWave.medium, item.medium is None, item.start, item.stop,
            )  # fmt: skip
            continue
        given: dict[str, Any] = {"start": item.start, "stop": item.stop}
        if item.kind in FED:
            given["resistance"] = item.resistance
        yield kinds[item.kind](item.command, item.axis, item.at, wave, **given)


def _far_fields(plan: Plan) -> Iterator[FarFieldSpec]:
    for one, spectrum, around in requested_far_fields(plan):
        name = one.name or one.spectrum
        yield FarFieldSpec(one.command, around.lo, around.hi, spectrum.frequencies, one.theta, one.phi, name)


def _relative(file: Path, folder: Path) -> str:
    return Path(os.path.relpath(file, folder.resolve())).as_posix()
