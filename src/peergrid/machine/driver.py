"""The CUDA driver, loaded on first use; calls raise a sentence instead of returning a code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from typing import Any

from peergrid.errors import DeviceFault, PeergridError, extra
from peergrid.machine.model import Missing


def find() -> tuple[Any, Missing | None]:
    """The initialised module `cuda.bindings.driver`, or None and the reason why there is no CUDA here."""
    try:
        from cuda.bindings import driver
    except ImportError:
        return None, Missing("CUDA", f"the package cuda-bindings is not installed: {extra('cuda')}")
    try:
        code = driver.cuInit(0)[0]
    except (RuntimeError, OSError):
        return None, Missing("CUDA", "no NVIDIA driver library (libcuda) on this system")
    if int(code) != 0:
        return None, Missing("CUDA", f"the NVIDIA driver did not start: {describe(driver, code)}{_hidden()}")
    try:
        devices = int(call(driver, "cuDeviceGetCount"))
    except DeviceFault as fault:
        return None, Missing("CUDA", str(fault).rstrip("."))
    if devices == 0:
        return None, Missing("CUDA", f"the NVIDIA driver shows no device{_hidden()}")
    return driver, None


def _hidden() -> str:
    """A remark on CUDA_VISIBLE_DEVICES, if it is set."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return "" if chosen is None else f"; CUDA_VISIBLE_DEVICES='{chosen}' decides which GPUs there are"


def call(driver: Any, name: str, *args: Any) -> Any:
    """Call a driver function; returns its value, a tuple of several, or None.

    Raises:
        DeviceFault: the driver answered with an error.
    """
    code, *values = getattr(driver, name)(*args)
    if int(code) != 0:
        raise DeviceFault(f"The driver refused {name}: {describe(driver, code)}.")
    if not values:
        return None
    return values[0] if len(values) == 1 else tuple(values)


@contextmanager
def kept(current: Callable[[], Any], make_current: Callable[[Any], object]) -> Iterator[None]:
    """A block that may make other contexts current for this thread: afterwards it is the caller's again, or none.

    current, make_current: ask for the context, and set it; where the caller's is lost, its next call says so.
    """
    before = current()
    try:
        yield
    finally:
        with suppress(PeergridError):
            make_current(before)


def kept_current(driver: Any) -> AbstractContextManager[None]:
    """The same by calls of a driver."""
    return kept(partial(call, driver, "cuCtxGetCurrent"), partial(call, driver, "cuCtxSetCurrent"))


def describe(driver: Any, code: Any) -> str:
    """The driver's own words for a result code, such as 'out of memory (CUDA_ERROR_OUT_OF_MEMORY)'."""
    text, name = (_text(driver, query, code) for query in ("cuGetErrorString", "cuGetErrorName"))
    return f"{text or 'unknown error'} ({name or int(code)})"


def attribute(driver: Any, name: str, device: Any) -> int:
    """A device attribute by the end of its name; 0 where this driver or binding knows none."""
    key = getattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}", None)
    if key is None:
        return 0
    code, value = driver.cuDeviceGetAttribute(key, device)
    return int(value) if int(code) == 0 else 0


def _text(driver: Any, query: str, code: Any) -> str:
    result = getattr(driver, query)(code)
    return result[1].decode() if int(result[0]) == 0 and result[1] else ""
