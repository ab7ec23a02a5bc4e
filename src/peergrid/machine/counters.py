"""NVML's counters of the bytes that GPUs sent and received."""

from __future__ import annotations

from typing import Any

from peergrid.machine import nvml

ALL_LINES = 0xFFFFFFFF
KIB = 1024
REFUSED = "NVML does not give the NVLink traffic counters of these GPUs (support or permission)"


def nvlink_bytes(management: Any, handle: Any) -> tuple[int, int] | None:
    """Payload bytes that all NVLink lines of a GPU sent and received since the driver started; None if refused."""
    fields = (
        (management.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, ALL_LINES),
        (management.NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, ALL_LINES),
    )
    values = nvml.attempt(management, None, "nvmlDeviceGetFieldValues", handle, fields)
    if values is None or any(value.nvmlReturn for value in values):
        return None
    return int(values[0].value.ullVal) * KIB, int(values[1].value.ullVal) * KIB


def pcie_bytes(management: Any, handle: Any) -> tuple[int, int] | None:
    """Bytes that a GPU sent and received over PCIe, packet headers included, modulo 2^32; None if refused."""
    fields = [getattr(management, f"NVML_FI_DEV_PCIE_COUNT_{way}_BYTES", None) for way in ("TX", "RX")]
    if None in fields:
        return None
    values = nvml.attempt(management, None, "nvmlDeviceGetFieldValues", handle, fields)
    if values is None or any(value.nvmlReturn for value in values):
        return None
    return int(values[0].value.ullVal), int(values[1].value.ullVal)
