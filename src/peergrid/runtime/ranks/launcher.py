"""The processes that a launcher (mpiexec, srun) started: how many there are, and what joins them."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType

from peergrid.arguments import brief
from peergrid.errors import DeviceFault, PeergridError, UsageError, extra
from peergrid.runtime.devices import Devices, cores, devices_of
from peergrid.runtime.ranks.gpus import host, share
from peergrid.runtime.ranks.ranks import WAIT, Communicator, Ranks, take_names

SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS")
"""The variables in which launchers (of MPICH and Intel MPI, of Open MPI, of Slurm) give the number of processes."""

RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
"""The variables in which they give the number of each."""

INTERRUPTED = 130  # what shells expect of a program that Ctrl-C ended
CUT_OFF = 2  # seconds in which a launcher ends a rank that asks for it; then the rank ends by itself
HEARD = 1.0  # seconds between two words of ranks that work apart
LAST_WORDS = 0.2  # seconds in which a launcher takes what a process has written before it ends


def launched(environment: Mapping[str, str] = os.environ) -> int:
    """The processes that a launcher started, this one among them; 1 without a launcher."""
    found = (environment.get(name, "") for name in SIZES)
    return max((int(text) for text in found if text.isascii() and text.isdigit()), default=1)


def world() -> Communicator | None:
    """The communicator of all processes that a launcher started; None for one alone, which needs no MPI.

    Raises UsageError where there is none that joins them.
    """
    size = launched()
    if size < 2:
        return None
    try:
        from mpi4py import MPI
    except ImportError:
        raise UsageError(
            f"A launcher started {size} processes, but mpi4py, which joins them, is not installed: "
            f"{extra('mpi')}, or start one process."
        ) from None
    except RuntimeError as error:
        raise UsageError(
            f"A launcher started {size} processes, but no MPI library was found ({error}): install the launcher's own, "
            "such as 'pip install mpich' for its mpiexec."
        ) from None
    found: Communicator = MPI.COMM_WORLD
    _require_joined(found.size, size)
    return found


def joins(comm: Communicator | None) -> bool:
    """True where several ranks work on one grid. Raises UsageError for what is no communicator, and for that of all
    processes where it does not join those of the launcher: each would do the whole work by itself.
    """
    if comm is None:
        return False
    try:
        size, rank = comm.size, comm.rank
    except Exception:  # of anything, or of MPI, for a communicator that is none
        size, rank = 0, 0
    if type(size) is not int or not 0 <= rank < size:
        raise UsageError(f"comm takes an MPI communicator, such as mpi4py.MPI.COMM_WORLD, got {brief(comm)}.")
    loaded = sys.modules.get("mpi4py.MPI")
    if loaded is not None and comm == loaded.COMM_WORLD:
        _require_joined(size, launched())
    return size > 1


def _require_joined(joined: int, started: int) -> None:
    """Raise UsageError where a launcher started more processes than the MPI library joins."""
    if joined < started:
        take_names()  # a launcher may end this process while another one reports it
        raise UsageError(
            f"The launcher started {started} processes, but the MPI library joins {joined}: they are of different "
            "MPIs; use the launcher that came with the library (of Slurm: srun --mpi=pmi2 for MPICH, --mpi=pmix for "
            "Open MPI), or choose the library with MPI4PY_LIBMPI."
        )


def require_alone(command: str) -> None:
    """Raise UsageError where a launcher started several processes for what one does."""
    size = launched()
    if size > 1:
        raise UsageError(
            f"'{command}' is the work of one process, but a launcher started {size}; "
            "only 'run' shares a grid among them, and 'machine' describes them."
        )


def own_devices(asked: str | Devices, comm: Communicator) -> Devices:
    """The devices of this rank; 'auto': its share of its host's GPUs, or processors; 'cuda': of the GPUs.

    All ranks call it, whatever they ask for, and may ask for different ones.
    """
    hosts = Ranks(comm).allgather(host())
    found = devices_of(asked)
    if asked not in ("auto", "cuda"):
        return found
    here = [rank for rank, name in enumerate(hosts) if name == hosts[comm.rank]]
    if found.kind == "cuda":
        return found if found.count == 1 else share(found.count, here.index(comm.rank), len(here))
    return Devices("cpu", tuple(range(max(1, cores() // len(here)))))


def abort_on_error(comm: Communicator) -> None:
    """From now on an error that nobody catches ends all processes: they would wait for this one for ever."""
    before = sys.excepthook
    sys.excepthook = EndingAll(comm, before.usual if isinstance(before, EndingAll) else before)


@dataclass(frozen=True)
class EndingAll:
    """The hook of errors that nobody catches: it reports the error and ends all processes; usual: the hook before."""

    comm: Communicator
    usual: Callable[[type[BaseException], BaseException, TracebackType | None], object]

    def __call__(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if isinstance(error, PeergridError):
            let_first_report()
            _report(self.comm, error)
            _abort(self.comm, error.exit_code)
        else:
            self.usual(kind, error, trace)
            _abort(self.comm, INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1)


@contextmanager
def apart(ranks: Ranks | None) -> Iterator[None]:
    """A block that takes each rank its own time and calls no MPI; all leave it together. None: there is one rank alone.

    Meanwhile ranks hear of each other: where one is silent, the others end all, with a sentence.
    """
    if ranks is None:
        yield
        return
    ended = threading.Event()

    def hear() -> None:
        try:
            while not all(ranks.allgather(ended.wait(min(HEARD, ranks.timeout / 2)))):
                pass
        except DeviceFault as error:
            _report(ranks.comm, error)
            _abort(ranks.comm, error.exit_code)

    hearing = threading.Thread(target=hear, name="other ranks", daemon=True)
    hearing.start()
    yield  # after an error nobody waits for the thread: the process ends, and all others with it
    ended.set()
    hearing.join()


@contextmanager
def watched(ranks: Ranks, awaited: str) -> Iterator[None]:
    """End all, with a sentence, where what is inside, a library that waits for other ranks, takes too long."""

    def give_up() -> None:
        _report(
            ranks.comm,
            f"{awaited} did not end within {ranks.timeout:g} s: see which process hangs, or has ended, and start "
            f"again, with a larger {WAIT} if it is slow.",
        )
        _abort(ranks.comm, DeviceFault.exit_code)

    timer = threading.Timer(ranks.timeout, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def let_first_report(environment: Mapping[str, str] = os.environ) -> None:
    """Before the report of an error that all processes may have: rank 0 reports it, and ends the others meanwhile."""
    if launched(environment) > 1 and any(environment.get(name, "0") != "0" for name in RANKS):
        time.sleep(2 * LAST_WORDS)


def end_all(code: int) -> None:
    """End all processes that a launcher started, if they are joined; else nothing."""
    loaded = sys.modules.get("mpi4py.MPI")
    if loaded is not None and loaded.COMM_WORLD.size > 1:
        _abort(loaded.COMM_WORLD, code)


def _report(comm: Communicator, sentence: object) -> None:
    print(f"rank {comm.rank} on {socket.gethostname()}: {sentence}", file=sys.stderr)


def _abort(comm: Communicator, code: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(LAST_WORDS)  # launchers drop what they have not read when they end all
    signal.alarm(CUT_OFF)  # a rank whose launcher is out of reach would wait in MPI for ever
    take_names()
    comm.Abort(code)
