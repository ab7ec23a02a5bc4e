"""Work that a background thread does, in order, while a run continues."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

from peergrid.errors import UsageError

WAITING = 2  # pieces of work left before the run waits


@dataclass(frozen=True)
class Behind:
    """A background thread and its work; failed: called with the error of a file that cannot be written."""

    _pool: ThreadPoolExecutor
    _left: deque[Future[None]]
    _failed: Callable[[UsageError], None]

    def put(self, work: Callable[[], None]) -> None:
        """Add a piece of work. Raises other errors of an earlier one."""
        self.wait(WAITING)
        self._left.append(self._pool.submit(work))

    def wait(self, left: int = 0) -> None:
        """Wait until at most `left` pieces are left. Raises other errors of one of them."""
        while len(self._left) > left:
            try:
                self._left.popleft().result()
            except UsageError as error:
                self._failed(error)


@contextmanager
def behind(failed: Callable[[UsageError], None]) -> Iterator[Behind]:
    """A background thread; leaving the block waits for its work. failed: as for `Behind`."""
    with ThreadPoolExecutor(1, "files") as pool:
        found = Behind(pool, deque(), failed)
        yield found
        found.wait()
