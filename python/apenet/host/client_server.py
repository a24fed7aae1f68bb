"""Test programs of libfabric: rank 0 is started as the server and rank 1 as its client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

SERVER_ADDRESS = "127.0.0.1"
"""The address of every rank for sockets; the provider takes it for rank 0. localhost could be an IPv6 address."""

_ALONE = frozenset(("fi_info", "fi_strerror", "fi_mon_sampler"))
_SHELL = Path("/bin/sh")
_SCRIPT = f"""
if [ "$APENET_RANK" != 0 ]; then set -- "$@" {SERVER_ADDRESS}; export APENET_CLIENT=1; fi
exec "$0" "$@"
"""


def is_client_server(program: str | PurePath, ranks: int) -> bool:
    """Whether this program, with two ranks, is a server and a client that needs the server's address.

    The name decides: fi_pingpong, and the programs of libfabric's fabtests.
    """
    name = PurePath(program).name
    return ranks == 2 and name.startswith("fi_") and name not in _ALONE  # noqa: PLR2004


def as_client_and_server(program: Path, command: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """The command of both ranks: the program, for rank 1 with the address of rank 0 as last argument."""
    return _SHELL, (_SHELL.name, "-c", _SCRIPT, str(program), *command[1:])


def note(program: str) -> str:
    """The message that tells the user about it."""
    name = PurePath(program).name
    return f"{name}: rank 0 is the server; rank 1 is its client, with {SERVER_ADDRESS} appended to its arguments"
