"""The part of a run in which its fields are those of no step."""

from __future__ import annotations

from types import TracebackType

from peergrid.errors import UsageError


class Stepping:
    """A block that changes fields: if it fails, they stay those of no step, and `check` refuses to use them.

    what: the run in a sentence, such as 'simulation'.
    """

    def __init__(self, what: str) -> None:
        self._what, self._inside = what, False

    def check(self) -> None:
        """Raise UsageError if the fields are those of no step."""
        if self._inside:
            raise UsageError(f"The {self._what} failed or was interrupted while stepping; make a new one.")

    def __enter__(self) -> None:
        self._inside = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._inside = error is not None
