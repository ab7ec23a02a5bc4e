"""What carries a schedule out: the NumPy reference, virtual CPU devices with real threads, CUDA devices."""
