"""Every command of gprMax 3.1 and 4.0: supported by a reader, ignored with a note, or refused with what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import count
from pathlib import Path
from types import MappingProxyType

from peergrid.errors import UsageError
from peergrid.gprmax import far_readers, ground_readers, plane_wave_readers, readers
from peergrid.gprmax.items import (
    FarDirections,
    IgnoredCommand,
    Item,
    ReceiverNode,
    ReceiverRows,
    Setting,
    Source,
    Spectrum,
)
from peergrid.gprmax.objects import FractalBox, Lawn, Roughness, Shape
from peergrid.gprmax.readers import Reader
from peergrid.gprmax.text import Command
from peergrid.io.rule import shown


@dataclass(frozen=True)
class Refused:
    """A command that is not supported; `instead` completes 'is not supported; ...'."""

    instead: str


@dataclass(frozen=True)
class Noted:
    """A command that changes no field; `note` says what is done instead."""

    note: str


_AROUND = "use #rx there in a larger domain, or far fields by #ntff_frequency"
_IN_TIME = "use #ntff_frequency with as many frequencies as the pulse has"
_IN_LAYERS = "use #rx, or a surface with vacuum around it and #ntff_frequency"
_CIRCUITS = "use #voltage_source with the resistance of the port, or #transmission_line"
_PORTS = "record the port by #transmission_line, whose results have S11"
_WAVEGUIDES = "feed the guide by #hertzian_dipole across it, end it in #pml_cells, and record its modes by #rx_array"
_ABSORBED = "work it out from #snapshot and the conductivities of #geometry_objects_write"
_STEERED = "run one model for each element, and add up their far fields with the weights"
_KIRCHHOFF = "far fields come from the currents on the surface, not by Kirchhoff's integral, which tends to the same"
_SPECTRAL = ("voltage_source", "transmission_line", "magnetic_frill_source")
_NUMBERED = (
    "voltage_source", "hertzian_dipole", "magnetic_dipole", "transmission_line", "magnetic_frill_source",
    "rx", "rx_array",
)  # fmt: skip
"""The commands of sources and receivers in the order in which gprMax numbers them in results."""
_OLD = "it is of gprMax 2; write the model for gprMax 3 or 4"

TABLE: Mapping[str, Reader | Refused | Noted] = MappingProxyType(
    {
        "title": readers.title,
        "domain": readers.domain,
        "dx_dy_dz": readers.spacing,
        "time_window": readers.window,
        "time_step_stability_factor": readers.stability,
        "domain_mode": readers.mode,
        "magnetic_averaging": readers.magnetic_averaging,
        "dispersive_averaging": readers.dispersive_averaging,
        "pml_cells": readers.absorber,
        "pml_formulation": readers.formulation,
        "pml_cfs": readers.stretching,
        "material": readers.material,
        "add_dispersion_debye": readers.dispersion,
        "add_dispersion_lorentz": readers.dispersion,
        "add_dispersion_drude": readers.dispersion,
        "material_from_database": ground_readers.from_database,
        "geometry_view": ground_readers.view,
        "geometry_objects_write": ground_readers.saved,
        "geometry_objects_read": ground_readers.voxels,
        "soil_peplinski": ground_readers.peplinski,
        "material_range": ground_readers.spread,
        "material_list": ground_readers.choice,
        "material_crim": ground_readers.moist,
        "box": readers.box,
        "cylinder": readers.cylinder,
        "cone": readers.cone,
        "sphere": readers.sphere,
        "ellipsoid": readers.ellipsoid,
        "triangle": readers.triangle,
        "cylindrical_sector": readers.sector,
        "plate": readers.plate,
        "edge": readers.edge,
        "magnetic_edge": readers.edge,
        "thin_wire": readers.thin_wire,
        "symmetry_boundary": readers.wall,
        "fractal_box": ground_readers.fractal_box,
        "add_surface_roughness": ground_readers.roughness,
        "add_surface_water": ground_readers.water,
        "add_grass": ground_readers.grass,
        "waveform": readers.waveform,
        "excitation_file": readers.excitation_file,
        "hertzian_dipole": readers.dipole,
        "magnetic_dipole": readers.dipole,
        "voltage_source": readers.resistive,
        "transmission_line": readers.resistive,
        "magnetic_frill_source": readers.frill,
        "plane_wave_angles": plane_wave_readers.by_angles,
        "plane_wave_vector": plane_wave_readers.by_vector,
        "plane_wave_axial": plane_wave_readers.axial,
        "discrete_plane_wave": plane_wave_readers.discrete,
        "rx": readers.receiver,
        "rx_array": readers.receivers,
        "src_steps": readers.steps,
        "rx_steps": readers.steps,
        "study": readers.study,
        "snapshot": ground_readers.snapshot,
        "ntff_surface": far_readers.surface,
        "ntff_frequency": far_readers.spectrum,
        "ntff_far_field": far_readers.direction,
        "ntff_far_field_array": far_readers.directions,
        "ksir_frequency": far_readers.spectrum,
        "ksir_far_field": far_readers.direction,
        "ksir_far_field_array": far_readers.directions,
        "ntff_antenna_ports": Noted("gains and efficiencies follow from far fields and the ports' records"),
        "ksir_antenna_ports": Noted("gains and efficiencies follow from far fields and the ports' records"),
        "omp_threads": Noted("--devices cpu:N says how many threads compute"),
        "num_threads": Noted("--devices cpu:N says how many threads compute"),
        "output_dir": Noted("-o says where results go"),
        "messages": Noted("--json and the verbosity of peergrid run take its place"),
        "material_density": Noted("it serves absorption rates alone"),
        "pml_slab": Refused("end the body at a side of the domain that has #pml_cells"),
        "eigenmode_band": Refused(_WAVEGUIDES),
        "eigenmode_port": Refused(_WAVEGUIDES),
        "eigenmode_excitation": Refused(_WAVEGUIDES),
        "eigenmode_field_output": Refused(_WAVEGUIDES),
        "virtual_waveguide": Refused(_WAVEGUIDES),
        "rational_network": Refused(_CIRCUITS),
        "network_terminal": Refused(_CIRCUITS),
        "network_excitation": Refused(_CIRCUITS),
        "network_port": Refused(_PORTS),
        "rx_port": Refused(_PORTS),
        "surface_impedance": Refused("give the body a #material with its conductivity"),
        "array_codebook": Refused(_STEERED),
        "sar": Refused(_ABSORBED),
        "radiometry": Refused(_ABSORBED),
        **dict.fromkeys(
            (
                "ntff_layered_background", "ntff_layered_frequency", "ntff_layered_time",
                "ntff_layered_time_far_field", "ntff_layered_time_far_field_array",
            ),
            Refused(_IN_LAYERS),
        ),
        "ntff_time_far_field": Refused(_IN_TIME),
        "ntff_time_far_field_array": Refused(_IN_TIME),
        **dict.fromkeys(
            (
                "ksir_time_rx", "ksir_time_rx_spherical", "ksir_time_rx_array", "ksir_frequency_rx",
                "ksir_frequency_rx_spherical", "ksir_frequency_rx_array",
            ),
            Refused(_AROUND),
        ),
        "taguchi": Refused("run the models of an optimisation one by one, for instance by peergrid farm"),
        "end_taguchi": Refused("run the models of an optimisation one by one, for instance by peergrid farm"),
        **dict.fromkeys(
            (
                "medium", "analysis", "end_analysis", "tx", "abc_type", "pml_layers", "num_of_procs", "nips_number",
                "cylinder_new", "geometry_vtk", "snapshot_vtk",
            ),
            Refused(_OLD),
        ),
    }
)  # fmt: skip
"""By the name without `#`. `include_file` and `python` are dealt with while the text is read."""


def read(commands: Iterable[Command], folder: Path) -> tuple[Item, ...]:
    """The items of commands in order, but that sources and receivers come last, as gprMax numbers them.

    Raises UsageError for the first command that is unknown, refused or wrong.
    """
    return tuple(sorted(_items(commands, folder), key=_number))


def _number(item: Item) -> int:
    return _NUMBERED.index(item.command.name) if isinstance(item, Source | ReceiverNode | ReceiverRows) else -1


def _items(commands: Iterable[Command], folder: Path) -> Iterator[Item]:
    seeds, once = count(1), dict[str, Command]()
    for command in commands:
        entry = TABLE.get(command.name)
        if command.comment:
            if entry is not None:
                said = f"'{command.name}' is ignored; a command has its # at the beginning of the line"
                yield IgnoredCommand(command, f"{command.where}: {said}.")
            continue
        if entry is None:
            close = get_close_matches(command.name, TABLE, n=1)
            advice = f"did you mean '#{close[0]}'?" if close else "'peergrid docs gprmax' lists them."
            raise UsageError(
                f"{command.where}: a command of gprMax is expected, got '#{shown(command.name)}'; {advice}"
            )
        if isinstance(entry, Refused):
            raise UsageError(f"{command.where}: #{command.name} is not supported; {entry.instead}.")
        if isinstance(entry, Noted):
            yield IgnoredCommand(command, f"{command.where}: #{command.name} is ignored; {entry.note}.")
        else:
            item = entry(command, folder)
            if isinstance(item, Setting):
                first = once.setdefault(command.name, command)
                if first is not command:
                    raise command.fault("once in a model", "it again", f"keep this or that of {first.where}")
                item = replace(item, command=command)
            yield from _seeded(item, seeds)
            if said := _unused(command, item):
                yield IgnoredCommand(command, f"{command.where}: {said}.")
            if isinstance(item, Spectrum) and command.name.startswith("ksir"):
                yield IgnoredCommand(command, f"{command.where}: {_KIRCHHOFF}.")
            if isinstance(item, FarDirections) and (more := sorted({*item.outputs} - {"Etheta", "Ephi"})):
                said = f"results have r E_theta and r E_phi, from which {shown(', '.join(more), 100)} follow"
                yield IgnoredCommand(command, f"{command.where}: {said}.")


def _unused(command: Command, item: Item) -> str:
    """A note, without its full stop, about the words of a command that change no field; '' if there are none."""
    words = command.words
    if command.name in _SPECTRAL and (left := " ".join(words[8 if len(words) > 7 else 6 :])):
        return f"{shown(left)} of #{command.name} is ignored; it is for a spectrum, not for fields"
    if isinstance(item, Shape | FractalBox) and words[-2].lower() in ("y", "n"):
        return f"the tag {shown(words[-1])} of #{command.name} is ignored; it changes no field"
    return ""


def _seeded(item: Item, seeds: Iterator[int]) -> Iterator[Item]:
    """The item; a random item without a seed gets one, with a note."""
    if isinstance(item, FractalBox | Roughness | Lawn) and item.seed is None:
        item = replace(item, seed=next(seeds))
        yield IgnoredCommand(
            item.command,
            f"{item.command.where}: #{item.command.name} has no seed; seed {item.seed} is used, in every run.",
        )
    yield item


def markdown() -> str:
    """The table as Markdown: a row for each treatment of commands."""
    rows = ["| commands | what is done |", "| --- | --- |"]
    groups: dict[str, list[str]] = {}
    for name, entry in sorted(TABLE.items()):
        if isinstance(entry, Refused):
            done = f"refused: {entry.instead}"
        else:
            done = f"ignored with a note: {entry.note}" if isinstance(entry, Noted) else "supported"
        groups.setdefault(done, []).append(f"`#{name}`")
    groups["read inside the model's folder"] = ["`#include_file`"]
    groups["refused: expand them beforehand with gprMax's option --write-processed"] = ["`#python`", "`#end_python`"]
    rows += [f"| {', '.join(names)} | {done} |" for done, names in sorted(groups.items())]
    return "\n".join(rows)
