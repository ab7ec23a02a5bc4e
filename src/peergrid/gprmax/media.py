"""The media of a model: those that it defines, and the averages at interfaces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from math import isinf, pi

import numpy as np

from peergrid.errors import UsageError
from peergrid.gprmax.items import Choice, DatabaseMedium, Dispersion, Item, Lorentz, Material, Mixing, Moist, PoleSpec
from peergrid.gprmax.objects import Body, Solid
from peergrid.gprmax.raster import NOTHING, Filling, Ids, Mask, Raster
from peergrid.gprmax.soils import Mixture
from peergrid.gprmax.text import Command
from peergrid.models.fdtd3d import PEC, PMC, VACUUM, Medium, Pole

MOST = NOTHING  # as no medium
BUILT_IN = (PEC, VACUUM, PMC)
BACKGROUND = BUILT_IN.index(VACUUM)


class Media:
    """Media by number: built-in ones, then those of the model, then averages as needed."""

    def __init__(self, items: Iterable[Item], dispersive: bool, harmonic: bool) -> None:
        self._dispersive, self._harmonic = dispersive, harmonic
        self._known: list[Medium] = list(BUILT_IN)
        self._places = {medium.name: place for place, medium in enumerate(self._known)}
        self._closed: dict[int, tuple[bool, ...]] = {}
        self._averages: dict[tuple[bool, tuple[int, ...]], int] = {}
        self._found: dict[tuple[int, int], int] = {}
        self._mixings: dict[str, Mixing | Choice | Moist] = {}
        self._blends: dict[tuple[str, int], tuple[int, ...]] = {}
        for item in items:
            if isinstance(item, Material | DatabaseMedium):
                self._name(item)
            elif isinstance(item, Mixing | Choice | Moist):
                if item.name in self._mixings:
                    raise item.command.again(item.name)
                self._mixings[item.name] = item
        for item in items:
            if isinstance(item, Dispersion | Material) and item.poles:
                for name in item.materials if isinstance(item, Dispersion) else (item.name,):
                    place = self.place(item.command, name)
                    self._known[place] = with_poles(item.command, self._known[place], item.poles)

    @property
    def all(self) -> tuple[Medium, ...]:
        """The media by their numbers."""
        return tuple(self._known)

    def place(self, command: Command, name: str) -> int:
        """The number of a medium. Raises UsageError for an unknown name."""
        if name not in self._places:
            if name in self._mixings:
                raise command.fault("to name a material", f"'{name}'", "a mixing model is for fractal boxes alone")
            raise command.unknown("a material", name, (*self._places, *self._mixings))
        return self._places[name]

    def mixed(self, command: Command, name: str, count: int) -> tuple[int, ...]:
        """The numbers of `count` media of a mixing model; for a medium, its own number."""
        if name not in self._mixings:
            return (self.place(command, name),) * count
        item = self._mixings[name]
        if count < 2:
            raise command.fault("to ask for at least two media of a mixing model", str(count), "ask for more")
        if isinstance(item, Choice):
            if count > len(item.materials):
                raise command.fault(f"to ask for at most {len(item.materials)} media", str(count), "ask for fewer")
            return tuple(self.place(item.command, material) for material in item.materials[:count])
        if (name, count) not in self._blends:
            model = self._mixture(item) if isinstance(item, Moist) else item.model
            made = model.media(count)
            for medium in made:
                if not (medium.permittivity > 0 and medium.conductivity >= 0):
                    raise item.command.fault(
                        "to have a permittivity above 0 and a conductivity not below 0",
                        f"{medium.permittivity:.4g} and {medium.conductivity:.4g} S/m", "correct it",
                    )  # fmt: skip
            self._blends[name, count] = tuple(self._add(medium) for medium in made)
        return self._blends[name, count]

    def _mixture(self, item: Moist) -> Mixture:
        rock, liquid = (self._known[self.place(item.command, name)] for name in (item.rock, item.liquid))
        if rock.poles or rock.stops_electric or rock.permeability != 1 or rock.magnetic_loss:
            raise item.command.fault("to mix a medium without poles or magnetism first", f"'{item.rock}'", "correct it")
        if len(liquid.poles) != 1 or liquid.poles[0].conductivity or complex(liquid.poles[0].rate).imag:
            raise item.command.fault("to mix a medium with one Debye pole in", f"'{item.liquid}'", "correct it")
        return Mixture(item.name, rock, item.share, liquid, item.limits, item.band, item.exponent)

    def known(self, medium: Medium, library: str | None = None) -> int:
        """The number of the model's own medium of that name if there is one, else of this one.

        library: the file of the medium, which is renamed if the model has another medium of its name.
        """
        if library is not None and self._known[self._places.get(medium.name, BACKGROUND)] != medium:
            medium = replace(medium, name=f"{medium.name}{{{library}}}")
            if self._known[self._places.get(medium.name, BACKGROUND)] not in (medium, VACUUM):
                return self._add(medium)
        if medium.name not in self._places:
            self._places[medium.name] = self._add(medium)
        return self._places[medium.name]

    def fillings(self, places: Iterable[int], smooth: bool) -> Mapping[int, Filling]:
        """The fillings of cells by the numbers of their media."""
        return {place: self._filling([place], smooth) for place in places}

    def filled(self, body: Body) -> Filling:
        """The filling of an object. Perfect conductors fix no magnetic component, which takes the medium of the
        neighbouring cells.
        """
        smooth = isinstance(body, Solid) and body.smooth
        return self._filling([self.place(body.command, name) for name in body.materials], smooth)

    def _filling(self, places: list[int], smooth: bool) -> Filling:
        parts = [self._known[place] for place in places]
        if len(places) == 1 and smooth and self._smooths(parts[0]):
            return Filling(places[0], (places[0],) * 3, (False,) * 6)
        cell = places[0] if len(places) == 1 else self._add(_mean("|".join(part.name for part in parts), parts))
        x, y, z = places * 3 if len(places) == 1 else places
        closed = tuple(self._known[place].stops_electric for place in (x, y, z))
        self._closed[cell] = closed
        return Filling(cell, (x, y, z), (True, True, True, *(None if shut else True for shut in closed)))

    def smooth(self, raster: Raster) -> None:
        """Set components that are not fixed to the medium of the cells around, or to the average of several."""
        for component, where, free, around in raster.averages():
            ids = raster.ids[component][where]
            shut = np.zeros(len(self._known), np.bool_)
            if component >= 3:  # inside a conductor: as it was
                shut[[cell for cell, closed in self._closed.items() if closed[component - 3]]] = True
                free &= ~(shut[around[0]] & shut[around[1]])
            same = np.logical_and.reduce([cell == around[0] for cell in around[1:]])
            np.copyto(ids, around[0], where=free & same)
            mixed = free & ~same
            if mixed.any():
                ids[mixed] = self._mixed(component, mixed, around)

    def _mixed(self, component: int, where: Mask, around: tuple[Ids, ...]) -> Ids:
        rows = np.sort(np.stack([cell[where].astype(np.uint64) for cell in around]), axis=0)
        keys = reduce(lambda left, right: left << np.uint64(16) | right, rows)  # which four media at most, as a number
        unique, which = np.unique(keys, return_inverse=True)
        for key in unique.tolist():
            if (component, key) not in self._found:
                media = tuple(key >> 16 * k & 0xFFFF for k in reversed(range(len(around))))
                self._found[component, key] = self._average(component, media)
        found: Ids = np.array([self._found[component, key] for key in unique.tolist()], np.uint16)[which]
        return found

    def _average(self, component: int, key: tuple[int, ...]) -> int:
        magnetic = component >= 3
        if magnetic:
            beside = [place for place in key if not self._closed.get(place, (False,) * 3)[component - 3]]
            if len(beside) == 1:
                return beside[0]
        if (magnetic, key) not in self._averages:
            parts = [self._known[place] for place in key]
            name = "+".join(sorted(part.name for part in parts))
            made = _mean(name, parts)
            if magnetic and self._harmonic:
                made = replace(
                    made,
                    permeability=_harmonic([part.permeability for part in parts]),
                    magnetic_loss=_harmonic([part.magnetic_loss for part in parts]),
                )
            self._averages[magnetic, key] = self._add(replace(made, poles=() if magnetic else made.poles))
        return self._averages[magnetic, key]

    def _smooths(self, medium: Medium) -> bool:
        """True if surfaces of a medium are averaged with neighbouring cells."""
        return not (medium.stops_electric or medium.stops_magnetic) and (self._dispersive or not medium.poles)

    def _name(self, item: Material | DatabaseMedium) -> None:
        if "+" in item.name:
            raise item.command.fault("to have a name without '+'", f"'{item.name}'", "use '_'")
        if item.name in self._places:
            raise item.command.again(item.name)
        self._places[item.name] = self._add(item.medium)

    def _add(self, medium: Medium) -> int:
        if len(self._known) >= MOST:
            raise UsageError(
                f"A model is expected to have at most {MOST:,} media with the averages at their interfaces, got more; "
                "use fewer, or fill with the flag n."
            )
        self._known.append(medium)
        return len(self._known) - 1


def _mean(name: str, parts: list[Medium]) -> Medium:
    """The arithmetic mean of the properties, each part's poles with their share, those of one rate as one."""
    share = 1 / len(parts)
    poles: dict[complex, Pole] = {}
    for pole in (pole for part in parts for pole in part.poles):
        weight, loss = pole.weight * share, pole.conductivity * share
        known = poles.get(pole.rate, Pole(0.0, pole.rate))
        poles[pole.rate] = replace(known, weight=known.weight + weight, conductivity=known.conductivity + loss)
    return Medium(
        name,
        sum(part.permittivity for part in parts) * share,
        sum(part.conductivity for part in parts) * share,
        sum(part.permeability for part in parts) * share,
        sum(part.magnetic_loss for part in parts) * share,
        tuple(poles.values()),
    )


def _harmonic(values: list[float]) -> float:
    """The harmonic mean; 0 if a value is 0."""
    if any(value == 0 for value in values):
        return 0.0
    total = sum(0.0 if isinf(value) else 1 / value for value in values)
    return len(values) / total if total else float("inf")


def with_poles(command: Command, medium: Medium, poles: Iterable[PoleSpec]) -> Medium:
    """A medium with poles. Raises UsageError for a perfect conductor, and for a medium that has poles already."""
    if medium.stops_electric or medium.stops_magnetic:
        raise command.fault("to give poles to no perfect conductor", f"'{medium.name}'", "take it out")
    if medium.poles:
        raise command.fault(
            "to give a medium all its poles", f"'{medium.name}' again",
            "leave one of the commands, gprMax would use the last alone",
        )  # fmt: skip
    return replace(medium, poles=tuple(_pole(command, pole) for pole in poles))


def _pole(command: Command, given: PoleSpec) -> Pole:
    if isinstance(given, Lorentz) and given.damping >= 2 * pi * given.frequency:
        raise command.fault(
            "to have a damping below the pole's angular frequency", f"{given.damping:g} per second", "lower it"
        )
    return given.pole
