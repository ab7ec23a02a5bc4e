"""GPUs as a made-up driver and a made-up NVML show them, whole and with refusals."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from machine_examples import SOFTWARE
from machine_fakes import Driver, Nvml

from peergrid.errors import DeviceFault
from peergrid.machine import discover, gpus, nvml, text
from peergrid.machine.driver import call, find
from peergrid.machine.model import Link, Missing, PcieLink


def test_a_gpu_with_all_its_facts() -> None:
    first, second = gpus.gpus(Driver(), Nvml())
    assert (first.name, first.pci, second.pci) == ("NVIDIA H200", "0000:f0:00.0", "0000:f1:00.0")
    assert (first.capability, first.copy_engines, first.memory) == ("9.0", 3, 141 << 30)
    assert first.memory_rate == pytest.approx(4.917e12, rel=1e-3)
    assert first.near_cpus == (0, 1, 3)
    assert first.pcie == PcieLink(5, 16, 16 * 3.938e9)
    assert first.flush == "writes from outside: seen by the owner without a flush; flush by host call"
    assert first.uuid == "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"


def test_without_nvml_the_rest_remains() -> None:
    first = gpus.gpus(Driver(), None)[0]
    assert (first.pcie, first.near_cpus, first.bound) == (None, (), False)
    assert first.multiprocessors == 132


def test_a_refusal_of_nvml_loses_one_item_only() -> None:
    first = gpus.gpus(Driver(), Nvml(refuse=("nvmlDeviceGetCpuAffinity",)))[0]
    assert first.near_cpus == ()
    assert first.pcie == PcieLink(5, 16, 16 * 3.938e9)


def test_values_that_nvml_refuses_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = Nvml(refuse=("nvmlDeviceGetNvLinkState", "nvmlDeviceGetCpuAffinity"))
    wanted = [("NVLink lines", "NVML refuses: no permission"), ("CPU affinity", "NVML refuses: no permission")]
    assert [(item.what, item.why) for item in nvml.forbidden(closed, "0")] == wanted
    assert nvml.forbidden(Nvml(), "0") == nvml.forbidden(None, None) == ()
    monkeypatch.setattr(ROOM, "find", lambda: (Driver(), None))
    monkeypatch.setattr(ROOM, "software", lambda *modules: SOFTWARE)
    monkeypatch.setattr(nvml, "session", lambda: nullcontext((closed, None)))
    assert "NVLink lines: NVML refuses: no permission" in text(discover())
    monkeypatch.setattr(type(closed).NVMLError, "value", 3)  # not supported: a GPU without such lines
    assert nvml.forbidden(closed, "0") == ()


def test_lines_to_a_switch_and_lines_to_a_gpu() -> None:
    found = gpus.gpus(Driver(), Nvml())
    assert gpus.links(Nvml(), found)[0] == Link(0, None, "NVLink switch", "4", 18, 450e9)
    assert gpus.links(Nvml(switched=False), found) == (
        Link(0, 1, "NVLink", "4", 2, 50e9),
        Link(1, 0, "NVLink", "4", 2, 50e9),
    )
    assert gpus.links(None, found) == ()


@pytest.mark.parametrize(("capability", "rate"), [("8.0", 300e9), ("8.6", 168.75e9), ("10.0", 600e9), ("11.0", 0)])
def test_lines_of_a_generation_are_not_all_as_fast(capability: str, rate: float) -> None:
    """NVIDIA's white papers: 25 GB/s per line on an A100, 14.0625 on RTX 3090 and A6000, 50 on a B200."""
    found = tuple(replace(gpu, capability=capability) for gpu in gpus.gpus(Driver(), Nvml()))
    (link, *_) = gpus.links(Nvml(), found)
    assert link.rate * 12 / link.count == pytest.approx(rate)


def test_peers_are_checked_by_a_real_copy() -> None:
    driver = Driver(lossy=((1, 0),))
    there, back = gpus.peers(driver, Nvml(), gpus.gpus(driver, Nvml()))
    assert (there.source, there.target, there.arrives, there.nearest) == (0, 1, True, "NUMA node")
    assert (back.source, back.access, back.atomics, back.arrives) == (1, True, True, False)


def test_the_callers_context_is_current_after_the_check_of_peers() -> None:
    driver = Driver(lossy=((1, 0),))
    for context in (0, 7):
        driver.current = context
        gpus.peers(driver, Nvml(), gpus.gpus(driver, Nvml()))
        assert driver.current == context


def test_an_integrated_gpu_is_told_to_share_pinned_memory() -> None:
    assert gpus.gpus(Driver(integrated=True), None)[0].advice.startswith("pinned host memory")
    assert gpus.gpus(Driver(), None)[0].advice.startswith("device memory")


ROOM = sys.modules["peergrid.machine.discover"]


class Lost(Driver):
    """GPU 1 fell off the bus: the driver still counts it."""

    def cuDeviceTotalMem(self, device: int) -> tuple[int, int]:  # noqa: N802
        return (46 if device == 1 else 0), 141 << 30

    def cuGetErrorString(self, code: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, b"CUDA-capable device(s) is/are busy or unavailable"

    def cuGetErrorName(self, code: int) -> tuple[int, bytes]:  # noqa: N802
        return 0, b"CUDA_ERROR_DEVICE_UNAVAILABLE"


def test_a_gpu_that_disappeared_is_named_and_hides_no_other() -> None:
    found, lost = gpus.readable(Lost(3), Nvml())
    assert [gpu.index for gpu in found] == [0, 2]
    assert [item.what for item in lost] == ["GPU 1"]
    assert "unavailable (CUDA_ERROR_DEVICE_UNAVAILABLE)" in lost[0].why
    pairs = gpus.peers(Lost(3), Nvml(), found)
    assert [(peer.source, peer.target, peer.arrives) for peer in pairs] == [(0, 2, True), (2, 0, True)]


def test_the_description_comes_without_the_gpu_that_disappeared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ROOM, "find", lambda: (Lost(2), None))
    monkeypatch.setattr(ROOM, "software", lambda *modules: SOFTWARE)
    found = discover()
    assert [gpu.index for gpu in found.gpus] == [0]
    assert "GPU 1" in [item.what for item in found.missing]
    assert "GPU 1: The driver refused cuDeviceTotalMem" in text(found)


def test_peers_that_the_driver_cannot_tell_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mute(Lost):
        def cuDeviceTotalMem(self, device: int) -> tuple[int, int]:  # noqa: N802
            return 0, 141 << 30

        def cuDeviceCanAccessPeer(self, source: int, target: int) -> tuple[int, int]:  # noqa: N802
            return 46, 0

    monkeypatch.setattr(ROOM, "find", lambda: (Mute(2), None))
    monkeypatch.setattr(ROOM, "software", lambda *modules: SOFTWARE)
    found = discover()
    assert (len(found.gpus), found.peers) == (2, ())
    assert "peer access" in [item.what for item in found.missing]


def test_no_permission_for_nvml_is_one_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forbidden:
        NVMLError = RuntimeError

        @staticmethod
        def nvmlInit() -> None:  # noqa: N802
            raise RuntimeError("Insufficient Permissions")

    monkeypatch.setitem(sys.modules, "pynvml", Forbidden)
    with nvml.session() as (management, missing):
        assert management is None
        assert missing is not None
        assert missing.why == "it did not start: Insufficient Permissions"


def test_nvml_that_is_gone_in_the_end_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lost:
        NVMLError = RuntimeError

        @staticmethod
        def nvmlInit() -> None:  # noqa: N802
            pass

        @staticmethod
        def nvmlShutdown() -> None:  # noqa: N802
            raise RuntimeError("Uninitialized")

    monkeypatch.setitem(sys.modules, "pynvml", Lost)
    with nvml.session() as (management, missing):
        assert (management, missing) == (Lost, None)


def test_a_driver_error_is_one_sentence() -> None:
    class Broken(Driver):
        def cuDeviceGetCount(self) -> tuple[int, int]:  # noqa: N802
            return 999, 0

        def cuGetErrorString(self, code: int) -> tuple[int, bytes]:  # noqa: N802
            return 0, b"unknown error"

        def cuGetErrorName(self, code: int) -> tuple[int, bytes]:  # noqa: N802
            return 0, b"CUDA_ERROR_UNKNOWN"

    with pytest.raises(DeviceFault) as error:
        call(Broken(), "cuDeviceGetCount")
    assert str(error.value) == "The driver refused cuDeviceGetCount: unknown error (CUDA_ERROR_UNKNOWN)."


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (None, "the NVIDIA driver did not start: no device (CUDA_ERROR_NO_DEVICE)"),
        ("MIG-7", "the NVIDIA driver did not start: no device (CUDA_ERROR_NO_DEVICE); CUDA_VISIBLE_DEVICES='MIG-7' "
            "decides which GPUs there are"),
    ],
)  # fmt: skip
def test_hidden_gpus_name_what_hides_them(chosen: str | None, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = pytest.importorskip("cuda.bindings")
    hidden = SimpleNamespace(
        cuInit=lambda flags: (100,),
        cuGetErrorString=lambda code: (0, b"no device"),
        cuGetErrorName=lambda code: (0, b"CUDA_ERROR_NO_DEVICE"),
    )
    monkeypatch.setattr(bindings, "driver", hidden, raising=False)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if chosen is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", chosen)
    assert find() == (None, Missing("CUDA", why))


def test_no_driver_here_has_a_reason() -> None:
    driver, missing = find()
    assert (driver is None) == (missing is not None)


def test_pci_addresses_have_one_form() -> None:
    assert nvml.short_pci("00000000:18:00.0") == nvml.short_pci(b"0000:18:00.0") == "0000:18:00.0"
