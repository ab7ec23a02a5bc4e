"""A small tile that a thread block holds in shared memory for several steps.

In the order of reading: `cells`, what lies where; `tile`, the plan for `skeletons/block2d.cuh`.
"""
