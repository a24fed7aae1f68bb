"""Slurm's accounting: slurmdbd, with a database server of its own in the cluster's folder.

Where they are not installed, `sacct` reads Slurm's list of ended jobs instead.
"""

from __future__ import annotations

import contextlib
import getpass
import secrets
import shlex
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from apenet.base.errors import HostError
from apenet.slurm import programs

DAEMONS = ("slurmdbd", "mariadbd")
_PROGRAMS = (*DAEMONS, "mariadb-install-db", "sacctmgr")
_START_S = 60.0
_ANSWER_S = 15.0
_POLL_S = 0.1
_TEMPLATE = """\
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database_port}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
"""
_BEGIN = """\
DELETE FROM mysql.global_priv WHERE User = '';
FLUSH PRIVILEGES;
CREATE DATABASE slurm;
CREATE USER slurm@'127.0.0.1' IDENTIFIED BY '{password}';
GRANT ALL ON slurm.* TO slurm@'127.0.0.1';
"""
WITHOUT = "AccountingStorageType=accounting_storage/none\n"
"""The lines of slurm.conf where there is no accounting."""


def is_installed() -> bool:
    """Whether slurmdbd and MariaDB are."""
    return all(programs.found(program) for program in _PROGRAMS)


@dataclass(frozen=True)
class Accounting:
    """slurmdbd and its database server. `name`: that of the cluster; the ports are free ones of this host."""

    folder: Path
    name: str
    port: int
    database_port: int

    def write(self) -> str:
        """Writes the files of both, and returns the lines of slurm.conf."""
        password = secrets.token_hex(16)
        for name, template in (("slurmdbd.conf", _TEMPLATE), ("database.sql", _BEGIN)):
            file = self.folder / name
            file.touch(mode=0o600)
            text = template.format(
                host=programs.host_name(),
                port=self.port,
                database_port=self.database_port,
                user=getpass.getuser(),
                folder=self.folder,
                password=password,
            )
            file.write_text(text, encoding="utf-8")
        return (
            "AccountingStorageType=accounting_storage/slurmdbd\n"
            f"AccountingStorageHost=127.0.0.1\nAccountingStoragePort={self.port}\n"
            f"AccountingStoragePass={self.folder}/munge.socket\n"
        )

    def start(self, environment: Mapping[str, str]) -> None:
        """Starts both, and adds the cluster. munged must run. Raises HostError."""
        self._start_database(environment)
        programs.run("slurmdbd", environment=environment, log=self.folder / "slurmdbd.log")
        # slurmdbd listens a little later than it becomes a daemon.
        deadline = time.monotonic() + _START_S
        add = [programs.path("sacctmgr"), "--immediate", "--quiet", "add", "cluster", self.name]
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    add, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_ANSWER_S
                )
                if done.returncode == 0:
                    return
            if time.monotonic() > deadline:
                log = programs.tail(self.folder / "slurmdbd.log")
                raise HostError(f"Slurm: slurmdbd gives no answer:\n{log}")
            time.sleep(_POLL_S)

    def _start_database(self, environment: Mapping[str, str]) -> None:
        folder = self.folder
        log = folder / "database.log"
        common = ("--no-defaults", f"--datadir={folder}/database", f"--user={getpass.getuser()}")
        # Its root is this user, by the socket in the folder: others of the host reach the port.
        install = (
            *common,
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={getpass.getuser()}",
            "--skip-test-db",
        )
        programs.run("mariadb-install-db", *install, environment=environment, log=log)
        server = [
            programs.path("mariadbd"),
            *common,
            f"--socket={folder}/database.socket",
            "--bind-address=127.0.0.1",
            f"--port={self.database_port}",
            "--skip-name-resolve",
            f"--pid-file={folder}/database.pid",
            f"--log-error={log}",
            f"--init-file={folder}/database.sql",
            # What slurmdbd asks for; little memory, which is enough for a few thousand jobs.
            "--innodb-lock-wait-timeout=900",
            "--innodb-buffer-pool-size=32M",
        ]
        nobody = subprocess.DEVNULL
        running = subprocess.Popen(
            server, env=environment, stdin=nobody, stdout=nobody, stderr=nobody, start_new_session=True
        )
        deadline = time.monotonic() + _START_S
        while True:
            if running.poll() is not None or time.monotonic() > deadline:
                raise HostError(f"Slurm: mariadbd does not start: {programs.tail(log)}")
            with contextlib.suppress(OSError):
                if (folder / "database.pid").exists():
                    socket.create_connection(("127.0.0.1", self.database_port), timeout=1).close()
                    return
            time.sleep(_POLL_S)


def write_sacct(bin_folder: Path) -> None:
    """A sacct that reads the list of ended jobs, for a cluster without accounting."""
    script = bin_folder / "sacct"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(programs.path("sacct"))} --completion "$@"\n', encoding="utf-8")
    script.chmod(0o755)
