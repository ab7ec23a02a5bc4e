"""Experiments on GPUs: one file each, kernels beside them in `kernels/`."""
