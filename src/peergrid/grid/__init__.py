"""Boxes, grids, fields and their partition over devices: pure geometry, without devices."""

from peergrid.grid.box import Box, Index, subtract
from peergrid.grid.grid import Array, Boundary, Dtype, Field, FirstValues, Grid, Signal, Table

__all__ = ["Array", "Boundary", "Box", "Dtype", "Field", "FirstValues", "Grid", "Index", "Signal", "Table", "subtract"]
