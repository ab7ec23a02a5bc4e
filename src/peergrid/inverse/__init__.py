"""Operators on seismic waves: forward and adjoint, gradients, reverse-time migration."""

from peergrid.inverse.migration import gradient, migrate
from peergrid.inverse.operators import adjoint, forward

__all__ = ["adjoint", "forward", "gradient", "migrate"]
