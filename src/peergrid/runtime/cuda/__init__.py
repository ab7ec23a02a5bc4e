"""CUDA devices: memory, streams, routes between them, and the replay of schedules without the interpreter.

`device` is the driver and the GPUs of a run, `memory` where fields lie on them, `tapes` what a host calls, row by row.
`lowering` makes tapes of a schedule, `linked` of one whose kernels exchange themselves; `issuing` has threads and
graphs carry them out. `executor` is all of that behind the one interface of executors, and `trial` finds out which
arrangement is fastest. Beside it: `timing`, when each operation ran; `search`, where values are not finite; `watchdog`,
what kernels waited for in vain; `bandwidth`, what a GPU's memory can do.
"""
