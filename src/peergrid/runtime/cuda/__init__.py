"""CUDA devices: memory, streams, routes between them, and the replay of schedules without the interpreter.

`device` is the driver and the GPUs of a run, `memory` the fields on them, `commands` the tables of driver calls.
`lowering` translates a schedule into command buffers, `fused` a schedule whose kernels fuse the exchange;
`submission` replays them in threads and graphs. `executor` puts all of that behind the interface of executors. The
others: `timing`, when each operation ran; `recording`, what happened in which order; `search`, where values are not
finite; `watchdog`, which wait timed out; `bandwidth`, the rate of a GPU's memory; `calls`, of launches by a host.
"""
