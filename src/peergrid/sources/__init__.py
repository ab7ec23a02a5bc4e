"""The source of the kernels that a run compiles, for people to read: `source` for any target, `cuda` for GPUs."""

from peergrid.sources.source import TARGETS, Target, source_of

__all__ = ["TARGETS", "Target", "source_of"]
