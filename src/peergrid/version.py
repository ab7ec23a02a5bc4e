"""The version of the installed package, as results name it; it follows the tag of the commit (`tools/version.py`)."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("peergrid")
except PackageNotFoundError:  # sources on the path of Python that nobody installed
    VERSION = "unknown"
