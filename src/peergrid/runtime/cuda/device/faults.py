"""The meaning of the driver's error codes for a user: the kind of fault, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from peergrid.errors import DeviceFault, DoesNotFit, PeergridError

Kind = Literal[
    "bad request", "out of memory", "device lost", "launch failure", "peer", "not ready", "driver", "system", "unknown"
]


@dataclass(frozen=True)
class Fault:
    """The meaning of an error code; sticky: see `STICKY`."""

    name: str
    kind: Kind
    sticky: bool


ADVICE: dict[Kind, str] = {
    "bad request": "this is a fault of peergrid; please report it with this message",
    "out of memory": "use a smaller grid or more devices ('peergrid plan' says what fits)",
    "device lost": "look at 'nvidia-smi' and the kernel log, then choose other devices",
    "launch failure": "a kernel failed; please report it with this message, best with the output of compute-sanitizer",
    "peer": "use --devices whose GPUs reach each other ('peergrid machine' shows them), or the route 'host'",
    "not ready": "wait and try again",
    "driver": "update the NVIDIA driver: it must be as new as CUDA 13",
    "system": "the machine's services for GPUs refuse (fabric manager, MPS, permissions): see 'nvidia-smi' and its log",
    "unknown": "look it up in the CUDA driver API's list of errors",
}

NAMES: dict[Kind, str] = {
    "bad request": """
        INVALID_VALUE NOT_INITIALIZED DEINITIALIZED INVALID_DEVICE INVALID_IMAGE INVALID_CONTEXT
        CONTEXT_ALREADY_CURRENT MAP_FAILED UNMAP_FAILED NO_BINARY_FOR_GPU UNSUPPORTED_LIMIT
        CONTEXT_ALREADY_IN_USE INVALID_PTX INVALID_SOURCE FILE_NOT_FOUND INVALID_HANDLE ILLEGAL_STATE
        LOSSY_QUERY NOT_FOUND LAUNCH_OUT_OF_RESOURCES PRIMARY_CONTEXT_ACTIVE CONTEXT_IS_DESTROYED
        HOST_MEMORY_ALREADY_REGISTERED HOST_MEMORY_NOT_REGISTERED COOPERATIVE_LAUNCH_TOO_LARGE NOT_PERMITTED
        NOT_SUPPORTED STREAM_CAPTURE_UNSUPPORTED STREAM_CAPTURE_INVALIDATED STREAM_CAPTURE_MERGE
        STREAM_CAPTURE_UNMATCHED STREAM_CAPTURE_UNJOINED STREAM_CAPTURE_ISOLATION STREAM_CAPTURE_IMPLICIT
        CAPTURED_EVENT STREAM_CAPTURE_WRONG_THREAD GRAPH_EXEC_UPDATE_FAILURE INVALID_CLUSTER_SIZE
        FUNCTION_NOT_LOADED INVALID_RESOURCE_TYPE INVALID_RESOURCE_CONFIGURATION STREAM_DETACHED
    """,
    "out of memory": "OUT_OF_MEMORY",
    "device lost": """
        DEVICE_UNAVAILABLE NO_DEVICE DEVICE_NOT_LICENSED ECC_UNCORRECTABLE NVLINK_UNCORRECTABLE CONTAINED
        EXTERNAL_DEVICE
    """,
    "launch failure": """
        ILLEGAL_ADDRESS LAUNCH_TIMEOUT ASSERT HARDWARE_STACK_ERROR ILLEGAL_INSTRUCTION MISALIGNED_ADDRESS
        INVALID_ADDRESS_SPACE INVALID_PC LAUNCH_FAILED
    """,
    "peer": "PEER_ACCESS_UNSUPPORTED PEER_ACCESS_ALREADY_ENABLED PEER_ACCESS_NOT_ENABLED TOO_MANY_PEERS",
    "not ready": "NOT_READY MPS_SERVER_NOT_READY TIMEOUT FABRIC_NOT_READY",
    "driver": """
        STUB_LIBRARY CALL_REQUIRES_NEWER_DRIVER JIT_COMPILER_NOT_FOUND UNSUPPORTED_PTX_VERSION
        JIT_COMPILATION_DISABLED INSUFFICIENT_LOADER_VERSION SHARED_OBJECT_SYMBOL_NOT_FOUND
        SHARED_OBJECT_INIT_FAILED SYSTEM_DRIVER_MISMATCH COMPAT_NOT_SUPPORTED_ON_DEVICE
    """,
    "system": """
        OPERATING_SYSTEM SYSTEM_NOT_READY MPS_CONNECTION_FAILED MPS_RPC_FAILURE MPS_MAX_CLIENTS_REACHED
        MPS_MAX_CONNECTIONS_REACHED MPS_CLIENT_TERMINATED
    """,
    "unknown": "UNKNOWN",
}
"""The driver's errors of each kind, without `CUDA_ERROR_`."""

LOST = """
    ECC_UNCORRECTABLE NVLINK_UNCORRECTABLE CONTAINED ILLEGAL_ADDRESS LAUNCH_TIMEOUT CONTEXT_IS_DESTROYED ASSERT
    HARDWARE_STACK_ERROR ILLEGAL_INSTRUCTION MISALIGNED_ADDRESS INVALID_ADDRESS_SPACE INVALID_PC LAUNCH_FAILED
    MPS_CLIENT_TERMINATED UNKNOWN
"""
STICKY = frozenset(LOST.split())
"""Those with which the context is lost, so that this process can do no more CUDA work."""

KINDS: dict[str, Kind] = {name: kind for kind, names in NAMES.items() for name in names.split()}


def classify(code: int) -> Fault:
    """The fault that an error code stands for; what no kind names is 'unknown'."""
    try:
        from cuda.bindings.driver import CUresult

        name = str(CUresult(code).name)
    except (ImportError, ValueError):
        name = f"CUDA error {code}"
    short = name.removeprefix("CUDA_ERROR_")
    return Fault(name, KINDS.get(short, "unknown"), sticky=short in STICKY)


def error(code: int, doing: str) -> PeergridError:
    """The error to raise for a code; `doing` says what was being done ('Copy … in 0:main')."""
    fault = classify(code)
    after = " This process can do no more CUDA work: start it again." if fault.sticky else ""
    sentence = f"{doing} failed with {fault.name} ({fault.kind}): {ADVICE[fault.kind]}.{after}"
    return DoesNotFit(sentence) if fault.kind == "out of memory" else DeviceFault(sentence)
