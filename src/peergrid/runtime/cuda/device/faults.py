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
    """sticky: the context is lost with it, so that this process can do no more CUDA work."""

    name: str
    kind: Kind
    sticky: bool = False


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

FAULTS: dict[int, Fault] = {
    1: Fault("CUDA_ERROR_INVALID_VALUE", "bad request"),
    2: Fault("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
    3: Fault("CUDA_ERROR_NOT_INITIALIZED", "bad request"),
    4: Fault("CUDA_ERROR_DEINITIALIZED", "bad request"),
    34: Fault("CUDA_ERROR_STUB_LIBRARY", "driver"),
    36: Fault("CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "driver"),
    46: Fault("CUDA_ERROR_DEVICE_UNAVAILABLE", "device lost"),
    100: Fault("CUDA_ERROR_NO_DEVICE", "device lost"),
    101: Fault("CUDA_ERROR_INVALID_DEVICE", "bad request"),
    102: Fault("CUDA_ERROR_DEVICE_NOT_LICENSED", "device lost"),
    200: Fault("CUDA_ERROR_INVALID_IMAGE", "bad request"),
    201: Fault("CUDA_ERROR_INVALID_CONTEXT", "bad request"),
    202: Fault("CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "bad request"),
    205: Fault("CUDA_ERROR_MAP_FAILED", "bad request"),
    206: Fault("CUDA_ERROR_UNMAP_FAILED", "bad request"),
    209: Fault("CUDA_ERROR_NO_BINARY_FOR_GPU", "bad request"),
    214: Fault("CUDA_ERROR_ECC_UNCORRECTABLE", "device lost", sticky=True),
    215: Fault("CUDA_ERROR_UNSUPPORTED_LIMIT", "bad request"),
    216: Fault("CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "bad request"),
    217: Fault("CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "peer"),
    218: Fault("CUDA_ERROR_INVALID_PTX", "bad request"),
    220: Fault("CUDA_ERROR_NVLINK_UNCORRECTABLE", "device lost", sticky=True),
    221: Fault("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "driver"),
    222: Fault("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "driver"),
    223: Fault("CUDA_ERROR_JIT_COMPILATION_DISABLED", "driver"),
    226: Fault("CUDA_ERROR_CONTAINED", "device lost", sticky=True),
    227: Fault("CUDA_ERROR_INSUFFICIENT_LOADER_VERSION", "driver"),
    300: Fault("CUDA_ERROR_INVALID_SOURCE", "bad request"),
    301: Fault("CUDA_ERROR_FILE_NOT_FOUND", "bad request"),
    302: Fault("CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "driver"),
    303: Fault("CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "driver"),
    304: Fault("CUDA_ERROR_OPERATING_SYSTEM", "system"),
    400: Fault("CUDA_ERROR_INVALID_HANDLE", "bad request"),
    401: Fault("CUDA_ERROR_ILLEGAL_STATE", "bad request"),
    402: Fault("CUDA_ERROR_LOSSY_QUERY", "bad request"),
    500: Fault("CUDA_ERROR_NOT_FOUND", "bad request"),
    600: Fault("CUDA_ERROR_NOT_READY", "not ready"),
    700: Fault("CUDA_ERROR_ILLEGAL_ADDRESS", "launch failure", sticky=True),
    701: Fault("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "bad request"),
    702: Fault("CUDA_ERROR_LAUNCH_TIMEOUT", "launch failure", sticky=True),
    704: Fault("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer"),
    705: Fault("CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer"),
    708: Fault("CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "bad request"),
    709: Fault("CUDA_ERROR_CONTEXT_IS_DESTROYED", "bad request", sticky=True),
    710: Fault("CUDA_ERROR_ASSERT", "launch failure", sticky=True),
    711: Fault("CUDA_ERROR_TOO_MANY_PEERS", "peer"),
    712: Fault("CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "bad request"),
    713: Fault("CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "bad request"),
    714: Fault("CUDA_ERROR_HARDWARE_STACK_ERROR", "launch failure", sticky=True),
    715: Fault("CUDA_ERROR_ILLEGAL_INSTRUCTION", "launch failure", sticky=True),
    716: Fault("CUDA_ERROR_MISALIGNED_ADDRESS", "launch failure", sticky=True),
    717: Fault("CUDA_ERROR_INVALID_ADDRESS_SPACE", "launch failure", sticky=True),
    718: Fault("CUDA_ERROR_INVALID_PC", "launch failure", sticky=True),
    719: Fault("CUDA_ERROR_LAUNCH_FAILED", "launch failure", sticky=True),
    720: Fault("CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "bad request"),
    800: Fault("CUDA_ERROR_NOT_PERMITTED", "bad request"),
    801: Fault("CUDA_ERROR_NOT_SUPPORTED", "bad request"),
    802: Fault("CUDA_ERROR_SYSTEM_NOT_READY", "system"),
    803: Fault("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "driver"),
    804: Fault("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "driver"),
    805: Fault("CUDA_ERROR_MPS_CONNECTION_FAILED", "system"),
    806: Fault("CUDA_ERROR_MPS_RPC_FAILURE", "system"),
    807: Fault("CUDA_ERROR_MPS_SERVER_NOT_READY", "not ready"),
    808: Fault("CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "system"),
    809: Fault("CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "system"),
    810: Fault("CUDA_ERROR_MPS_CLIENT_TERMINATED", "system", sticky=True),
    900: Fault("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "bad request"),
    901: Fault("CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "bad request"),
    902: Fault("CUDA_ERROR_STREAM_CAPTURE_MERGE", "bad request"),
    903: Fault("CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "bad request"),
    904: Fault("CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "bad request"),
    905: Fault("CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "bad request"),
    906: Fault("CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "bad request"),
    907: Fault("CUDA_ERROR_CAPTURED_EVENT", "bad request"),
    908: Fault("CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "bad request"),
    909: Fault("CUDA_ERROR_TIMEOUT", "not ready"),
    910: Fault("CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "bad request"),
    911: Fault("CUDA_ERROR_EXTERNAL_DEVICE", "device lost"),
    912: Fault("CUDA_ERROR_INVALID_CLUSTER_SIZE", "bad request"),
    913: Fault("CUDA_ERROR_FUNCTION_NOT_LOADED", "bad request"),
    914: Fault("CUDA_ERROR_INVALID_RESOURCE_TYPE", "bad request"),
    915: Fault("CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "bad request"),
    917: Fault("CUDA_ERROR_STREAM_DETACHED", "bad request"),
    919: Fault("CUDA_ERROR_FABRIC_NOT_READY", "not ready"),
    999: Fault("CUDA_ERROR_UNKNOWN", "unknown", sticky=True),
}
NOT_READY = 600


def classify(code: int) -> Fault:
    """The name of an error code; codes that the table does not know are 'unknown'."""
    return FAULTS.get(code, Fault(f"CUDA error {code}", "unknown"))


def error(code: int, doing: str) -> PeergridError:
    """The error to raise for a code; `doing` says what was being done ('Copy … in 0:main')."""
    fault = classify(code)
    after = " This process can do no more CUDA work: start it again." if fault.sticky else ""
    sentence = f"{doing} failed with {fault.name} ({fault.kind}): {ADVICE[fault.kind]}.{after}"
    return DoesNotFit(sentence) if fault.kind == "out of memory" else DeviceFault(sentence)
