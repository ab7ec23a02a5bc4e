"""The step as data: operations, the strategies that arrange them, and what can be proved about them."""

from peergrid.schedule.build import Chosen, Options, Schedule, build, layout, one_iteration
from peergrid.schedule.layout import Halo, Layout

__all__ = ["Chosen", "Halo", "Layout", "Options", "Schedule", "build", "layout", "one_iteration"]
