"""Hash-consing: creating a value that exists returns the existing one.

The table refers to its values weakly: a value without other references is removed.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakValueDictionary

_TABLE: WeakValueDictionary[tuple[object, ...], Any] = WeakValueDictionary()
_MAKING = threading.RLock()


class Interned(type):
    """The metaclass of frozen classes with a property `identity`: instances with equal identities are one object."""

    def __call__(cls, *args: Any, **named: Any) -> Any:
        made = super().__call__(*args, **named)
        with _MAKING:
            return _TABLE.setdefault((cls, *made.identity), made)
