"""Trials of a run on GPUs: candidates are carried out for some milliseconds, and the fastest is remembered.

In the order of reading: `step_timer`, seconds of a step, measured; `trial`, which of the candidates is the fastest.
"""
