"""CUDA devices: memory, streams, routes between them, and the replay of schedules without the interpreter."""
