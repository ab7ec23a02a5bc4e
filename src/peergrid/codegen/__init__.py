"""From the traced expressions to the text of kernels: Numba for CPUs, CUDA C++ for GPUs."""

from peergrid.codegen.cpu.listing import source

__all__ = ["source"]
