"""Work that a background thread does, in order, while a run continues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

WAITING = 2  # pieces of work left before the run waits


@dataclass(frozen=True)
class Behind:
    """A background thread and its work."""

    _pool: ThreadPoolExecutor
    _left: deque[Future[None]]

    def put(self, work: Callable[[], None]) -> None:
        """Add a piece of work. Raises the error of an earlier one."""
        self.wait(WAITING)
        self._left.append(self._pool.submit(work))

    def wait(self, left: int = 0) -> None:
        """Wait until at most `left` pieces are left. Raises the error of one of them."""
        while len(self._left) > left:
            self._left.popleft().result()


@contextmanager
def behind() -> Iterator[Behind]:
    """A background thread; leaving the block waits for its work."""
    with ThreadPoolExecutor(1, "files") as pool:
        found = Behind(pool, deque())
        yield found
        found.wait()
