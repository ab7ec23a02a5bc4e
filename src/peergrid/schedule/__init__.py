"""The step as data: operations, the strategies that arrange them, and what can be proved about them."""

from peergrid.schedule.build import Options, Schedule, build, layout, period
from peergrid.schedule.layout import Halo, Layout

__all__ = ["Halo", "Layout", "Options", "Schedule", "build", "layout", "period"]
