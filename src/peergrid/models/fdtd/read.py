"""The reader of radar models: the kind `fdtd2d`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from peergrid.errors import UsageError
from peergrid.io.schema import read_table
from peergrid.models.fdtd.check import check
from peergrid.models.fdtd.model import RadarModel


def read(table: Mapping[str, Any]) -> RadarModel:
    """The model of a file's tables; a `Reader` of `models.model`."""
    _check_plane(table)
    model = read_table(RadarModel, table)
    check(model)
    return model


def _check_plane(table: Mapping[str, Any]) -> None:
    size = table["grid"].get("size") if isinstance(table.get("grid"), Mapping) else None
    if isinstance(size, list) and len(size) == 3:
        raise UsageError(
            "grid.size is expected to be two lengths, along x and y, got 3: a model is a plane, along z everything "
            "stays the same; leave z out (stencils of one's own have up to three axes, see 'peergrid docs stencils')."
        )
