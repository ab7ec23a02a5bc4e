"""From the traced expressions to the text of kernels: Numba for CPUs, CUDA C++ for GPUs."""
