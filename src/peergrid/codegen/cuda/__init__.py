"""From a problem to CUDA C++ text. Pure: nothing here imports CUDA.

Read `common` first, what all kernels share; then `onestep`, the kernels that make one step in a pass over memory and
serve any problem. Passes of several steps are *time-blocked*: `blocked` says what they share, `blocked1d` and
`blocked2d` hold the kernels, `stream3d` those of 3D, for one step, too. In `fused` the kernels exchange with their
neighbours themselves. `choose` says what a problem is best served by, `persistent_choice` the same of kernels that make
many passes; `reduce` makes the kernels of reductions, and `service` holds the small kernels that compute nothing.
"""
