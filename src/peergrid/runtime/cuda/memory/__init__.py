"""The memory of the devices: its layout, and the check that it fits.

In the order of reading: `blocks`, where a cell lies; `fields`, all that a run allocates; `norms` and `reductions`,
what these need beside it; `room`, does it fit; `peers`, who reaches whose memory, and `sharing`, that of other
processes; `words`, host memory that queues wait for.
"""
