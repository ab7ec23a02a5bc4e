"""The programs of a run: each text compiled once, by threads, from the moment it is known that it will be needed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from threading import Lock
from typing import TypeVar

from peergrid.codegen.cuda.blocked.tiled import TiledKernel
from peergrid.codegen.cuda.common.program import Program
from peergrid.codegen.cuda.skeletons import expanded
from peergrid.runtime.cuda.device.devices import Devices
from peergrid.runtime.cuda.lowering.sources import written
from peergrid.runtime.devices import cores
from peergrid.runtime.workers import Workers

Tiled = TypeVar("Tiled", bound=TiledKernel)


@dataclass(frozen=True)
class Needed:
    """The texts to be compiled, each with the bytes of shared memory that launches ask for; striped: kernels whose
    boundary strips have a text that follows from the interior's.
    """

    texts: Mapping[str, int]
    striped: tuple[TiledKernel, ...] = ()

    @classmethod
    def of(cls, programs: Iterable[Program]) -> Needed:
        """The texts of some programs."""
        return cls({program.source: program.shared_bytes for program in programs})

    @classmethod
    def together(cls, parts: Iterable[Needed]) -> Needed:
        """All of the parts, each text once."""
        parts = tuple(parts)
        texts = {text: count for part in parts for text, count in part.texts.items()}
        return cls(texts, tuple(chain.from_iterable(part.striped for part in parts)))


class Programs:
    """Machine code for devices; cache: a folder in which later runs find it; sources: one for the texts.

    NVRTC works without the interpreter's lock, so that threads compile side by side.
    """

    def __init__(self, devices: Devices, cache: Path | None, sources: Path | None = None) -> None:
        self._devices, self._cache, self._sources = devices, cache, sources
        self._kinds = [devices.architecture(device) for device in range(devices.count)]
        self._workers = Workers(cores(), "compile")
        self._lock = Lock()
        self._code: dict[tuple[str, str], Future[bytes]] = {}
        self._strips: dict[TiledKernel, Future[None]] = {}

    def expect(self, needed: Iterable[Needed]) -> None:
        """Begin with what will be needed."""
        needed = tuple(needed)
        self._begin(text for part in needed for text in part.texts)
        for kernel in dict.fromkeys(kernel for part in needed for kernel in part.striped):
            if kernel not in self._strips:  # the interior tiles' text is before it in their line
                self._begin([kernel.interior.source])
                self._strips[kernel] = self._workers.submit(self._begin_strips, kernel)

    def code(self, device: int, source: str) -> bytes:
        """The machine code of a program for a device; raises what compiling it raised."""
        self._begin([source])
        return self._code[source, self._kinds[device]].result()

    def function(self, device: int, source: str, entry: str) -> int:
        """A kernel on a device."""
        return self._devices.function(device, self.code(device, source), entry)

    def resident(self, device: int, program: Program) -> int:
        """Thread blocks of a program that a device runs at once, granted the shared memory they need; 0 where it has no
        room for one.
        """
        function = self.function(device, program.source, program.entry)
        return self._devices.on(device).resident(function, program.threads, program.shared_bytes, whole=program.whole)

    def beside(self, kernel: Tiled) -> Tiled:
        """The kernels of tiles, those of boundary strips with the registers that interior ones leave, as compiled."""
        return kernel if kernel.layer is None else kernel.around(self._registers(kernel.interior))

    def settle(self) -> None:
        """Wait for all that was begun; what failed is said to whoever asks for it."""
        wait(self._strips.values())
        wait(self._code.values())

    def still(self) -> None:
        """Wait until no thread has a kernel to load: that may wait for kernels which run, and these for later ones."""
        wait(self._strips.values())

    def close(self) -> None:
        """Begin nothing more."""
        self._workers.close()

    def _begin(self, sources: Iterable[str]) -> None:
        with self._lock:
            for key in product(sources, sorted(set(self._kinds))):
                if key not in self._code:
                    self._code[key] = self._workers.submit(self._compiled, *key)

    def _compiled(self, source: str, architecture: str) -> bytes:
        whole = expanded(source)
        file = None if self._sources is None else written(self._sources, whole)
        return self._devices.driver.compile(whole, architecture, self._cache, file)

    def _begin_strips(self, kernel: Tiled) -> None:
        layer = self.beside(kernel).layer
        if layer is not None:
            self._begin([layer.source])

    def _registers(self, program: Program) -> int:
        """Registers of a kernel's thread, the most on any device."""
        found = (self.function(device, program.source, program.entry) for device in range(self._devices.count))
        return max(self._devices.on(device).registers(function) for device, function in enumerate(found))
