"""A wire that delays between two network namespaces, for kernels without `tc netem`: a TAP device in each.

python benchmarks/wire.py SPACE0 SPACE1 MICROSECONDS      # ends when killed

Once frames are carried it prints 'up, real time', or 'up, usual class' where the system refuses to run it before all
others: frames may then be late.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import struct
import sys
import time
from collections import deque

TUNSETIFF, TAP, BARE = 0x400454CA, 2, 0x1000
TIMER_SLACK, SPUN = 29, 15e-6  # prctl's number; seconds before a frame is due that are not slept
FRAME = 1 << 16
PRIORITY = 20  # among processes in real time


def tap(space: str) -> int:
    """The file of a new TAP device `net0` in a namespace."""
    libc, home = ctypes.CDLL(None, use_errno=True), os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(f"/run/netns/{space}", os.O_RDONLY)
    if libc.setns(there, 0):
        raise OSError(ctypes.get_errno(), f"cannot enter the namespace '{space}'")
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"net0", TAP | BARE))
    libc.setns(home, 0)
    os.close(there)
    os.close(home)
    return device


def hurried() -> bool:
    """Run this process before all others of the usual class, which frames would wait for; False where it may not."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    except OSError:
        return False
    return True


def carry(ends: tuple[int, int], delay: float) -> None:
    """Frames read from either end are written to the other so many seconds later, for ever."""
    due: tuple[deque[tuple[float, bytes]], ...] = (deque(), deque())
    while True:
        first = min((line[0][0] for line in due if line), default=None)
        rest = None if first is None else max(0.0, first - time.perf_counter() - SPUN)
        for end in select.select(ends, [], [], rest)[0]:
            while True:
                try:
                    frame = os.read(end, FRAME)
                except BlockingIOError:
                    break
                due[ends.index(end)].append((time.perf_counter() + delay, frame))
        for side, line in enumerate(due):
            while line and line[0][0] <= time.perf_counter() + SPUN:
                at, frame = line.popleft()
                while time.perf_counter() < at:
                    pass
                try:
                    os.write(ends[1 - side], frame)
                except OSError:  # the other end is not up yet: lost, as on any wire
                    continue


if __name__ == "__main__":
    ctypes.CDLL(None).prctl(TIMER_SLACK, 1, 0, 0, 0)
    both = (tap(sys.argv[1]), tap(sys.argv[2]))
    print("up, real time" if hurried() else "up, usual class", flush=True)
    carry(both, float(sys.argv[3]) * 1e-6)
