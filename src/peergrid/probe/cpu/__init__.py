"""Experiments on virtual devices: threads of the host stand for GPUs."""
