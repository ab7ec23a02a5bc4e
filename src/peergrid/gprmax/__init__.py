"""Input files of gprMax, read as models of electromagnetic fields in three dimensions.

Read first `text` (a file as commands), `table` (what is done with each) and `items` (what they say); then `readers` and
`arguments` (from words to data), `raster`, `shapes` and `media` (objects on the grid), `waves`, and `assemble` (the
domain); `model` is what runs.
"""

from peergrid.gprmax.model import InputModel, read

__all__ = ["InputModel", "read"]
