"""A profile as one self-contained page: `page(profile)` is the whole HTML."""

from peergrid.report.page import page

__all__ = ["page"]
