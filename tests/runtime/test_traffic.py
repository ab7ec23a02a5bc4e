"""Bytes over NVLink around a block of code, from counters that a pretended NVML has."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from made_up_gpus import Gpus, install

import peergrid
from peergrid import Moved, UsageError
from peergrid.runtime.devices import Devices
from peergrid.runtime.traffic import counted

KIB = 1024


class Counting(Gpus):
    """GPUs whose lines count in KiB; NVML's second GPU is CUDA's first."""

    NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX = 138, 139

    def __init__(self) -> None:
        super().__init__((700.0, 700.0))
        self.counts = [[1000, 2000], [3000, 4000]]

    def nvmlDeviceGetFieldValues(self, gpu: int, fields: Any) -> list[Any]:  # noqa: N802
        self._ask("lines")
        assert [field[0] for field in fields] == [138, 139]
        return [SimpleNamespace(nvmlReturn=0, value=SimpleNamespace(ullVal=count)) for count in self.counts[gpu]]


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Counting:
    made = Counting()
    install(monkeypatch, made)
    return made


def test_bytes_of_a_block_are_those_of_each_gpu(gpus: Counting) -> None:
    with peergrid.traffic(Devices("cuda", (0, 1, 0))) as found:
        gpus.counts[1][0] += 5
        gpus.counts[0][1] += 7
        assert not found.gpus
    assert found.gpus == {"cuda:0": Moved(5 * KIB, 0), "cuda:1": Moved(0, 7 * KIB)}


def test_counters_that_are_refused(gpus: Counting) -> None:
    gpus.refused = {"lines"}
    with counted(Devices("cuda", (0, 1))) as found:
        assert "NVML does not give the NVLink traffic counters" in found.missing
    assert not found.gpus
    with pytest.raises(UsageError, match="is expected to be counted, but NVML does not give"), \
            peergrid.traffic(Devices("cuda", (0,))):  # fmt: skip
        raise AssertionError("the block ran")


def test_counters_that_end_leave_out_their_gpu(gpus: Counting) -> None:
    with peergrid.traffic(Devices("cuda", (0,))) as found:
        gpus.refused = {"lines"}
    assert found.gpus == {}


def test_virtual_devices_have_no_links() -> None:
    with pytest.raises(UsageError, match="virtual devices have no such links"), peergrid.traffic("cpu:2"):
        raise AssertionError("the block ran")


def test_without_gpus_the_way_out_is_not_virtual_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("peergrid.runtime.traffic.gpu_count", lambda: 0)
    with pytest.raises(UsageError, match="but no CUDA device was found here; see 'peergrid machine'"), \
            peergrid.traffic("cuda:0,1"):  # fmt: skip
        raise AssertionError("the block ran")
