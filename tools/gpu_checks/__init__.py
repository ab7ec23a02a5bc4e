"""The sections of `tools/gpu_check`, one in each file."""
