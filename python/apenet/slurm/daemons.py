"""Starts and ends Slurm's daemons for the nodes of a machine, all in one folder and as the user who calls.

The daemons and commands are Slurm's own, from release 22.05. They use the host's network and real time: only the ranks
of jobs run on simulated nodes (apenet.slurm.steps).
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from apenet.base.errors import HostError, InputError
from apenet.live.starting import require_shared, simulator_arguments, start_simulator
from apenet.machine import Machine
from apenet.slurm import accounting, programs
from apenet.slurm.topology import topology_conf, tree_of

FOLDER = "apenet-slurm"
"""Where a cluster lies, unless the user says otherwise."""
LEAST_RELEASE = (22, 5)
MOST_NODES = 1024
_MOST_SOCKET_PATH = 107
"""Bytes of the path of a socket, as of Linux (unix(7)): slurmd opens one for each step of a job."""
_PACKAGES = "Debian: slurm-wlm, slurm-wlm-basic-plugins, munge"
_PROGRAMS = ("slurmctld", "slurmd", "scontrol", "sinfo", "squeue", "scancel", "sacct", "munged")
_STEP = "slurmstepd"
_DAEMONS = ("slurmctld", "slurmd", _STEP, *accounting.DAEMONS, "munged")
_START_S = 300.0
_END_S = 15.0
_SHUTDOWN_S = 5.0
_POLL_S = 0.1
_CONFIGURATION = "slurm.conf"
# Real time matters little to jobs in virtual time: short delays, and no plugin that needs rights.
_TEMPLATE = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/pgid
TaskPlugin=task/none
TaskProlog={folder}/bin/task-prolog
SwitchType=switch/none
SelectType=select/linear
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0
SlurmdParameters=config_overrides
EnforcePartLimits=ALL
ReturnToService=2
KillWait=5
TreeWidth=65533
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/filetxt
JobCompLoc={folder}/jobs.txt
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
"""


@dataclass(frozen=True)
class Cluster:
    """A cluster in its folder; `nodes` are the names of the machine's nodes, by their numbers."""

    folder: Path
    machine: str
    nodes: tuple[str, ...]
    ranks_per_node: int
    machine_names: tuple[str, ...] = ("machine.toml",)
    shares_network: bool = False

    @property
    def configuration(self) -> Path:
        """slurm.conf, which SLURM_CONF names to Slurm's commands."""
        return self.folder / _CONFIGURATION

    @property
    def machine_file(self) -> Path:
        """The machine as it was when the cluster was started."""
        return self.folder / "machine.toml"

    def machine_files(self) -> dict[str, bytes]:
        """The machine file, and those that it names, by their names."""
        return {name: (self.folder / name).read_bytes() for name in self.machine_names}

    @property
    def variables(self) -> str:
        """What a shell executes to use the cluster."""
        return f"export SLURM_CONF={self.configuration}\nexport PATH={self.folder / 'bin'}:$PATH\n"

    def environment(self) -> dict[str, str]:
        """The environment of this process, for Slurm's commands."""
        return os.environ | {"SLURM_CONF": str(self.configuration)}


def opened(folder: Path) -> Cluster:
    """The cluster of a folder. Raises InputError if there is none."""
    try:
        state = json.loads((folder / programs.STATE).read_text(encoding="utf-8"))
        return Cluster(
            folder=Path(state["folder"]),
            machine=state["machine"],
            nodes=tuple(state["nodes"]),
            ranks_per_node=state["ranks_per_node"],
            machine_names=tuple(state["machine_names"]),
            shares_network=state.get("shares_network", False),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError("dir", folder, "the folder of a cluster that apenet cluster up has started") from error


def up(
    machine: Machine,
    folder: Path,
    ranks_per_node: int = 1,
    progress: Callable[[str], None] = lambda _: None,
    *,
    shares_network: bool = False,
) -> Cluster:
    """Starts a cluster, and returns when all of its nodes are idle. `shares_network`: its steps share the network.

    Raises InputError for a folder that exists and a machine without a number of nodes, HostError if Slurm is missing,
    too old, or does not start: then nothing is left.
    """
    machine.require_whole("a cluster")
    count = machine.node_count
    if count is None or count > MOST_NODES:
        raise InputError("machine", machine.label, f"a machine with a number of nodes, at most {MOST_NODES}")
    if not 1 <= ranks_per_node <= 1024:  # noqa: PLR2004
        raise InputError("ranks_per_node", ranks_per_node, "a whole number from 1 to 1024")
    if folder.exists() or folder.is_symlink():
        is_cluster = (folder / programs.STATE).exists()
        expected = f"no cluster there: end it by apenet cluster down --dir {folder}" if is_cluster else "a new folder"
        raise InputError("dir", folder, expected)
    if re.search(r"[\s,:=\"'#%\\]", str(folder.absolute())):
        raise InputError(
            "dir", folder, "a path without blanks and , : = quotes # % \\, which Slurm's files cannot have"
        )
    _require_slurm()
    description = machine.description()
    names = tuple(description.node_name(node) for node in range(count))
    longest = max(len(f"{folder.absolute()}/spool-{name}/{name}_{2**32 - 1}.{2**32 - 1}.0") for name in names)
    if longest > _MOST_SOCKET_PATH:
        most = len(str(folder.absolute())) - (longest - _MOST_SOCKET_PATH)
        raise InputError("dir", folder, f"a path of at most {most} characters: Slurm opens sockets in it")
    if shares_network:
        require_shared(machine, ranks_per_node)
    saved = tuple(machine.saved())
    cluster = Cluster(folder.absolute(), machine.name, names, ranks_per_node, saved, shares_network)
    try:
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise InputError("dir", folder, f"a folder that can be made ({error.strerror})") from error
    try:
        _start(cluster, _write(cluster, machine), progress)
    except BaseException:
        _end(cluster)
        raise
    return cluster


def down(folder: Path) -> None:
    """Cancels all jobs, ends the daemons and removes the folder. Raises InputError if it has no cluster."""
    _end(opened(folder))


def _require_slurm() -> None:
    for program in _PROGRAMS:
        if programs.found(program) is None:
            raise HostError(f"Slurm: {program} is not installed ({_PACKAGES})")
    said = subprocess.run([programs.path("slurmctld"), "-V"], capture_output=True, text=True, check=False).stdout
    release = re.search(r"([0-9]+)\.([0-9]+)", said)
    if release is None or (int(release[1]), int(release[2])) < LEAST_RELEASE:
        least = "{}.{:02}".format(*LEAST_RELEASE)
        raise HostError(f"Slurm: slurmctld -V says {said.strip() or 'nothing'}: expected release {least} or newer")


def _free_ports(count: int) -> list[int]:
    """Ports that nobody has now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


def _write(cluster: Cluster, machine: Machine) -> accounting.Accounting | None:
    """Writes all files. Returns the accounting, if the host has what it needs."""
    folder = cluster.folder
    port, dbd_port, database_port, *node_ports = _free_ports(len(cluster.nodes) + 3)
    name = re.sub("[^a-z0-9]", "", machine.name.lower())[:30] or "apenet"
    lines = [
        _TEMPLATE.format(
            name=name,
            host=programs.host_name(),
            port=port,
            user=getpass.getuser(),
            folder=folder,
        )
    ]
    host = programs.host_name()
    for node, port in zip(cluster.nodes, node_ports, strict=True):
        where = f"NodeHostname={host} NodeAddr=127.0.0.1 Port={port}"
        lines.append(f"NodeName={node} {where} CPUs={cluster.ranks_per_node} State=UNKNOWN\n")
    lines.append("PartitionName=whole Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n")
    for part in machine.partitions:
        names = ",".join(cluster.nodes[node] for node in part.nodes)
        lines.append(f"PartitionName={part.given} Nodes={names} MaxTime=INFINITE State=UP\n")
    if tree_of(machine):
        lines.append("TopologyPlugin=topology/tree\n")
        (folder / "topology.conf").write_text(topology_conf(machine), encoding="utf-8")
    (folder / "state").mkdir()
    (folder / "bin").mkdir()
    account = accounting.Accounting(folder, name, dbd_port, database_port) if accounting.is_installed() else None
    if account is None:
        accounting.write_sacct(folder / "bin")
    lines.append(accounting.WITHOUT if account is None else account.write())
    (folder / _CONFIGURATION).write_text("".join(lines), encoding="utf-8")
    for saved, content in machine.saved().items():
        (folder / saved).write_bytes(content)
    for node in cluster.nodes:
        (folder / f"spool-{node}").mkdir()
    key = folder / "munge.key"
    key.touch(mode=0o400)
    key.chmod(0o600)
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    for command in ("srun", "mpiexec", "mpirun"):
        _write_script(
            folder / "bin" / command,
            f'exec "{sys.executable}" -m apenet cluster step --dir "{folder}" {command} "$@"\n',
        )
    _write_script(folder / "bin" / "task-prolog", f'echo "export PATH={folder}/bin:$PATH"\n')
    (folder / "env.sh").write_text(cluster.variables, encoding="utf-8")
    # The folder as it stands in the daemons' arguments, by which they are found: another path may lead there, too.
    state = {
        "folder": str(folder),
        "machine": cluster.machine,
        "nodes": cluster.nodes,
        "ranks_per_node": cluster.ranks_per_node,
        "machine_names": cluster.machine_names,
        "shares_network": cluster.shares_network,
    }
    (folder / programs.STATE).write_text(json.dumps(state), encoding="utf-8")
    return account


def _write_script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}", encoding="utf-8")
    path.chmod(0o755)


def _start(cluster: Cluster, account: accounting.Accounting | None, progress: Callable[[str], None]) -> None:
    folder = cluster.folder
    if cluster.shares_network:
        progress("the network")
        start_simulator(folder)
    munge = ["--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key"]
    munge += [f"--{name}-file={folder}/munge.{name}" for name in ("pid", "log", "seed")]
    _run(cluster, "munged", *munge)
    if account is not None:
        progress("accounting")
        account.start(cluster.environment())
    _run(cluster, "slurmctld", "-c", "-f", str(cluster.configuration))
    for number, node in enumerate(cluster.nodes, 1):
        progress(f"slurmd {number} of {len(cluster.nodes)}")
        _run(cluster, "slurmd", "-f", str(cluster.configuration), "-N", node)
    progress("waiting for the nodes")
    deadline = time.monotonic() + _START_S
    while True:
        said = _asked(cluster, "sinfo", "-h", "-p", "whole", "-o", "%T %D")
        if said.split() == ["idle", str(len(cluster.nodes))]:
            return
        if time.monotonic() > deadline:
            log = programs.tail(_log(cluster))
            raise HostError(f"Slurm: the nodes are not idle after {_START_S:g} s, but: {said or 'unknown'}\n{log}")
        time.sleep(_POLL_S)


def _run(cluster: Cluster, program: str, *arguments: str) -> None:
    programs.run(program, *arguments, environment=cluster.environment(), log=_log(cluster))


def _asked(cluster: Cluster, program: str, *arguments: str) -> str:
    """What one of Slurm's commands prints; nothing if it fails, or gives no answer."""
    command = [programs.path(program), *arguments]
    try:
        done = subprocess.run(
            command, env=cluster.environment(), capture_output=True, text=True, check=False, timeout=_END_S
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout.strip()


def _log(cluster: Cluster) -> Path:
    return cluster.folder / "slurmctld.log"


def _end(cluster: Cluster) -> None:
    """Ends whatever there is of the cluster. Each process is asked first, and then killed."""
    if any(_daemons(cluster, ("slurmctld",))):
        _asked(cluster, "scancel", "--quiet", f"--user={getpass.getuser()}")
        _wait_until(lambda: not _asked(cluster, "squeue", "-h", "-o", "%A"), _END_S)
        _asked(cluster, "scontrol", "shutdown")
        _wait_until(lambda: not any(_daemons(cluster, ("slurmctld", "slurmd"))), _SHUTDOWN_S)
    _kill(lambda: _daemons(cluster, _DAEMONS))
    _kill(lambda: _of_jobs(cluster))
    _kill(lambda: _simulators(cluster))
    shutil.rmtree(cluster.folder, ignore_errors=True)


def _kill(processes: Callable[[], Iterable[int]]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)
        if _wait_until(lambda: not any(processes()), _SHUTDOWN_S):
            return


def _wait_until(holds: Callable[[], bool], patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True


def _daemons(cluster: Cluster, names: Sequence[str]) -> Iterator[int]:
    """Processes of these programs whose arguments or environment name the cluster: daemons, and the steps of jobs."""
    files = (str(cluster.configuration), f"--socket={cluster.folder}/munge.socket")
    for process, folder in _own_processes():
        arguments = _read(folder / "cmdline").split("\0")
        program = _STEP if _STEP in arguments[0] else Path(arguments[0]).name
        if program not in names:
            continue
        by_environment = program == _STEP or program in accounting.DAEMONS
        is_of_cluster = _uses(folder, cluster) if by_environment else any(file in arguments for file in files)
        if is_of_cluster:
            yield process


def _simulators(cluster: Cluster) -> Iterator[int]:
    for process, folder in _own_processes():
        if _read(folder / "cmdline").split("\0")[1:-1] == simulator_arguments(cluster.folder):
            yield process


def _of_jobs(cluster: Cluster) -> Iterator[int]:
    """Processes that jobs of the cluster have started; not this one, nor a shell that only uses the cluster."""
    for process, folder in _own_processes():
        is_job = any(one.startswith("SLURM_JOB_ID=") for one in _variables(folder))
        if is_job and process not in (os.getpid(), os.getppid()) and _uses(folder, cluster):
            yield process


def _uses(folder: Path, cluster: Cluster) -> bool:
    return f"SLURM_CONF={cluster.configuration}" in _variables(folder)


def _variables(folder: Path) -> list[str]:
    return _read(folder / "environ").split("\0")


def _own_processes() -> Iterator[tuple[int, Path]]:
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if folder.stat().st_uid == os.geteuid():
                    yield int(folder.name), folder


def _read(file: Path) -> str:
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""
