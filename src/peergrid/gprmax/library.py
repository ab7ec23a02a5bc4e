"""Media from files: databases in the JSON format of gprMax 4."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from math import inf, isfinite
from pathlib import Path
from typing import Any

from peergrid.errors import UsageError
from peergrid.files import read_plain, reason
from peergrid.io.rule import shown
from peergrid.models.fdtd3d import PEC, PMC, VACUUM, Medium, Pole, debye, drude, lorentz
from peergrid.models.fdtd3d.constants import EPSILON_0

LARGEST = 1 << 26  # bytes of a file
SCHEMA = "gprMax-material-database"


class Database:
    """The media of a database by their keys. Raises UsageError, one sentence, for a file of another kind or a wrong
    medium.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            document = json.loads(read_plain(file, LARGEST))
        except (OSError, ValueError, RecursionError) as error:
            cause = reason(error) if isinstance(error, OSError) else f"{error}"
            raise UsageError(
                f"A database of materials is expected at '{shown(file.name)}', got: {shown(cause)}; correct the path "
                "or the file."
            ) from None
        known = isinstance(document, dict) and document.get("schema") == SCHEMA
        entries = document.get("materials") if known else None
        if not isinstance(entries, dict) or document.get("schema_version") != 1:
            raise UsageError(
                f"'{shown(file.name)}' is expected to be a database of materials of schema {SCHEMA}, version 1, got "
                "another file; correct the path."
            )
        self._entries: Mapping[str, Any] = entries

    def medium(self, key: str, name: str | None = None) -> Medium:
        """The medium of a key, by its original name or another."""
        try:
            found = self._entry(key)
            named = name or str(found.get("metadata", {}).get("original_id", found.get("name", key)))
            return _medium(found, named)
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError) as error:
            raise UsageError(
                f"'{shown(self._file.name)}' is expected to have a material '{shown(key)}' of its schema, got a fault "
                f"at {shown(str(error))}; correct it."
            ) from None

    def _entry(self, key: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._entries[key]
        for _ in self._entries:
            if "alias" not in found:
                return found
            if "database" in found["alias"]:
                raise ValueError("alias of another database")
            found = self._entries[found["alias"]["material"]]
        raise ValueError("aliases in a circle")


def entry(medium: Medium) -> dict[str, object]:
    """A medium as a database has it."""
    loss = medium.conductivity + EPSILON_0 * sum(pole.conductivity for pole in medium.poles)
    found: dict[str, object] = {
        "name": medium.name,
        "model": "constant",
        "base": {
            "relative_permittivity": medium.permittivity,
            "electric_conductivity_s_per_m": "inf" if medium.stops_electric else loss,
            "relative_permeability": medium.permeability,
            "magnetic_conductivity_s_per_m": "inf" if medium.stops_magnetic else medium.magnetic_loss,
        },
        "averagable": not (medium.poles or medium.stops_electric or medium.stops_magnetic),
        "metadata": {"original_id": medium.name},
    }
    pairs = [(complex(pole.weight), complex(pole.rate)) for pole in medium.poles]
    if any(w.imag or q.imag or w.real < 0 for w, q in pairs):
        poles = [{"w_per_s": [w.real, w.imag], "q_per_s": [q.real, q.imag]} for w, q in pairs]
        return found | {"model": "general", "poles": poles}
    if pairs:
        names = ("relative_permittivity_difference", "relaxation_time_s")
        return found | {
            "model": "debye",
            "poles": [{names[0]: -w.real / q.real, names[1]: -1 / q.real} for w, q in pairs],
        }
    return found


def _medium(given: Mapping[str, Any], name: str) -> Medium:
    model = given["model"]
    if model == "builtin":
        return {medium.name: medium for medium in (PEC, PMC, VACUUM)}[given["builtin"]]
    base = given["base"]
    loss, magnetic_loss = (
        _number(base.get(field, 0.0), 0.0, infinite=True)
        for field in ("electric_conductivity_s_per_m", "magnetic_conductivity_s_per_m")
    )
    permeability = _number(base.get("relative_permeability", 1.0), 1.0)
    poles = () if model == "constant" else tuple(_poles(model, given["poles"]))
    extra = _number(given.get("inclusive_conductivity_s_per_m", 0.0), 0.0)
    permittivity = _number(base["relative_permittivity"], 1.0)
    return Medium(name, permittivity, loss + extra, permeability, magnetic_loss, poles)


def _poles(model: str, poles: list[Mapping[str, Any]]) -> Iterator[Pole]:
    for pole in poles:
        if model == "general":
            weight, rate = (complex(*(_number(part, -inf) for part in pole[of])) for of in ("w_per_s", "q_per_s"))
            if rate.real >= 0:
                raise ValueError("a pole that grows")
            yield Pole(weight, rate) if weight.imag or rate.imag else Pole(weight.real, rate.real)
        elif model == "debye":
            time = _number(pole["relaxation_time_s"], 1e-30)
            yield debye(_number(pole["relative_permittivity_difference"], 0.0), time)
        elif model == "lorentz":
            frequency = _number(pole["resonance_frequency_hz"], 1e-20)
            damping = _number(pole["damping_coefficient_per_s"], 0.0)
            yield lorentz(_number(pole["relative_permittivity_difference"], 0.0), frequency, damping)
        elif model == "drude":
            frequency = _number(pole["plasma_frequency_hz"], 1e-20)
            yield drude(frequency, _number(pole["collision_frequency_per_s"], 1e-20))
        else:
            raise ValueError(f"model {model}")


def _number(value: object, least: float, infinite: bool = False) -> float:
    if infinite and value == "inf":
        return inf
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or abs(value) > 1e36:
        raise ValueError(f"{value}")
    if value < least:
        raise ValueError(f"{value} below {least:g}")
    return float(value)
