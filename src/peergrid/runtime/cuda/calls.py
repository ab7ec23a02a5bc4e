"""The speed of a host at calls of the driver: a kernel launch, as a run issues it, by a thread for every GPU."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from statistics import median
from threading import Barrier

import numpy as np

from peergrid.runtime.cuda.commands.buffer import CommandBuffer
from peergrid.runtime.cuda.commands.issue import issue
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.devices import Devices, borrowed
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.runtime.cuda.lowering.programs import Programs
from peergrid.runtime.workers import Workers
from peergrid.schedule.ops import Queue

WORDS = 64  # of arguments, about as many as kernels of a run have
SOURCE = f"""
struct Arguments {{ unsigned long long words[{WORDS}]; }};
extern "C" __global__ void nothing(const __grid_constant__ Arguments a) {{
  if (threadIdx.x > 1024u) *(int*)a.words[0] = 1;
}}
"""
LAUNCHES, SAMPLES = 200, 15  # fewer at once than make the driver wait for the GPU
THREADS = 32


def launch_seconds(ordinals: tuple[int, ...], driver: CudaDriver | None = None, cache: Path | None = None) -> float:
    """Seconds of a thread for a launch while as many threads issue as there are GPUs; the median of some samples.

    cache: a folder for the compiled kernel. Raises DeviceFault where a GPU cannot be used.
    """
    with borrowed(ordinals, driver) as devices, closing(Programs(devices, cache)) as programs:
        buffers = [_launches(devices, programs, device) for device in range(devices.count)]
        with closing(Workers(devices.count, "launches")) as workers:
            barrier, found = Barrier(devices.count), list[float]()
            for _ in range(SAMPLES + 1):
                jobs = [workers.submit(_seconds, devices, commands, barrier) for commands in buffers]
                found.append(max(job.result() for job in jobs) / LAUNCHES)
                devices.synchronize()
        return median(found[1:])


def _launches(devices: Devices, programs: Programs, device: int) -> CommandBuffer:
    """Launches of a kernel that does nothing, all in one queue."""
    function = programs.function(device, SOURCE, "nothing")
    queue, values, commands = Queue(device, "launches"), np.zeros(WORDS, np.uint64), CommandWriter(devices)
    for _ in range(LAUNCHES):
        commands.launch(-1, queue, function, 1, THREADS, values)
    return commands.finish()


def _seconds(devices: Devices, commands: CommandBuffer, barrier: Barrier) -> float:
    """Seconds of this thread for all calls of a buffer."""
    devices.entry("cuCtxSetCurrent")
    barrier.wait()
    began = time.perf_counter()
    issue(devices, commands, "A launch to measure the host with")
    return time.perf_counter() - began
