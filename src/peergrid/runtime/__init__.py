"""Executors of schedules: the NumPy reference, virtual CPU devices with real threads, CUDA devices."""
