"""Test programs of libfabric: of two ranks with one command line, one is the server and one its client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePath

SERVER_ADDRESS = "127.0.0.1"
"""Of every rank, for sockets; for the provider it names rank 0. Not localhost, which may be an address of IPv6."""

_ALONE = frozenset(("fi_info", "fi_strerror", "fi_mon_sampler"))
_SHELL = Path("/bin/sh")
_SCRIPT = f"""
if [ "$APENET_RANK" != 0 ]; then set -- "$@" {SERVER_ADDRESS}; export APENET_CLIENT=1; fi
exec "$0" "$@"
"""


def is_client_server(program: str | PurePath, ranks: int) -> bool:
    """Whether two ranks of this program find each other only if one of them is told the other's address.

    So by their names: fi_pingpong, and the programs of libfabric's fabtests.
    """
    name = PurePath(program).name
    return ranks == 2 and name.startswith("fi_") and name not in _ALONE  # noqa: PLR2004


def as_client_and_server(program: Path, command: Sequence[str]) -> tuple[Path, tuple[str, ...]]:
    """What both ranks run: the program, and for rank 1 the address of rank 0 behind its arguments."""
    return _SHELL, (_SHELL.name, "-c", _SCRIPT, str(program), *command[1:])


def note(program: str) -> str:
    """What the user is told of it."""
    name = PurePath(program).name
    return f"{name}: rank 0 is the server; rank 1 is its client, with {SERVER_ADDRESS} behind its arguments"
