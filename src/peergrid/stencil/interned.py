"""Hash-consing: making a value that is already there gives the one that is there.

The table holds its values weakly: one that nothing else refers to goes, and its entry with it.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakValueDictionary

_TABLE: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
_MAKING = threading.RLock()


class Interned(type):
    """The metaclass of frozen classes with a property `identity`: an instance with that of another is that other."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        made = super().__call__(*args, **named)
        with _MAKING:
            return _TABLE.setdefault((cls, *made.identity), made)
