"""Command buffers of schedules whose kernels exchange with their neighbours themselves.

In the order of reading: `chain`, what neighbours have in common; `peer`, a launch for each pass; `persistent`, one for
many.
"""
