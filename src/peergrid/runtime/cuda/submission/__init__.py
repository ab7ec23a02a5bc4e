"""Submission threads, which replay command buffers a bounded distance ahead of the devices.

In the order of reading: `affinity`, the processors at a GPU's side; `submitter`, the threads; `graphs`, captured once.
"""
