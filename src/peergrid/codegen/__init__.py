"""From the traced expressions to the text of kernels: Numba for CPUs, CUDA C++ for GPUs."""

from peergrid.codegen.listing import TARGETS, Target, source

__all__ = ["TARGETS", "Target", "source"]
