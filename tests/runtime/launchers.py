"""MPIs that start ranks in tests, on this machine or on two hosts that stand for others."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SSH = """#!/bin/bash
# what a launcher calls in place of ssh: a host is a network namespace
while [[ $1 == -* ]]; do case $1 in -l|-p|-o) shift 2;; *) shift;; esac; done
host=$1; shift
space={name}$((${{host##*.}} - 1))
exec ip netns exec $space unshare --uts /bin/bash -c "hostname $space; $*"
"""


@dataclass(frozen=True)
class Hosts:
    """Two network namespaces of this machine, joined by a virtual wire; ssh: the program that stands for it."""

    spaces: tuple[str, str]
    ssh: Path


@dataclass(frozen=True)
class Mpi:
    """An MPI whose wheel is installed in a folder."""

    name: str
    folder: Path

    @property
    def there(self) -> bool:
        return (self.folder / "bin" / "mpiexec").exists()

    def command(self, ranks: int, hosts: Hosts | None = None, first: int = 0) -> list[str]:
        """The launcher of so many ranks; first: those of the first of two hosts (0: half of them, or one more)."""
        line, half = [str(self.folder / "bin" / "mpiexec")], first or -(-ranks // 2)
        if self.name == "openmpi":
            line += ["--bind-to", "none", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"]
        if hosts is not None:
            line = ["ip", "netns", "exec", hosts.spaces[0], *line]
            line += self._over_tcp(hosts.ssh, (half, ranks - half))
        return [*line, "-n", str(ranks)]

    def _over_tcp(self, ssh: Path, shares: tuple[int, int]) -> list[str]:
        if self.name == "openmpi":
            wire = ["--prtemca", "plm_ssh_agent", str(ssh), "--prtemca", "prte_if_include", "net0"]
            wire += ["--mca", "pml", "ob1", "--mca", "btl", "tcp,sm,self", "--mca", "btl_tcp_if_include", "net0"]
            return [*wire, "--host", f"10.77.0.1:{shares[0]},10.77.0.2:{shares[1]}"]
        wire = ["-launcher", "ssh", "-launcher-exec", str(ssh), "-hosts", "10.77.0.1,10.77.0.2", "-iface", "net0"]
        wire += ["-localhost", "10.77.0.1", "-ppn", str(shares[0])]
        return [*wire, "-genv", "UCX_TLS", "tcp,self", "-genv", "UCX_NET_DEVICES", "net0"]

    def environment(self) -> dict[str, str]:
        """The variables of ranks: where modules of tests lie, and this MPI's library."""
        library = min((self.folder / "lib").glob("libmpi.so.*"))
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (HERE.parents[1] / "src", HERE))),
            "OPENBLAS_NUM_THREADS": "1",
            "MPI4PY_LIBMPI": str(library),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        }


MPICH = Mpi("mpich", Path(sys.executable).parents[1])
OPENMPI = Mpi("openmpi", Path(sys.prefix) / "openmpi")


@contextmanager
def veth(spaces: tuple[str, str]) -> Iterator[None]:
    """A virtual wire without delay between two namespaces: `net0` in each."""
    _ip("link", "add", "net0", "netns", spaces[0], "type", "veth", "peer", "name", "net0", "netns", spaces[1])
    yield


@contextmanager
def two_hosts(wire: Callable[[tuple[str, str]], AbstractContextManager[None]] = veth) -> Iterator[Hosts | None]:
    """Two hosts; None, and the reason on standard output, where they cannot be made: no root, no `ip`.

    wire: what puts `net0` into both.
    """
    name = f"peergrid{os.getpid()}-"
    spaces = (f"{name}0", f"{name}1")
    with ExitStack() as made:
        try:
            folder = made.enter_context(tempfile.TemporaryDirectory())
            for space in spaces:
                _ip("netns", "add", space)
                made.callback(subprocess.run, ["ip", "netns", "del", space], check=False, capture_output=True)
                _ip("-n", space, "link", "set", "lo", "up")
            made.enter_context(wire(spaces))
            for number, space in enumerate(spaces):
                _ip("-n", space, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "net0")
                _ip("-n", space, "link", "set", "net0", "up")
            _await_up(spaces)
            ssh = Path(folder) / "ssh"
            ssh.write_text(SSH.format(name=name))
            ssh.chmod(ssh.stat().st_mode | stat.S_IXUSR)
            found = Hosts(spaces, ssh)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"no network namespaces: {error}", flush=True)
            found = None
        yield found


def _await_up(spaces: tuple[str, str]) -> None:
    """Wait until both ends of the wire carry: ranks that start before do not see it."""
    until = time.monotonic() + 5
    while not all("LOWER_UP" in _ip("-n", space, "link", "show", "net0") for space in spaces):
        if time.monotonic() > until:
            raise OSError("the wire between two namespaces does not come up")
        time.sleep(0.01)
    time.sleep(0.05)


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True, timeout=30).stdout
