"""Images on GPUs: each computes a part of the pixels, in vector loads of 16 bytes."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from time import perf_counter
from typing import Any, Literal

import numpy as np

from peergrid.codegen.cache import default_cache
from peergrid.errors import UsageError
from peergrid.images.table import Line, Pixels, straight
from peergrid.runtime.cuda.commands.issue import issue
from peergrid.runtime.cuda.commands.writer import CommandWriter
from peergrid.runtime.cuda.device.devices import Devices, borrowed
from peergrid.runtime.cuda.device.driver import CudaDriver
from peergrid.schedule.ops import Event, Queue

Variant = Literal["each", "packed", "shared"]
KERNELS: dict[Variant, str] = {"each": "each_pixel", "packed": "packed_pixels", "shared": "shared_pixels"}
THREADS, MOST_THREADS, LOAD = 256, 1024, 16  # of a block; bytes
NAMES = {np.dtype(np.uint8): "unsigned char", np.dtype(np.uint16): "unsigned short"}
IMAGE = np.dtype(
    [
        ("in", "<u8"),
        ("out", "<u8"),
        ("table", "<u8"),
        ("pixels", "<i8"),
        ("offset", "<i8"),
        ("slope", "<i4"),
        ("spare", "<i4"),
    ]
)


@dataclass(frozen=True, slots=True)
class Seconds:
    """Times of the slowest GPU: copies from and to the host (pageable memory), and each repetition of the kernel."""

    to_devices: float
    kernels: tuple[float, ...]
    from_devices: float


def source(dtype: np.dtype[Any], line: Line | None) -> str:
    """The CUDA C++ of the kernels for a type of pixels."""
    straight = "false" if line is None else "true"
    kernels = files("peergrid.images").joinpath("pixels.cu").read_text()
    return f"typedef {NAMES[dtype]} Pixel;\nconstexpr bool STRAIGHT = {straight};\n\n{kernels}"


def parts(pixels: int, width: int, devices: int) -> list[tuple[int, int]]:
    """The first and the last (exclusive) pixel of each device, at multiples of a vector load; width: bytes of a
    pixel.
    """
    loads = -(-pixels * width // LOAD)
    cuts = [min(pixels, number * loads // devices * LOAD // width) for number in range(devices)]
    return list(zip(cuts, [*cuts[1:], pixels], strict=True))


def on_gpus(
    image: Pixels,
    values: Pixels,
    ordinals: tuple[int, ...],
    variant: Variant | None = None,
    repetitions: int = 1,
    driver: CudaDriver | None = None,
) -> tuple[Pixels, Seconds]:
    """The new image, and the times that it took; values: the new value of every pixel value.

    variant: `shared` keeps the table in shared memory, which needs GPUs with enough of it per thread block; None:
    `shared` if the table is too large for the first-level cache and its values are on no straight line, and if there is
    enough shared memory; else `packed`. Raises DeviceFault and DoesNotFit as runs do.
    """
    out, line = np.empty_like(image), None if image.itemsize == 1 else straight(values)
    flat, result = image.reshape(-1), out.reshape(-1)
    with borrowed(ordinals, driver) as devices:
        shares = [
            _Share(devices, n, flat[a:b], result[a:b], values, line)
            for n, (a, b) in enumerate(parts(flat.size, image.itemsize, len(ordinals)))
        ]
        began = perf_counter()
        for share in shares:
            share.upload()
        uploaded = perf_counter()
        times = [tuple(share.issue(variant, repetitions)) for share in shares]
        devices.synchronize()
        slowest = tuple(max(devices.elapsed(*pair) for pair in pairs) for pairs in zip(*times, strict=True))
        computed = perf_counter()
        for share in shares:
            share.download()
        return out, Seconds(uploaded - began, slowest, perf_counter() - computed)


class _Share:
    """One device's part of an image."""

    def __init__(
        self, devices: Devices, number: int, before: Pixels, after: Pixels, values: Pixels, line: Line | None
    ) -> None:
        self._devices, self._number, self._before, self._after = devices, number, before, after
        driver = devices.driver
        text = source(before.dtype, line)
        self._code = driver.compile(text, devices.architecture(number), default_cache(), None)
        self._in, self._out = (devices.allocate(number, before.nbytes) for _ in range(2))
        self._looked_up, line = line is None, line or Line(0, 0)
        table, self._table_bytes = devices.constant(number, values), values.nbytes
        self._values = np.array([(self._in, self._out, table, before.size, line.offset, line.slope, 0)], IMAGE)

    def upload(self) -> None:
        self._devices.on(self._number).upload(self._in, self._before)

    def download(self) -> None:
        self._devices.on(self._number).download(self._after, self._out)

    def issue(self, asked: Variant | None, repetitions: int) -> list[tuple[Event, Event]]:
        """Launch the kernel some times; returns the events before and after each launch."""
        devices, number = self._devices, self._number
        variant = asked or ("shared" if self._looked_up and self._before.itemsize > 1 else "packed")
        room = self._resident() if variant == "shared" else 0
        if variant == "shared" and not room:
            if asked:
                raise UsageError(
                    f"Thread blocks of this GPU cannot have {self._table_bytes} bytes of shared memory; use 'packed'."
                )
            variant = "packed"
        queue, kernel = Queue(number, "image"), devices.function(number, self._code, KERNELS[variant])
        each = 1 if variant == "each" else LOAD // self._before.itemsize
        threads, shared = (MOST_THREADS, self._table_bytes) if room else (THREADS, 0)
        blocks = max(1, -(-self._before.size // (threads * each)))
        blocks = min(blocks, room) if room else blocks
        events = [Event(number, f"image {place}") for place in range(repetitions + 1)]
        commands = CommandWriter(devices)
        commands.record(-1, queue, events[0], timing=True)
        for event in events[1:]:
            commands.launch(-1, queue, kernel, blocks, threads, self._values, shared=shared)
            commands.record(-1, queue, event, timing=True)
        issue(devices, commands.finish(), "A kernel of an image")
        return list(pairwise(events))

    def _resident(self) -> int:
        """The co-resident blocks with the table in shared memory; 0 if a block cannot have that much."""
        kernel = self._devices.function(self._number, self._code, KERNELS["shared"])
        return self._devices.on(self._number).resident(kernel, MOST_THREADS, self._table_bytes)
