"""Models of electromagnetic fields in three dimensions from files: gprMax's input files, and model files in TOML.

Read first `items` and `objects` (the contents of either file); `text` (an input file as commands), `table` (the
treatment of each command), `readers` and `arguments` (from words to items); `tables` and `modelfile` (from TOML to
items), `convert` (from an input file to a model file); then `raster`, `shapes` and `media` (objects on the grid),
`waves`, and `assemble` (the domain); `model` has the model that runs.
"""

from peergrid.gprmax.model import InputModel, read

__all__ = ["InputModel", "read"]
