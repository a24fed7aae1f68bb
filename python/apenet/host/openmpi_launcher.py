"""Open MPI's own launcher, which its library needs as process manager.

Which MPI a rank uses is known for certain when it calls MPI_Init: scripts and interpreters load their library late. So
every rank starts with the simulator as its process manager (PMI-1), which Open MPI does not speak. Its MPI_Init asks
the simulator for the launcher (src/runtime/shim/mpi_world.cpp), which then starts a process for each rank that only
passes on the variables that the launcher gave it. The rank takes them over, and is that process for the launcher.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from apenet import _core
from apenet.base.calls import memory_file
from apenet.base.errors import HostError, LimitError
from apenet.host.mpi_library import find_launcher
from apenet.host.supervisor import Planned, Supervisor
from apenet.host.toolchain import LAUNCHER_NAMES, SOCKETS, search_path

# Variables of ranks that the launcher must not have: it loads no library of theirs.
_RANK_ONLY = ("LD_PRELOAD", "APENET_LIFELINE", "APENET_MAPPING", "APENET_RECORD")

# Only the matching layer over libfabric.
_PARAMETERS = {
    "OMPI_MCA_pml": "cm",
    "OMPI_MCA_mtl": "ofi",
    "OMPI_MCA_btl": "self,ofi",
    "OMPI_MCA_osc": "^ucx",
    # A thread that finds the library's lock taken yields, outside of all locks: the order of threads sees it.
    "OMPI_MCA_mpi_yield_when_idle": "1",
    # Ranks ask for the others' addresses in MPI_Init: later, threads of a rank would wait for the launcher in the host.
    "OMPI_MCA_mpi_add_procs_cutoff": "1000000",
    # Ranks of releases before Open MPI 5 keep the launcher's addresses: not those of the host's networks.
    "OMPI_MCA_oob_tcp_if_include": "lo",
    # The launcher's names depend on nothing of the host.
    "LD_PRELOAD": str(LAUNCHER_NAMES),
}

_TRANSFERS = "OMPI_MCA_btl"

# The folder of its files, which remain if the launcher is killed: of Open MPI 5, of its releases before, and of PMIx.
_FOLDERS = ("PRTE_MCA_prte_tmpdir_base", "OMPI_MCA_orte_tmpdir_base", "TMPDIR")

# Stays, because the launcher ends when its processes have ended, but not longer than this process. Arguments: a pipe
# that it never writes, and one for each rank.
_PROCESS = """
end=$1
shift "$((OMPI_COMM_WORLD_RANK + 1))"
cat /proc/self/environ >"$1"
printf 'APENET_END=1\\0' >"$1"
read -r nothing <"$end"
"""

# The launcher says so of a rank that has gone while it connected. The run tells why: the rank has failed, or the run
# has ended it because another one did, and then the host decides how far it had come.
_GONE = re.compile(rb"^\[[^\]\n]*\] PMIX ERROR: .* in file \S*/ptl_base_connection_hdlr\.c at line \d+\n", re.MULTILINE)


class OpenMpiLauncher:
    """Starts the launcher when a rank asks for it."""

    def __init__(self, program: Path, ranks: int, stack: ExitStack) -> None:
        """Call before ranks start. The launcher's processes and pipes live as long as the stack."""
        self.environment: Mapping[str, str] = {}
        """The environment of the ranks."""
        self._program = program
        self._ranks = ranks
        self._stack = stack
        self._begin_ns = time.time_ns()
        self._said = -1
        self._supervisor: Supervisor | None = None
        self._write_ends: list[int] = []

    def start(self, library: str) -> _core.LateLauncher:
        """Starts the launcher of the installation to which this library belongs."""
        folders = [self._program.parent, *map(Path, search_path().split(os.pathsep))]
        environment = {name: value for name, value in self.environment.items() if name not in _RANK_ONLY} | _PARAMETERS
        if str(SOCKETS) in self.environment.get("LD_PRELOAD", "").split():
            environment |= _over_tcp(self.environment.get(_TRANSFERS, ""))
        try:
            launcher = find_launcher(Path(library), folders, self._begin_ns)
            read_ends = self._open_pipes()
            command = [str(launcher), "--oversubscribe", "--bind-to", "none", "-n", str(self._ranks)]
            if os.geteuid() == 0:
                command.append("--allow-run-as-root")
            ends = [self._open_lifeline(), *self._write_ends]
            command += ["/bin/sh", "-c", _PROCESS, "sh", *map(_core.descriptor_path, ends)]
            self._said = memory_file("apenet-launcher")
            self._stack.callback(os.close, self._said)
            nothing = os.open(os.devnull, os.O_RDONLY)
            self._stack.callback(os.close, nothing)
            planned = Planned((nothing, self._said, self._said))
            self._supervisor = Supervisor(launcher, command, environment, [planned], _FOLDERS)
            self._stack.callback(self._supervisor.end)
            self._supervisor.start()
        except (HostError, LimitError, OSError) as error:
            return _core.LateLauncher(refused=" ".join(str(error).split()))
        return _core.LateLauncher(
            self._supervisor.process_ids[0], pipes=[_core.descriptor_path(end) for end in read_ends]
        )

    def _open_pipes(self) -> list[int]:
        read_ends = []
        for _ in range(self._ranks):
            read_end, write_end = os.pipe()
            self._stack.callback(os.close, read_end)
            self._write_ends.append(write_end)
            read_ends.append(read_end)
        self._stack.callback(self._close_write_ends)
        return read_ends

    def _open_lifeline(self) -> int:
        """A pipe whose end a reader sees once this process has closed it, or has ended."""
        read_end, write_end = os.pipe()
        for end in (read_end, write_end):
            self._stack.callback(os.close, end)
        return read_end

    def _close_write_ends(self) -> None:
        for write_end in self._write_ends:
            os.close(write_end)
        self._write_ends = []

    def check(self) -> None:
        """Closes the pipes if the launcher has ended, so that no rank waits for it."""
        if self._supervisor is not None and self._write_ends and self._supervisor.has_lost_one():
            self._close_write_ends()

    def words(self) -> bytes:
        """The launcher's output: errors in MPI, or why it could not start."""
        return (
            b"" if self._said < 0 else without_lost_connections(os.pread(self._said, os.fstat(self._said).st_size, 0))
        )


def _over_tcp(transfers: str) -> dict[str, str]:
    """The parameters of ranks whose user asks for MPI over the sockets of the simulated nodes (`btl tcp`)."""
    asks = not transfers.startswith("^") and "tcp" in transfers.split(",")  # ^ excludes all that follow
    return {_TRANSFERS: transfers, "OMPI_MCA_pml": "ob1"} if asks else {}


def without_lost_connections(words: bytes) -> bytes:
    """The launcher's output without what it says of ranks that have gone while they connected."""
    return _GONE.sub(b"", words)
