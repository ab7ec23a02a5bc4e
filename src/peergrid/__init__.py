"""peergrid: stencil + grid → schedule → verify → predict → run → measure.

The folders are named after that line; `docs/architecture.md` says what is in each.
"""

__version__ = "0.1.0"
