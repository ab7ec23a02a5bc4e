"""Work that a thread of its own carries out, in order, while a run goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

WAITING = 2  # pieces of work left before the run waits


@dataclass(frozen=True)
class Behind:
    """A thread and the work that it was given."""

    _pool: ThreadPoolExecutor
    _left: deque[Future[None]]

    def put(self, work: Callable[[], None]) -> None:
        """Hand over a piece of work. Raises what an earlier one raised."""
        self.wait(WAITING)
        self._left.append(self._pool.submit(work))

    def wait(self, left: int = 0) -> None:
        """Wait until at most so many pieces are left. Raises what one of them raised."""
        while len(self._left) > left:
            self._left.popleft().result()


@contextmanager
def behind() -> Iterator[Behind]:
    """A thread whose work is done when the block is left."""
    with ThreadPoolExecutor(1, "files") as pool:
        found = Behind(pool, deque())
        yield found
        found.wait()
