"""NCCL's all-gather from one process, through the library's C interface."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from peergrid.errors import DeviceFault, UsageError
from peergrid.probe.cuda.devices import Gpus, Scope, Stream

UINT32 = 3  # ncclDataType_t
NO_MULTICAST = "NCCL_NVLS_ENABLE"


@dataclass(frozen=True)
class AllGather:
    """The communicators of the first GPUs, in one process."""

    library: Any
    communicators: tuple[Any, ...]

    @classmethod
    def over(cls, scope: Scope, gpus: int) -> AllGather:
        """Communicators of some GPUs, without NVLink multicast unless the user enables it; freed with the scope.

        Raises UsageError without the library.
        """
        os.environ.setdefault(NO_MULTICAST, "0")
        library, found = _library(), (ctypes.c_void_p * gpus)()
        made = cls(library, ())
        made.call("ncclCommInitAll", found, gpus, (ctypes.c_int * gpus)(*range(gpus)))
        made = cls(library, tuple(ctypes.c_void_p(one) for one in found))
        for one in made.communicators:
            scope.stack.callback(library.ncclCommDestroy, one)
        return made

    def __call__(
        self,
        devices: Gpus,
        addresses: np.ndarray[Any, Any],
        shares: Sequence[tuple[int, int]],
        streams: Sequence[Stream],
    ) -> None:
        """Gather the words of all GPUs in the memory of each. Raises UsageError if shares differ in size."""
        count = shares[0][1] - shares[0][0]
        if any(last - first != count for first, last in shares):
            raise UsageError("NCCL gathers shares of one size; use as many GPUs as divide the words evenly.")
        self.call("ncclGroupStart")
        for gpu, ((first, _), stream) in enumerate(zip(shares, streams, strict=True)):
            devices.use(gpu)
            whole = int(addresses[gpu])
            own, all_words = ctypes.c_void_p(whole + 4 * first), ctypes.c_void_p(whole)
            handle = ctypes.c_void_p(int(stream.handle))
            self.call("ncclAllGather", own, all_words, ctypes.c_size_t(count), UINT32, self.communicators[gpu], handle)
        self.call("ncclGroupEnd")

    def call(self, name: str, *arguments: Any) -> None:
        """Call the library. Raises DeviceFault if the call fails."""
        code = getattr(self.library, name)(*arguments)
        if code:
            self.library.ncclGetErrorString.restype = ctypes.c_char_p
            raise DeviceFault(f"NCCL refused {name}: {self.library.ncclGetErrorString(code).decode()}.")


def _library() -> Any:
    """The library of the package nvidia-nccl-cu13, or the system's."""
    package = find_spec("nvidia")
    folders = (package.submodule_search_locations or ()) if package else ()
    for name in (*(str(Path(folder) / "nccl/lib/libnccl.so.2") for folder in folders), "libnccl.so.2"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise UsageError("The exchange 'nccl' needs NCCL: pip install nvidia-nccl-cu13, or use 'store' or 'copy'.")
