"""What experiments call beside the bindings of the driver, pretended: its library, entry points for compiled loops."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from pretend_driver import PretendDriver

from peergrid.probe.cuda import hostloop


def nvrtc() -> bool:
    """Whether NVRTC can be loaded here."""
    try:
        from cuda.bindings import nvrtc as library

        library.nvrtcVersion()
    except (ImportError, RuntimeError, OSError):
        return False
    return True


needs_nvrtc = pytest.mark.skipif(not nvrtc(), reason="NVRTC is not installed")


def entries() -> hostloop.Entries:
    """Entry points that do nothing and succeed."""
    kinds = hostloop.LAUNCH, hostloop.COOPERATIVE, hostloop.ON_STREAM, hostloop.SET_CURRENT
    return hostloop.Entries(*(kind(lambda *arguments: 0) for kind in (*kinds, hostloop.RECORD, hostloop.AWAIT)))


class Library:
    """The driver library itself, where it is asked without its bindings."""

    def __init__(self, driver: PretendDriver) -> None:
        self.driver = driver

    def cuPointerGetAttribute(self, found: Any, key: int, address: ctypes.c_uint64) -> int:  # noqa: N802
        assert key == int(self.driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
        found._obj.value = self.driver._pointer(key, address.value)
        return 0


def recording(calls: list[tuple[str, tuple[int, ...]]]) -> hostloop.Entries:
    """Entry points that note what they are asked for."""

    def noting(kind: Any, name: str) -> Any:
        return kind(lambda *arguments: calls.append((name, arguments)) or 0)

    return hostloop.Entries(
        noting(hostloop.LAUNCH, "launch"),
        noting(hostloop.COOPERATIVE, "cooperative"),
        noting(hostloop.ON_STREAM, "wait"),
        noting(hostloop.SET_CURRENT, "use"),
        noting(hostloop.RECORD, "record"),
        noting(hostloop.AWAIT, "await"),
    )
