"""The step as data: operations, the strategies that order them, and proofs about them."""

from peergrid.schedule.build import Options, ResolvedOptions, Schedule, build, layout, one_iteration
from peergrid.schedule.layout import Halo, Layout
from peergrid.schedule.strategies import strategy

__all__ = ["Halo", "Layout", "Options", "ResolvedOptions", "Schedule", "build", "layout", "one_iteration", "strategy"]
