"""Halos as MPI messages: two buffers for each tag, receives begin one exchange ahead.

Whoever waits for a message asks MPI again and again (`MPI_Test`), which lets MPI move what is on its way: an exchange
that is only waited for at its end is hardly hidden behind the computation.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from peergrid.grid import Array
from peergrid.runtime.mail import Letter
from peergrid.runtime.ranks.ranks import Ranks
from peergrid.runtime.trace.recorder import Position
from peergrid.schedule.ops import IN_FLIGHT, Receive, Send


class MpiMail:
    """Messages over a communicator of their own; dtype: of the values."""

    def __init__(self, ranks: Ranks, dtype: str) -> None:
        from mpi4py import MPI

        self._ranks, self._dtype = ranks, np.dtype(dtype)
        self._comm = ranks.another()
        several = MPI.Query_thread() == MPI.THREAD_MULTIPLE
        self._alone: AbstractContextManager[object] = nullcontext() if several else threading.Lock()
        self._sent: dict[int, deque[tuple[Any, Array]]] = {}
        self._awaited: dict[int, tuple[Any, Array, Array]] = {}  # the request, its buffer, and the other one

    def sent(self, op: Send, values: Array, position: Position) -> bool:
        line = self._sent.setdefault(op.tag, deque())
        with self._alone:
            while line and line[0][0].Test():
                line.popleft()
            if len(line) == IN_FLIGHT:
                return False
            buffer = np.ascontiguousarray(values).copy()
            line.append((self._comm.Isend(buffer, self._ranks.of_device[op.target_device], op.tag), buffer))
        return True

    def arrived(self, op: Receive) -> Letter | None:
        with self._alone:
            if op.tag not in self._awaited:
                one, two = (np.empty(op.target_box.shape, self._dtype) for _ in range(IN_FLIGHT))
                self._awaited[op.tag] = (self._begin(op, one), one, two)
            request, here, free = self._awaited[op.tag]
            if not request.Test():
                return None
            self._awaited[op.tag] = (self._begin(op, free), free, here)
        return here, None

    def close(self) -> None:
        with self._alone:
            for request, _, _ in self._awaited.values():
                request.Cancel()
                request.Wait()
            self._awaited.clear()
            for line in self._sent.values():
                for request, _ in line:
                    self._ranks.finish(request)
            self._sent.clear()
            self._comm.Free()

    def _begin(self, op: Receive, buffer: Array) -> Any:
        return self._comm.Irecv(buffer, self._ranks.of_device[op.source_device], op.tag)
