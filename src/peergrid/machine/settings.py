"""The environment variables of CUDA, MPI, UCX and NCCL that matter, with the meaning and the cost of each.

The table is data. Meanings follow the public documentation of UCX (its wiki "UCX environment parameters"),
Open MPI, ParaStation MPI, MPICH, MVAPICH2, NCCL and the CUDA programming guide.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from peergrid.machine.model import Setting


@dataclass(frozen=True, slots=True)
class Knob:
    """A known setting; `cost` applies to values that match the pattern `costly` (in upper or lower case)."""

    name: str
    meaning: str
    costly: str = ""
    cost: str = ""


NO = "^(0|n|no|off|false|disable|disabled)$"
YES = "^(1|y|yes|on|true|enable|enabled)$"

KNOBS: tuple[Knob, ...] = (
    Knob(
        "CUDA_VISIBLE_DEVICES",
        "only these GPUs exist for this process, numbered in this order",
        "MIG-",
        "a slice of one GPU: a part of its processors and memory, and no peers",
    ),
    Knob("CUDA_DEVICE_ORDER", "how GPUs are numbered: FASTEST_FIRST or PCI_BUS_ID (as NVML numbers them)"),
    Knob(
        "CUDA_LAUNCH_BLOCKING",
        "every launch waits for its kernel",
        YES,
        "no overlap at all: every step pays the whole latency of a launch",
    ),
    Knob(
        "CUDA_DEVICE_MAX_CONNECTIONS",
        "number of hardware queues that streams share (8 when unset, at most 32)",
        "^[1-4]$",
        "independent streams wait for each other in the same queue",
    ),
    Knob(
        "CUDA_MODULE_LOADING",
        "LAZY loads a kernel at its first launch, EAGER all at the start",
        "^lazy$",
        "the first launch of a kernel may wait for running kernels; warm up before timing",
    ),
    Knob("CUDA_CACHE_DISABLE", "compiled PTX is not kept on disk", YES, "every start compiles its kernels again"),
    Knob("CUDA_MEMCHECK", "the memory checker watches every access", YES, "kernels run many times more slowly"),
    Knob(
        "UCX_TLS",
        "the transports UCX may use; cuda stands for cuda_copy, cuda_ipc and gdr_copy",
        r"^(?!\^)(?!.*(cuda_ipc|\bcuda\b|\ball\b)).+$",
        "without cuda_ipc, GPUs of one machine exchange through host memory; without any cuda transport, "
        "GPU buffers cannot be sent at all",
    ),
    Knob(
        "UCX_NET_DEVICES",
        "the network adapters UCX may use",
        r"^[^,]+$",
        "with one adapter named, GPUs on the other side of the host cross the link between the CPUs",
    ),
    Knob(
        "UCX_IB_GPU_DIRECT_RDMA",
        "whether the network adapter reads and writes GPU memory itself",
        NO,
        "every message between nodes is staged through host memory (4.3 µs became 24.6 µs for one byte in "
        "the Jülich tutorial)",
    ),
    Knob(
        "UCX_RNDV_SCHEME",
        "how large messages go: get_zcopy (the receiver reads), put_zcopy (the sender writes) or auto",
    ),
    Knob(
        "UCX_RNDV_THRESH",
        "from how many bytes on a message waits for its receiver",
        r"^(inf|\d{7,}|\d+[mg]b?)$",
        "large messages are copied through bounce buffers instead of going straight to their place",
    ),
    Knob(
        "UCX_MEMTYPE_CACHE",
        "whether UCX remembers which pointers belong to a GPU",
        NO,
        "each call asks the driver what its pointer is: some tenths of a microsecond more per message; needed "
        "where the CUDA runtime is linked statically",
    ),
    Knob(
        "UCX_LOG_LEVEL",
        "how much UCX writes to its log",
        "^(debug|trace|data|func|poll)",
        "writing the log dominates small messages",
    ),
    Knob("UCX_LOG_FILE", "the file that UCX writes its log to; %h and %p in it stand for host and process"),
    Knob("UCX_CUDA_COPY_DMABUF", "use dma-buf to hand GPU memory to the adapter", NO, "falls back to a module"),
    Knob(
        "PSP_CUDA",
        "ParaStation MPI accepts GPU pointers",
        NO,
        "GPU buffers must be staged by hand through host memory",
    ),
    Knob(
        "PSP_CUDA_ENFORCE_STAGING",
        "ParaStation MPI copies GPU buffers through the host",
        YES,
        "no GPUDirect of any kind: latency of a copy to the host and one back is added to every message",
    ),
    Knob("OMPI_MCA_pml", "the point-to-point layer of Open MPI", "^ob1$", "leaves UCX, and with it GPUDirect"),
    Knob("OMPI_MCA_btl", "the byte transfer layers of Open MPI"),
    Knob(
        "OMPI_MCA_opal_cuda_support",
        "Open MPI accepts GPU pointers",
        NO,
        "GPU buffers must be staged by hand through host memory",
    ),
    Knob("MPICH_GPU_SUPPORT_ENABLED", "Cray MPICH accepts GPU pointers", NO, "GPU buffers must be staged by hand"),
    Knob("MPIR_CVAR_ENABLE_GPU", "MPICH accepts GPU pointers", NO, "GPU buffers must be staged by hand"),
    Knob("MV2_USE_CUDA", "MVAPICH2 accepts GPU pointers", NO, "GPU buffers must be staged by hand"),
    Knob(
        "NCCL_P2P_DISABLE",
        "NCCL does not use peer access",
        YES,
        "GPUs of one machine exchange through host memory",
    ),
    Knob(
        "NCCL_P2P_LEVEL",
        "how far apart two GPUs may be to use peer access",
        "^(LOC|NVL|PIX|0|1)$",
        "pairs further apart go through host memory",
    ),
    Knob("NCCL_SHM_DISABLE", "NCCL does not use shared memory", YES, "processes of one node use the network"),
    Knob("NCCL_IB_DISABLE", "NCCL does not use InfiniBand or RoCE", YES, "between nodes only sockets remain"),
    Knob("NCCL_NVLS_ENABLE", "NCCL may reduce inside the NVLink switch", NO, "all-reduce is a ring or a tree"),
    Knob("NCCL_DEBUG", "how much NCCL writes to its log", "^trace$", "writing the log dominates small messages"),
    Knob("NVSHMEM_DISABLE_CUDA_VMM", "NVSHMEM's heap has a fixed size", YES, "the heap cannot grow"),
    Knob(
        "OMP_NUM_THREADS",
        "threads of OpenMP regions",
        "^1$",
        "host-side work runs on one core; a thread per GPU needs at least as many as GPUs",
    ),
    Knob(
        "OMP_PROC_BIND",
        "whether OpenMP threads stay where they start",
        "^(false)$",
        "threads may wander away from the memory and the GPU they serve",
    ),
    Knob("NUMBA_NUM_THREADS", "threads of Numba's parallel loops"),
)


def in_force(environment: Mapping[str, str], knobs: tuple[Knob, ...] = KNOBS) -> tuple[Setting, ...]:
    """The known settings that `environment` holds, each with its meaning and its cost."""
    return tuple(_setting(knob, environment[knob.name]) for knob in knobs if knob.name in environment)


def _setting(knob: Knob, value: str) -> Setting:
    costs = bool(knob.costly) and re.search(knob.costly, value.strip(), re.IGNORECASE) is not None
    return Setting(knob.name, value, knob.meaning, knob.cost if costs else "")
