"""From a problem to CUDA C++ text. Pure: nothing here imports CUDA."""
