"""Models of electromagnetic fields in three dimensions from files: gprMax's input files, and model files in TOML.

Read first `items` and `objects`, what either file says; `text` (an input file as commands), `table` (what is done with
each), `readers` and `arguments` (from words to items); `tables` and `modelfile` (from TOML to items), `convert` (from
the one to the other); then `raster`, `shapes` and `media` (objects on the grid), `waves`, and `assemble` (the domain);
`model` is what runs.
"""

from peergrid.gprmax.model import InputModel, read

__all__ = ["InputModel", "read"]
