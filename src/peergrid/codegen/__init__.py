"""From traced expressions to the text of kernels: LLVM's intermediate representation for CPUs, CUDA C++ for GPUs."""
