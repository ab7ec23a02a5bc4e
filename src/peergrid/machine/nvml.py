"""Facts from NVML that the CUDA driver does not give: NVLink lines, CPU affinity, PCIe generation, distances.

An item that NVML refuses keeps its default; the others are not affected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from peergrid.errors import DeviceFault
from peergrid.machine import driver as drivers
from peergrid.machine.driver import call
from peergrid.machine.model import Link, Missing, PcieLink

T = TypeVar("T")

# Line rates in bytes per second and direction by compute capability: NVIDIA's white papers for P100, V100,
# A100, GA102 (RTX 3090, A6000), H100 and B200. NVML's own version numbers differ between drivers, so the chip decides.
NVLINK = {"6": ("1", 20e9), "7": ("2", 25e9), "8": ("3", 25e9), "9": ("4", 25e9), "10": ("5", 50e9)}
NVLINK_OF_CHIP = {"8.6": ("3", 14.0625e9)}
PCIE_LANE = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
ANCESTOR = {
    0: "same board",
    10: "one PCIe switch",
    20: "several PCIe switches",
    30: "host bridge",
    40: "NUMA node",
    50: "link between the CPUs",
}
SWITCH = 2
NO_PERMISSION = 4
# The fact that is missing if NVML forbids a call, with harmless arguments for that call after the device.
ASKED = (
    ("NVLink lines", "nvmlDeviceGetNvLinkState", (0,)),
    ("CPU affinity", "nvmlDeviceGetCpuAffinity", (1,)),
    ("PCIe generation", "nvmlDeviceGetMaxPcieLinkGeneration", ()),
)


@contextmanager
def session() -> Iterator[tuple[Any, Missing | None]]:
    """The initialised module `pynvml`, or None and the reason; shut down at the end."""
    try:
        import pynvml  # type: ignore[import-untyped]  # published without type stubs
    except ImportError:
        yield None, Missing("NVML", "the package nvidia-ml-py is not installed: pip install nvidia-ml-py")
        return
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        yield None, Missing("NVML", f"it did not start: {error}")
        return
    try:
        yield pynvml, None
    finally:
        with suppress(pynvml.NVMLError):  # it may be gone by then
            pynvml.nvmlShutdown()


def attempt(nvml: Any, default: T, function: str, *args: Any) -> Any | T:
    """`nvml.function(*args)`, or `default` if NVML is absent, too old, or refuses."""
    if nvml is None:
        return default
    call: Callable[..., Any] | None = getattr(nvml, function, None)
    if call is None:
        return default
    try:
        return call(*args)
    except nvml.NVMLError:
        return default


def forbidden(nvml: Any, device: Any) -> tuple[Missing, ...]:
    """The facts of a GPU that NVML refuses this user for lack of permission."""
    lost = []
    for what, function, arguments in ASKED if nvml is not None else ():
        try:
            getattr(nvml, function)(device, *arguments)
        except nvml.NVMLError as error:
            if getattr(error, "value", None) == NO_PERMISSION:
                lost.append(Missing(what, f"NVML refuses: {error}"))
    return tuple(lost)


def handle(nvml: Any, pci: str) -> Any:
    """NVML's handle of the GPU at a PCI address, or None."""
    return attempt(nvml, None, "nvmlDeviceGetHandleByPciBusId", pci.encode())


def of_device(nvml: Any, driver: Any, device: Any) -> Any:
    """NVML's handle of a device of the CUDA driver, which numbers GPUs in another order, or None."""
    pci: bytes = call(driver, "cuDeviceGetPCIBusId", 32, device)
    return handle(nvml, short_pci(pci.split(b"\0")[0]))


def of_ordinals(nvml: Any, ordinals: Sequence[int]) -> dict[str, Any]:
    """NVML's handles of the GPUs with these CUDA numbers, each once, by name; empty if one is unknown."""
    if nvml is None or (driver := drivers.find()[0]) is None:
        return {}
    try:
        found = {
            f"cuda:{ordinal}": of_device(nvml, driver, call(driver, "cuDeviceGet", ordinal))
            for ordinal in dict.fromkeys(ordinals)
        }
    except DeviceFault:
        return {}
    return {} if None in found.values() else found


def pcie(nvml: Any, device: Any) -> PcieLink | None:
    """The widest PCIe link of the GPU and its slot (the current one is reduced while the GPU is idle)."""
    generation = attempt(nvml, 0, "nvmlDeviceGetMaxPcieLinkGeneration", device)
    lanes = attempt(nvml, 0, "nvmlDeviceGetMaxPcieLinkWidth", device)
    if not generation or not lanes:
        return None
    return PcieLink(int(generation), int(lanes), PCIE_LANE.get(int(generation), 0.0) * int(lanes))


def near_cpus(nvml: Any, device: Any, count: int) -> tuple[int, ...]:
    """The logical CPUs NVML calls ideal for the GPU; empty when it does not say."""
    words = attempt(nvml, (), "nvmlDeviceGetCpuAffinity", device, (count + 63) // 64)
    return tuple(
        64 * at + bit for at, word in enumerate(words) for bit in range(64) if word >> bit & 1
    )  # one bit per CPU, least significant first


def nearest(nvml: Any, first: Any, second: Any) -> str:
    """The closest common ancestor of two GPUs in the PCIe tree, in words; empty when NVML does not say."""
    return ANCESTOR.get(attempt(nvml, -1, "nvmlDeviceGetTopologyCommonAncestor", first, second), "")


def links(nvml: Any, device: Any, source: int, capability: str, by_pci: Mapping[str, int]) -> tuple[Link, ...]:
    """The active NVLink lines of GPU `source`, grouped by their far end."""
    ends: dict[int | None, int] = {}
    for line in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", 0)):
        if attempt(nvml, 0, "nvmlDeviceGetNvLinkState", device, line) == 1:
            target = _far_end(nvml, device, line, by_pci)
            ends[target] = ends.get(target, 0) + 1
    generation, rate = NVLINK_OF_CHIP.get(capability) or NVLINK.get(capability.split(".")[0], ("", 0.0))
    return tuple(
        Link(source, target, "NVLink" if target is not None else "NVLink switch", generation, n, n * rate)
        for target, n in ends.items()
    )


def _far_end(nvml: Any, device: Any, line: int, by_pci: Mapping[str, int]) -> int | None:
    """The GPU at the far end of a line; None for a switch (or for a device hidden from this machine)."""
    if attempt(nvml, SWITCH, "nvmlDeviceGetNvLinkRemoteDeviceType", device, line) == SWITCH:
        return None
    remote = attempt(nvml, None, "nvmlDeviceGetNvLinkRemotePciInfo", device, line)
    return by_pci.get(short_pci(remote.busId)) if remote is not None else None


def short_pci(address: str | bytes) -> str:
    """A PCI address in the kernel's form: '00000000:18:00.0' and '0000:18:00.0' are the same place."""
    text = address.decode() if isinstance(address, bytes) else address
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"
