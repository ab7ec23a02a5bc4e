"""The version of peergrid; packages are built with it, and results name it."""

VERSION = "0.1.0"
