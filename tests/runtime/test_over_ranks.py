"""Runs over several processes: the bits of one, every strategy, and faults that leave nobody behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
from executions import expected
from hypothesis import given, settings
from hypothesis import strategies as st
from launchers import MPICH, OPENMPI, Hosts, Mpi, two_hosts
from runtime_problems import PROBLEMS

from peergrid import Options, Simulation
from peergrid.errors import DeviceFault, UsageError
from peergrid.grid import Array
from peergrid.grid.partition import Partition
from peergrid.runtime.cpu.executor import ThreadedExecutor
from peergrid.runtime.devices import parse_devices
from peergrid.runtime.mail import LocalMail, Mail
from peergrid.runtime.ranks import launcher
from peergrid.runtime.ranks.lead import LeadingExecutor, follow
from peergrid.runtime.ranks.ranks import Ranks, devices_of_all, take_names, waiting_time
from peergrid.runtime.ranks.settings import settings as settings_in_force
from peergrid.runtime.ranks.survey import RankFacts, survey, warnings_of
from peergrid.runtime.reference import ReferenceKernel
from peergrid.runtime.trace.recorder import Entry, Log, Position
from peergrid.runtime.trace.replay import check_trace
from peergrid.schedule import build, layout
from peergrid.schedule.ops import Send
from peergrid.schedule.passes.ranks import over_ranks
from peergrid.schedule.strategies import STRATEGIES, StrategyName

APP = Path(__file__).with_name("ranks_app.py")
ROOT = Path(__file__).resolve().parents[2]
MPIEXEC = Path(sys.executable).with_name("mpiexec")
STEPS = 11
LATE = ("deciding", "stepping", "leading", "ending", "leaving")
SOCKETS = "NCCL is set to use sockets (NCCL_NET=Socket), which are slow between hosts with a faster network."
PATHS = os.pathsep.join((str(ROOT / "src"), str(ROOT / "tests" / "runtime")))
INTERRUPTED = """
[grid]
size = [0.1, 0.08]
spacing = 0.001
steps = 6000
[[source]]
kind = "line"
position = [0.05, 0.04]
waveform = { kind = "ricker", frequency = 1e10 }
[output]
pictures = false
"""
mpi = pytest.mark.skipif(not MPIEXEC.exists(), reason="no MPI beside this Python: pip install mpi4py mpich")


def command(ranks: int, *arguments: str) -> list[str]:
    return [str(MPIEXEC), "-n", str(ranks), sys.executable, str(APP), *arguments]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": PATHS, "OPENBLAS_NUM_THREADS": "1"}


def mpiexec(ranks: int, *arguments: str, seconds: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(ranks, *arguments), capture_output=True, text=True, timeout=seconds, env=environment(), check=False
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_messages_within_a_process_bring_the_bits_of_one_device(strategy: StrategyName, data: st.DataObject) -> None:
    """The same executor, all ranks in one process: what it notes is held by the checker of recorded runs."""
    name = data.draw(st.sampled_from(sorted(PROBLEMS)))
    devices = data.draw(st.integers(2, min(5, PROBLEMS[name]().grid.shape[0] // 4)))
    ranks = tuple(data.draw(st.lists(st.integers(0, 2), min_size=devices, max_size=devices)))
    check_messages(name, Options(strategy, data.draw(st.integers(1, 3))), ranks)


def test_a_message_may_be_received_before_its_send_ends() -> None:
    """The system may stop a sending thread just after the message has left."""
    log, late = Log(), 0

    class Slow(LocalMail):
        def sent(self, op: Send, values: Array, position: Position) -> bool:
            nonlocal late
            left = super().sent(op, values, position)
            ends = time.monotonic() + 0.1
            while left and time.monotonic() < ends:
                if any(isinstance(entry, Entry) and entry.saw == position for entry in tuple(log.entries)):
                    late += 1
                    break
                time.sleep(1e-4)
            return left

    check_messages("radius_four", Options("overlap"), (0, 1, 0), log, Slow())
    assert late


def check_messages(
    name: str, options: Options, ranks: tuple[int, ...], log: Log | None = None, mail: Mail | None = None
) -> None:
    """A device for each entry of `ranks`, in one process: the bits of one device, and a trace without faults."""
    problem, log = PROBLEMS[name](), log or Log()
    plan = layout(problem, Partition.over(problem.grid, len(ranks)), options)
    executor = ThreadedExecutor(plan, STEPS, ReferenceKernel(problem), 20, log, mail=mail)
    for field, described in problem.fields.items():
        executor.load(field, described.global_array(), 0)
    schedule = over_ranks(build(plan, options, STEPS), ranks)
    executor.execute(schedule, 1, 0)
    fields = {field: executor.gather(field, schedule.final).tobytes() for field in problem.state}
    assert (fields, executor.traces().tobytes()) == expected(name)
    assert check_trace(plan, log) == ()
    executor.close()


@pytest.fixture(scope="module")
def alone() -> dict[str, list[str]]:
    """What one device of one process leaves of each problem."""
    require(MPICH)
    line = [sys.executable, str(APP), "matrix", '[["serial", 1]]']
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=environment(), check=True)
    found: dict[str, list[str]] = json.loads(done.stdout)[0][0]
    return found


@pytest.fixture(scope="module")
def hosts() -> Iterator[Hosts]:
    with two_hosts() as found:
        if found is None:
            pytest.skip("two network namespaces cannot be made: they ask for root and for `ip`")
        yield found


def check(mpi: Mpi, ranks: int, cases: list[tuple[str, int]], alone: dict[str, list[str]], hosts: Hosts | None) -> None:
    """benchmarks/ranks_matrix.py carries out all strategies and depths over all ranks."""
    line = [sys.executable, str(APP), "matrix", json.dumps(cases), "2"]
    done = subprocess.run(
        [*mpi.command(ranks, hosts), *line],
        capture_output=True, text=True, timeout=120, env=mpi.environment(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = next(text for text in done.stdout.splitlines() if text.startswith("["))
    assert json.loads(told) == [[alone] * ranks]


@pytest.mark.parametrize(("mpi", "ranks", "depth"), [(MPICH, 3, 1), (OPENMPI, 2, 4)], ids=("mpich-3", "openmpi-2"))
def test_any_ranks_leave_the_bits_of_one_process(mpi: Mpi, ranks: int, depth: int, alone: dict[str, list[str]]) -> None:
    check(require(mpi), ranks, [(strategy, depth) for strategy in list(STRATEGIES)[depth % 2 :: 2]], alone, None)


@pytest.mark.namespaces
@pytest.mark.parametrize("mpi", [MPICH, OPENMPI], ids=("mpich", "openmpi"))
def test_ranks_of_two_hosts_leave_the_bits_of_one_process(mpi: Mpi, alone: dict[str, list[str]], hosts: Hosts) -> None:
    check(require(mpi), 2, [("overlap", 2), ("persistent", 8)], alone, hosts)


def require(mpi: Mpi) -> Mpi:
    """The MPI; the test is skipped where it is not installed."""
    if not mpi.there:
        pytest.skip(f"no {mpi.name} in {mpi.folder}: 'make test' installs it")
    return mpi


@mpi
def test_ranks_make_and_write_their_own_parts_of_fields(tmp_path: Path) -> None:
    one, three = (mpiexec(ranks, "by_boxes", json.dumps(str(tmp_path / f"{ranks}.h5"))) for ranks in (1, 3))
    assert one.returncode == three.returncode == 0, three.stderr
    (digest, _), (same, largest) = json.loads(one.stdout), json.loads(three.stdout)
    assert digest == same
    assert largest < 0.3  # of the grid: what a device of six has, and its ghost cells
    with h5py.File(tmp_path / "1.h5") as whole, h5py.File(tmp_path / "3.h5") as shown:
        assert whole["u"][...].tobytes() == shown["u"][...].tobytes()
        assert shown.attrs["step"] == STEPS
    assert {path.name for path in tmp_path.iterdir()} == {"1.h5", "1.0.h5", "3.h5", "3.0.h5", "3.1.h5", "3.2.h5"}


@mpi
def test_norms_and_reductions_do_not_depend_on_ranks() -> None:
    one, three = mpiexec(1, "norms"), mpiexec(3, "norms")
    assert one.returncode == three.returncode == 0, three.stderr
    assert one.stdout == three.stdout
    for digits, count in zip(json.loads(one.stdout), (STEPS, STEPS // 2, STEPS), strict=True):
        values = np.frombuffer(bytes.fromhex(digits))
        assert np.isfinite(values).all()
        assert len(values) == count


DIFFERENT = {
    "problem": "but the problem of rank 1 differs from that of rank 0",
    "values": "but the problem of rank 1 differs from that of rank 0",
    "steps": "but a count of steps or an option of rank 1 differs",
    "kernel": "but the kernel of rank 1 differs",
    "calls": "but a count of steps of rank 1 differs",
    "kinds": "No CUDA device was found here",
}


@mpi
@pytest.mark.parametrize("what", DIFFERENT)
def test_ranks_that_do_not_run_the_same_are_refused_once_in_one_sentence(what: str) -> None:
    done = mpiexec(2, "different", json.dumps(what), seconds=60)
    assert done.returncode == 2
    assert done.stderr.count(DIFFERENT[what]) == 1, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("comm", ["world", 4, SimpleNamespace(size=True)])
def test_what_is_no_communicator_is_refused(comm: object) -> None:
    with pytest.raises(UsageError, match=r"comm takes an MPI communicator, such as mpi4py\.MPI\.COMM_WORLD, got "):
        Simulation(next(iter(PROBLEMS.values()))(), 1, devices="cpu:1", comm=comm)


def test_errors_end_all_ranks_after_any_number_of_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    told, ended = list[type[BaseException]](), list[int]()
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: told.append(kind))
    monkeypatch.setattr(launcher, "_abort", lambda comm, code: ended.append(code))
    for _ in range(2 * sys.getrecursionlimit()):
        launcher.abort_on_error(SimpleNamespace(rank=0))
    sys.excepthook(ValueError, ValueError("planted"), None)
    assert (told, ended) == ([ValueError], [1])


@mpi
def test_an_error_that_all_ranks_have_is_told_once(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[grid]\nsize = [1.0]\n")
    line = [str(MPIEXEC), "-n", "2", sys.executable, "-m", "peergrid", "run", str(tmp_path / "bad.toml")]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=environment(), check=False)
    assert done.returncode == 2
    assert done.stderr.count("grid.size") == 1


@mpi
def test_an_exception_in_one_rank_ends_all() -> None:
    done = mpiexec(3, "broken", seconds=60)
    assert done.returncode
    assert "planted" in done.stderr


@mpi
@pytest.mark.parametrize("fault", ["killed", "hung", *LATE])
def test_a_rank_that_is_gone_or_silent_leaves_nobody_behind(fault: str) -> None:
    line = command(3, "late", json.dumps(fault)) if fault in LATE else command(3, fault)
    started = subprocess.Popen(
        line,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(),
    )  # fmt: skip
    try:
        out, said = started.communicate(timeout=60)
    finally:
        started.kill()
    reasons = {"hung": r"'Receive 'u' "} | dict.fromkeys(LATE, "another rank does not come")
    if fault in reasons:
        assert re.search(rf"rank [02] on .*: Nothing moved for [12] s: {reasons[fault]}", said), said
        assert started.returncode == 5
    pids = [int(text) for text in re.findall(r"begun (\d+)", out)]
    assert started.returncode
    assert len(pids) == 3
    until = time.monotonic() + 5
    while any(alive(pids)) and time.monotonic() < until:
        time.sleep(0.05)
    assert not list(alive(pids))


class Nobody:
    """A communicator of two ranks of which the other never comes."""

    size = 2

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __getattr__(self, name: str) -> Callable[..., Any]:
        assert name.startswith("I"), f"{name} waits without a limit"
        waiting = SimpleNamespace(Test=lambda: False)
        return lambda *buffers, **root: (self, waiting) if name == "Idup" else waiting


@mpi
@pytest.mark.parametrize("rank", [0, 1])
@pytest.mark.parametrize(
    "call",
    [
        lambda ranks: ranks.allgather(1),
        lambda ranks: ranks.decided(lambda: 1),
        lambda ranks: ranks.another(),
        lambda ranks: ranks.gathered(),
        lambda ranks: ranks.same("the version", 1),
        lambda ranks: launcher.own_devices("auto", ranks.comm),
        lambda ranks: devices_of_all(ranks.comm, parse_devices("cpu:1")),
        lambda ranks: survey(ranks.comm),
        lambda ranks: Simulation(next(iter(PROBLEMS.values()))(), 1, devices="cpu:1", comm=ranks.comm),
        lambda ranks: follow(SimpleNamespace(), ranks) if ranks.comm.rank else LeadingExecutor(
            SimpleNamespace(layout=None), ranks
        ).traces(),
    ],
)  # fmt: skip
def test_nothing_waits_for_other_ranks_without_a_limit(
    call: Callable[[Ranks], object], rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEERGRID_RANK_TIMEOUT", "0.01")
    with pytest.raises(DeviceFault, match=r"Nothing moved for 0\.01 s: another rank does not come"):
        call(Ranks(Nobody(rank)))


@mpi
def test_rank_0_says_now_and_then_that_it_is_still_there() -> None:
    heard = threading.Semaphore(0)

    def hear(buffer: np.ndarray) -> SimpleNamespace:
        heard.release()
        return SimpleNamespace(Test=lambda: True)

    comm = SimpleNamespace(rank=0, Ibcast=hear, Ibarrier=lambda: SimpleNamespace(Test=lambda: True))
    leading = LeadingExecutor(SimpleNamespace(layout=None, close=lambda: None), Ranks(comm, timeout=0.1))
    assert all(heard.acquire(timeout=20) for _ in range(6))  # nobody calls it meanwhile
    leading.close()


def test_a_library_that_waits_for_other_ranks_is_watched() -> None:
    program = """
import time
from peergrid.runtime.ranks.launcher import watched
from peergrid.runtime.ranks.ranks import Ranks
class Alone:
    rank = 0
    def Abort(self, code):
        import os
        os._exit(code)
with watched(Ranks(Alone(), timeout=5.0), "What is quick"):
    pass
with watched(Ranks(Alone(), timeout=0.1), "The start of NCCL"):
    time.sleep(30)
"""
    line = [sys.executable, "-c", program]
    done = subprocess.run(line, env=environment(), capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 5
    assert re.search(r"^rank 0 on \S+: The start of NCCL did not end within 0\.1 s: see which", done.stderr)


@pytest.mark.parametrize("told", ["", "0", "-1", "soon", "nan"])
def test_the_time_that_ranks_wait_is_a_number_above_zero(told: str) -> None:
    assert waiting_time({}) == 300
    assert waiting_time({"PEERGRID_RANK_TIMEOUT": "2.5"}) == 2.5
    with pytest.raises(UsageError, match=f"PEERGRID_RANK_TIMEOUT takes seconds, a number above 0, got '{told}'"):
        waiting_time({"PEERGRID_RANK_TIMEOUT": told})


def alive(pids: list[int]) -> Iterator[int]:
    for pid in pids:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            continue
        yield pid


def test_memory_that_ranks_share_is_gone_with_the_last_of_them() -> None:
    with NamedTemporaryFile(prefix="mpich_shm_", dir="/dev/shm", delete=False) as file:
        file.write(b"shared")
        file.flush()
        with mmap(file.fileno(), 6) as mapped:
            take_names()
            assert not Path(file.name).exists()
            assert mapped.read() == b"shared"


def test_a_rank_that_its_launcher_cannot_end_ends_by_itself() -> None:
    """As where the wire between them is cut: MPI waits within its call, and nothing of Python goes on."""
    program = """
import ctypes
from peergrid.runtime.ranks import launcher
class Silent:
    def Abort(self, code): ctypes.PyDLL(None).sleep(30)
launcher._abort(Silent(), 5)
"""
    done = subprocess.run([sys.executable, "-c", program], env=environment(), timeout=20, check=False)
    assert done.returncode == -signal.SIGALRM


@mpi
def test_a_model_over_ranks_leaves_the_results_of_one_process(tmp_path: Path) -> None:
    model = str(ROOT / "examples" / "gpr.toml")
    given = [sys.executable, "-m", "peergrid", "run", model, "--json", "--steps", "40", "--devices", "cpu:1"]
    digests = []
    for line in ([*given, "--no-write"], [str(MPIEXEC), "-n", "2", *given, "-o", str(tmp_path)]):
        done = subprocess.run(line, capture_output=True, text=True, timeout=200, env=environment(), check=False)
        assert done.returncode == 0, done.stderr
        digests.append(json.loads(done.stdout)["sha256"])
    assert digests[0] == digests[1]
    assert (tmp_path / "results.h5").exists()


@mpi
def test_ranks_that_are_interrupted_go_on_as_another_number_of_them(tmp_path: Path) -> None:
    model, folder = tmp_path / "model.toml", tmp_path / "out"
    model.write_text(INTERRUPTED)
    given = [sys.executable, "-m", "peergrid", "run", str(model), "--json", "--devices", "cpu:1", "-o"]
    whole = subprocess.run(
        [*given, str(tmp_path / "whole")], capture_output=True, text=True, timeout=100, env=environment(), check=True
    )
    process = subprocess.Popen(
        [str(MPIEXEC), "-n", "2", *given, str(folder), "--checkpoint", "20steps"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    )  # fmt: skip
    deadline = time.monotonic() + 100
    while not list((folder / "checkpoints").glob("step-*.h5")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=100)
    assert process.returncode == 0  # as one process that ends at a pause
    again = subprocess.run(
        [str(MPIEXEC), "-n", "3", *given, str(folder), "--resume"],
        capture_output=True, text=True, timeout=100, env=environment(), check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stderr
    found = json.loads(again.stdout)
    assert found["resumed_from"] > 0
    assert found["sha256"] == json.loads(whole.stdout)["sha256"]


@mpi
def test_a_launcher_of_another_mpi_is_refused(tmp_path: Path) -> None:
    given = [sys.executable, "-m", "peergrid", "run", str(ROOT / "examples" / "gpr.toml"), "--no-write"]
    foreign = {**environment(), "OMPI_COMM_WORLD_SIZE": "3"}
    done = subprocess.run(given, capture_output=True, text=True, timeout=60, env=foreign, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert "The launcher started 3 processes, but the MPI library joins 1" in done.stderr
    assert "Abort" not in done.stderr  # there is nobody to end
    asked = "import ranks_app; ranks_app.different('')"
    done = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, timeout=60, env=foreign, check=False
    )
    assert "The launcher started 3 processes, but the MPI library joins 1" in done.stderr


@mpi
def test_the_machine_describes_ranks_and_messages_are_timed() -> None:
    asked = (["machine"], ["machine", "--json"], ["probe", "mpi", "--json"])
    done = mpiexec(2, "commands", json.dumps(asked))
    assert done.returncode == 0, done.stderr
    words, facts, times = json.loads(done.stdout)
    assert "ranks 0 and 1, on one host: messages by MPI" in words
    ranks = json.loads(facts)["ranks"]
    assert ranks["mpi"] in words
    assert [rank["devices"].split(":")[0] for rank in ranks["ranks"]] == ["cpu", "cpu"]
    found = json.loads(times)
    assert [one["bytes"] for one in found["exchanges"]][:3] == [8, 1024, 4096]
    assert all(one["bare"] > 0 and one["messages"] > 0 for one in found["exchanges"])


def test_ranks_on_few_processors_and_slow_networks_are_warned_of() -> None:
    rank = RankFacts("a", 1, (0,), "cpu:1", (), "is not there", {"NCCL_NET": "Socket"})
    assert list(warnings_of([rank])) == [SOCKETS]
    shared, sockets = warnings_of([rank, rank])
    assert shared.startswith("Ranks 0, 1 on a share 1 processor: ")
    assert sockets == SOCKETS
    free, other = replace(rank, settings={}, gpus=("x",)), replace(rank, settings={}, processors=(1,), gpus=("y",))
    assert not list(warnings_of([free, other]))
    (fallen,) = warnings_of([free, replace(other, host="b", adapters=("mlx5_0",))])
    assert fallen.startswith(
        "NCCL falls back to sockets: /sys/class/infiniband shows no InfiniBand or RoCE adapter on a;"
    )
    adapters = [replace(free, adapters=("mlx5_0",)), replace(other, host="b", adapters=("mlx5_0",))]
    assert not list(warnings_of(adapters))
    (asked,) = warnings_of([replace(adapters[0], settings={"NCCL_IB_DISABLE": "1 (of /etc/nccl.conf)"}), adapters[1]])
    assert asked.startswith("NCCL is set to use sockets (NCCL_IB_DISABLE=1)")


def test_settings_of_files_hold_where_no_variable_does(tmp_path: Path) -> None:
    home, tool = tmp_path / "home", tmp_path / "bin" / "ucx_info"
    for path, text in (
        (home / "ucx.conf", "UCX_TLS=tcp # slow\nUCX_NET_DEVICES = eth0\n"),
        (home / ".openmpi" / "mca-params.conf", "# pml = ob1\npml = ucx\n"),
        (tmp_path / "etc" / "nccl.conf", "NCCL_NET=Socket\n"),
        (tool, "#!/bin/sh\necho '# a list'\necho UCX_RNDV_THRESH=${UCX_RNDV_THRESH:-auto}\necho UCX_LOG_LEVEL=warn\n"),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    tool.chmod(0o755)
    given = {"HOME": str(home), "UCX_TLS": "rc", "PATH": f"{tool.parent}:/bin", "UCX_RNDV_THRESH": "8k", "OTHER": "x"}
    assert settings_in_force(given, tmp_path) == {
        "UCX_RNDV_THRESH": "8k",
        "UCX_TLS": "rc",
        "UCX_NET_DEVICES": f"eth0 (of {home}/ucx.conf)",
        "OMPI_MCA_pml": f"ucx (of {home}/.openmpi/mca-params.conf)",
        "NCCL_NET": f"Socket (of {tmp_path}/etc/nccl.conf)",
    }
    tool.write_text("#!/bin/sh\n[ $HOME = /nowhere ] || echo UCX_PROTO_ENABLE=n\n")
    assert settings_in_force(given, tmp_path)["UCX_PROTO_ENABLE"] == "n (by ucx_info)"


def test_processes_are_counted_as_launchers_say() -> None:
    assert launcher.launched({}) == 1
    assert launcher.launched({"PMI_SIZE": "4"}) == 4
    assert launcher.launched({"OMPI_COMM_WORLD_SIZE": "3"}) == 3
    assert launcher.launched({"SLURM_STEP_NUM_TASKS": "x"}) == 1
