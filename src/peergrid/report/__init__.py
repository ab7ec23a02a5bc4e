"""A profile as one page that needs nothing else: `page(profile)` is the whole HTML."""

from peergrid.report.page import page

__all__ = ["page"]
