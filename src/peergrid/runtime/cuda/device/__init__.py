"""The driver and the GPUs of a run.

In the order of reading: `faults`, what codes of the driver mean; `driver`, the calls that are made; `devices`;
`processes`, among which these are divided.
"""
