"""From the items of an input file to a rasterised domain: grid and time step, objects in order, sources, receivers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from functools import cached_property
from math import ceil, isinf, sqrt
from typing import Any, TypeVar

import numpy as np

from peergrid.errors import UsageError
from peergrid.gprmax import directions, ground, voxels
from peergrid.gprmax.items import (
    Faces,
    FarDirections,
    Incoming,
    Item,
    Mixing,
    ReceiverNode,
    ReceiverRows,
    SampledWaves,
    Setting,
    Source,
    Spectrum,
    Stretching,
    Wall,
    Wave,
)
from peergrid.gprmax.media import BACKGROUND, Media
from peergrid.gprmax.objects import Edge, Flood, FractalBox, Lawn, Layer, Shape, Vector, Voxels, Wire
from peergrid.gprmax.raster import Raster
from peergrid.gprmax.shapes import Frame, cells, edges, nearest
from peergrid.gprmax.soils import GRASS, WATER, Soil
from peergrid.gprmax.text import Command, check_names
from peergrid.gprmax.waves import Column, Formula, columns
from peergrid.grid import Dtype, Index
from peergrid.models.fdtd3d import (
    AXES,
    SIDES,
    VACUUM,
    Absorber,
    CoaxialFeed,
    Domain,
    Drive,
    ElectricDipole,
    FarField,
    MagneticDipole,
    PlaneWave,
    Receiver,
    Slab,
    Stretch,
    Subjects,
    TransmissionLine,
    VoltageSource,
    remembered,
)
from peergrid.models.fdtd3d.domain import Mode, Waveform, live
from peergrid.models.fdtd3d.domain import Source as Placed
from peergrid.models.fdtd3d.domain import Wire as PlacedWire

LIGHT = 299_792_458.0  # m/s
ESSENTIAL = ("domain", "dx_dy_dz", "time_window")
SHORTEST = Decimal("1e-27")  # s, what time steps are rounded to
DIGITS = 60  # more than a time step of the largest spacing has
MOST_CELLS = 1 << 40
MOST_STEPS = 1 << 31
CELLS_OF_ABSORBER = 10
BEFORE_LAYERS = 25
FED: Mapping[str, type[VoltageSource | TransmissionLine | CoaxialFeed]] = {
    "voltage_source": VoltageSource, "transmission_line": TransmissionLine, "coaxial_feed": CoaxialFeed,
}  # fmt: skip
KIND = TypeVar("KIND")


@dataclass(frozen=True)
class Plan:
    """The grid of a model and its time step, before anything is rasterised."""

    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        names = [item.name for item in self.items if isinstance(item, Setting)]
        for name in ESSENTIAL:
            if name not in names:
                raise UsageError(f"A model is expected to have a line '#{name}: …', got none; add it.")
        boxes = {item.name for item in self.of(FractalBox)}
        # gprMax's own models have boxes of one name that no surface names
        layered = {item.box for item in self.items if isinstance(item, Layer)}
        check_names((item.command, item.name) for item in self.of(FractalBox) if item.name in layered)
        for item in self.items:
            if isinstance(item, SampledWaves) and not item.file.is_file():
                raise item.command.fault("to name a file that is there", f"'{item.file.name}'", "correct the path")
            if isinstance(item, Layer) and item.box not in boxes:
                raise item.command.unknown("a fractal box", item.box, boxes)
        _ = self.frame, self.dt, self.steps, self.waves, media_of(self)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """The values of commands of which a model has one."""
        return {item.name: item.value for item in self.items if isinstance(item, Setting)}

    def of(self, kind: type[KIND]) -> tuple[KIND, ...]:
        """The items of a kind."""
        return tuple(item for item in self.items if isinstance(item, kind))

    def subject(self, name: str, otherwise: str) -> str:
        """The beginning of a sentence about a setting: its command and line, if it is from an input file."""
        found = (item.command for item in self.of(Setting) if item.name == name)
        command = next(found, None)
        return otherwise if command is None else command.what

    @cached_property
    def frame(self) -> Frame:
        """The grid."""
        spacing: Vector = self.settings["dx_dy_dz"]
        size: Vector = self.settings["domain"]
        wanted = self.settings.get("domain_mode")
        counts = [1 if isinf(s) else nearest(s / d) for s, d in zip(size, spacing, strict=True)]
        thin = [axis for axis, n in enumerate(counts) if n == 1 or (wanted == "TE" and n == 2)]
        flat = thin[0] if len(thin) == 1 and wanted != "3D" else None
        if any(isinf(s) for axis, s in enumerate(size) if axis != flat) or (wanted in ("TM", "TE") and flat is None):
            raise UsageError(
                f"{self.subject('domain', 'The domain')} is expected to be inf, or one cell thick, along the "
                "one axis of "
                f"mode TM or TE alone, got {counts} cells; correct it."
            )
        if (
            any(n < 1 for n in counts)
            or (flat is None and min(counts) < 2)
            or np.prod(counts, dtype=float) > MOST_CELLS
        ):
            raise UsageError(
                f"{self.subject('domain', 'The domain')} is expected to be two cells or more along each axis, "
                f"or one along one of them, and at most {MOST_CELLS:,} in all, got {counts}; correct it or the spacing."
            )
        if flat is not None and wanted == "TE" and isinf(size[flat]):
            counts[flat] = 2  # as in gprMax: fields lie between two cells
        return Frame(tuple(counts), spacing, flat)

    @cached_property
    def waves(self) -> Mapping[str, Formula | Column]:
        """Waveforms by name."""
        found = tuple(self._waves())
        check_names((command, name) for command, name, _ in found)
        return {name: wave for _, name, wave in found}

    def _waves(self) -> Iterator[tuple[Command, str, Formula | Column]]:
        for item in self.items:
            if isinstance(item, Wave):
                yield item.command, item.name, item.formula
            elif isinstance(item, SampledWaves):
                _, named = columns(item.command, item.file)
                yield from ((item.command, name, Column(item.command, str(item.file), name)) for name in named)

    @property
    def mode(self) -> Mode:
        """The mode: three dimensions, or TE or TM in two."""
        if self.frame.flat is None:
            return "3D"
        kind = "TE" if self.settings.get("domain_mode") == "TE" else "TM"
        return f"{kind}{AXES[self.frame.flat]}"  # type: ignore[return-value]

    @property
    def dt(self) -> float:
        """The longest step that is stable in vacuum, rounded down, times the stability factor; seconds."""
        inverse = sum(1 / d**2 for axis, d in enumerate(self.frame.spacing) if axis != self.frame.flat)
        longest = Decimal(1 / (LIGHT * sqrt(inverse))).quantize(SHORTEST, ROUND_FLOOR, Context(prec=DIGITS))
        if not longest:
            raise UsageError(
                f"{self.subject('dx_dy_dz', 'The spacing')} is expected to allow a time step of at least {SHORTEST} s, "
                f"got cells of {self.frame.spacing} m; make them larger."
            )
        return float(longest) * float(self.settings.get("time_step_stability_factor", 1.0))

    @property
    def steps(self) -> int:
        """The steps: one less than the samples of a trace, whose first is taken before the first step."""
        window = self.settings["time_window"]
        samples = window if isinstance(window, int) else ceil(min(window / self.dt, 1e18)) + 1
        if samples < 2 or samples > MOST_STEPS:
            raise UsageError(
                f"{self.subject('time_window', 'The time window')} is expected to have 2 to {MOST_STEPS:,} samples, "
                f"got {samples:.4g}; correct it."
            )
        return samples - 1

    @property
    def poles(self) -> int:
        """The most numbers that poles need at a node: an upper bound, without media from files of cells."""
        named = [medium for medium in media_of(self).all if medium.poles]
        grown = [WATER] * bool(self.of(Flood)) + [GRASS] * bool(self.of(Lawn))
        mixed = [WATER] * any(isinstance(item, Mixing) and isinstance(item.model, Soil) for item in self.items)
        every = (*named, *grown, *mixed)
        if not self.settings.get("dispersive_averaging", False):
            return remembered(every)
        rates = {pole.rate: pole for medium in every for pole in medium.poles}
        return remembered([replace(VACUUM, poles=tuple(rates.values()))])

    @property
    def thickness(self) -> Mapping[str, int]:
        """Cells of absorber for each side that has any."""
        flat = self.frame.flat
        return {
            side: n for side, n in self.requested_thickness.items() if n and (flat is None or side[0] != AXES[flat])
        }

    @property
    def requested_thickness(self) -> Mapping[str, int]:
        """Cells of absorber of all six sides, as given in the file."""
        given = self.settings.get("pml_cells", (CELLS_OF_ABSORBER,) * 6)
        sides = [f"{axis}{end}" for end in "-+" for axis in AXES]
        return dict(zip(sides, given, strict=True)) | {item.side: 0 for item in self.of(Wall)}


def assemble(plan: Plan, dtype: Dtype = "float32") -> Domain:
    """The domain of a model. Raises UsageError, one sentence with the line, for items that do not fit together."""
    settings, frame = plan.settings, plan.frame
    media, raster = rasterised(plan, dtype)
    flat = tuple(slice(frame.live, frame.live + 1) if axis == frame.flat else slice(None) for axis in range(3))
    return Domain(
        shape=frame.grid,
        spacing=frame.spacing,
        dt=plan.dt,
        steps=plan.steps,
        media=media.all,
        ids=raster.ids[(slice(None), *flat)],
        mode=plan.mode,
        dtype=dtype,
        absorber=_absorber(plan, media, raster),
        sources=tuple(sources(plan)),
        receivers=tuple(receivers(plan)),
        far_fields=tuple(far_fields(plan)),
        wires=tuple(_wire(plan.frame, item) for item in plan.of(Wire)),
        title=str(settings.get("title", "")),
    )


def requested_far_fields(plan: Plan) -> Iterator[tuple[FarDirections, Spectrum, Faces]]:
    """The requested far fields, each with its frequencies and its box."""
    faces = {item.name: item for item in plan.of(Faces)}
    spectra = {item.name: item for item in plan.of(Spectrum)}
    for one in plan.of(FarDirections):
        spectrum = spectra.get(one.spectrum)
        if spectrum is None:
            raise one.command.unknown("an #ntff_frequency", one.spectrum, spectra)
        around = faces.get(spectrum.faces)
        if around is None:
            raise spectrum.command.unknown("an #ntff_surface", spectrum.faces, faces)
        yield one, spectrum, around


def far_fields(plan: Plan) -> Iterator[FarField]:
    """The far fields on the grid."""
    for one, spectrum, around in requested_far_fields(plan):
        lo, hi = (plan.frame.source(around.command, corner) for corner in (around.lo, around.hi))
        yield FarField(lo, hi, spectrum.frequencies, one.theta, one.phi, one.name or one.spectrum)


def subjects(plan: Plan) -> Subjects:
    """The subjects of sentences about the parts of a domain: their commands and lines."""
    absorber = plan.subject("pml_cells", Subjects.absorber)
    return Subjects(
        absorber,
        next((item.command.what for item in reversed(plan.of(Stretching))), absorber),
        tuple(item.command.what for item in plan.items if isinstance(item, Source | Incoming)),
        tuple(item.command.what for item in plan.of(Wire)),
        tuple(item.command.what for item in plan.of(FarDirections)),
    )


def _wire(frame: Frame, item: Wire) -> PlacedWire:
    lo, hi = (frame.source(item.command, corner) for corner in (item.lo, item.hi))
    extended = [axis for axis in range(3) if hi[axis] != lo[axis]]
    if len(extended) != 1 or hi < lo:
        raise item.command.fault(
            "to reach from lower to higher nodes along one axis", f"nodes {lo} to {hi}", "correct its corners"
        )
    (axis,) = extended
    return PlacedWire(AXES[axis], lo, hi[axis] - lo[axis], item.radius)


def media_of(plan: Plan) -> Media:
    """The media that a model defines."""
    harmonic = plan.settings.get("magnetic_averaging", "harmonic") == "harmonic"
    return Media(plan.items, plan.settings.get("dispersive_averaging", False), harmonic)


def rasterised(plan: Plan, dtype: Dtype) -> tuple[Media, Raster]:
    """Rasterise the objects of a model in the order of the file; the grid with its media."""
    media = media_of(plan)
    frame, raster = plan.frame, Raster(plan.frame.cells, BACKGROUND)
    for item in plan.items:
        if isinstance(item, FractalBox):
            layers = [one for one in plan.items if isinstance(one, Layer) and one.box == item.name]
            lo, numbers, used = ground.cells(frame, item, layers, media, dtype)
            raster.fill_each(lo, numbers, media.fillings(used, item.smooth))
        elif isinstance(item, Voxels):
            voxels.insert(frame, item, media, raster)
        elif isinstance(item, Shape):
            place = cells(frame, item)
            if place is None:
                _fix(plan, item, media, raster)
            else:
                raster.fill(place, media.filled(item))
    media.smooth(raster)
    return media, raster


def _fix(plan: Plan, shape: Shape, media: Media, raster: Raster) -> None:
    """Rasterise an object without thickness: one material, or one for each axis along which it has edges."""
    names = shape.materials
    axes = list(edges(plan.frame, shape))
    own = sorted({axis for axis, _ in axes})
    if isinstance(shape, Edge) and not shape.magnetic and f"E{AXES[own[0]]}" not in live(plan.mode):
        raise shape.command.fault(
            f"to run along an axis with an electric field in mode {plan.mode}", f"{AXES[own[0]]}", "turn it"
        )
    for axis, where in axes:
        name = names[own.index(axis) if len(names) == 2 else axis if len(names) == 3 else 0]
        magnetic = isinstance(shape, Edge) and shape.magnetic
        raster.fix(axis + 3 * magnetic, where, media.place(shape.command, name))


def _absorber(plan: Plan, media: Media, raster: Raster) -> Absorber:
    """Slabs matched to the means of the cells in the plane at their inner face."""
    permittivity = np.array([medium.permittivity for medium in media.all])
    permeability = np.array([medium.permeability for medium in media.all])
    slabs = []
    for side in SIDES:
        thickness, axis = plan.thickness.get(side, 0), "xyz".index(side[0])
        length = plan.frame.cells[axis]
        if not thickness:
            continue
        inner = min(thickness, length)
        plane = raster.solid.take(inner - 1 if side[1] == "-" else length - inner, axis)
        slabs.append((side, Slab(thickness, float(permittivity[plane].mean()), float(permeability[plane].mean()))))
    stretches = tuple(item.stretch for item in plan.of(Stretching)) or (Stretch(),)
    return Absorber(tuple(slabs), plan.settings.get("pml_formulation", "HORIPML"), stretches)


def sources(plan: Plan) -> Iterator[Placed]:
    """The sources of an input file, in order."""
    for source in (item for item in plan.items if isinstance(item, Source | Incoming)):
        drive = Drive(_sampled(plan, waveform(plan, source)), source.start, source.stop)
        if isinstance(source, Incoming):
            yield _incoming(plan.frame, source, drive)
        else:
            yield _source(source, plan.frame.source(source.command, source.at), drive)


def waveform(plan: Plan, source: Source | Incoming) -> Formula | Column | Waveform:
    """The waveform of a source, given itself or by name."""
    found = source.waveform
    if not isinstance(found, str):
        return found
    if found not in plan.waves:
        raise source.command.unknown("a #waveform", found, plan.waves)
    return plan.waves[found]


def _sampled(plan: Plan, found: Formula | Column | Waveform) -> Waveform:
    if isinstance(found, Formula):
        return found.pulse(plan.dt)
    return found.sampled(plan.dt, plan.steps) if isinstance(found, Column) else found


def _incoming(frame: Frame, wave: Incoming, drive: Drive) -> PlaneWave:
    """The plane wave; it starts at the corner of the domain that it comes from, or some cells before its layers."""
    lo, hi = (frame.source(wave.command, corner) for corner in (wave.lo, wave.hi))
    direction = directions.whole(wave.direction, frame.spacing)
    if not any(direction):
        raise wave.command.fault(
            f"to go near a direction of whole numbers up to {directions.MOST}", "other angles", "use #plane_wave_vector"
        )
    polarisation = directions.polarisation(direction, wave.polarisation, frame.spacing)
    before, behind = (0, 1) if wave.medium is not None else (BEFORE_LAYERS, BEFORE_LAYERS)
    origin = tuple(-before * (m > 0) if m >= 0 else n + behind for m, n in zip(direction, frame.cells, strict=True))
    return PlaneWave(lo, hi, direction, polarisation, drive, wave.medium, origin)


def _source(source: Source, node: Index, drive: Drive) -> Placed:
    if source.kind == "electric_dipole":
        return ElectricDipole(source.axis, node, drive)
    if source.kind == "magnetic_dipole":
        return MagneticDipole(source.axis, node, drive)
    return FED[source.kind](source.axis, node, drive, source.resistance)


def receivers(plan: Plan) -> Iterator[Receiver]:
    """The receivers on the grid, in order."""
    for item in plan.items:
        if isinstance(item, ReceiverNode):
            node = plan.frame.source(item.command, item.at)
            yield Receiver(node, item.outputs, item.name) if item.outputs else Receiver(node, name=item.name)
        elif isinstance(item, ReceiverRows):
            yield from (Receiver(node) for node in array(plan.frame, item))


def array(frame: Frame, item: ReceiverRows) -> Iterator[Index]:
    """The nodes of an array of receivers."""
    lo, hi = (frame.source(item.command, corner) for corner in (item.lo, item.hi))
    step = [max(1, nearest(s / d)) for s, d in zip(item.step, frame.spacing, strict=True)]
    if any(b < a for a, b in zip(lo, hi, strict=True)) or min(item.step) < 0:
        raise item.command.fault("to go from lower to higher nodes", f"{lo} to {hi}", "swap its corners")
    x, y, z = (range(a, b + 1, s) for a, b, s in zip(lo, hi, step, strict=True))
    if len(x) * len(y) * len(z) > 1 << 20:
        raise item.command.fault("to have at most a million receivers", str(len(x) * len(y) * len(z)), "step further")
    yield from ((i, j, k) for i in x for j in y for k in z)
