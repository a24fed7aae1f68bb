"""What a step and the simulator tell each other, over a Unix socket: JSON objects, some with descriptors."""

from __future__ import annotations

import array
import errno
import json
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from apenet.base.errors import HostError, InputError

SOCKET = "network.socket"
"""Its name in the folder of the simulator."""
MOST_DESCRIPTORS = 240
"""The most of a message; Linux allows 253 (unix(7))."""
_MOST_BYTES = 160 * 1024
_MOST_PATH = 107

Message = dict[str, Any]


class ClosedError(Exception):
    """The other side has ended."""


class Channel:
    """One end of a conversation. A message is either there as a whole, or not at all."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    def fileno(self) -> int:
        """The descriptor of the socket, to wait for messages."""
        return self._end.fileno()

    def close(self) -> None:
        """Ends the conversation."""
        self._end.close()

    def tell(self, message: Message, descriptors: Sequence[int] = ()) -> None:
        """Sends a message. Raises ClosedError, and InputError for one that is too long."""
        content = json.dumps(message).encode()
        if len(content) > _MOST_BYTES:
            raise InputError("command and environment", f"{len(content)} bytes", f"at most {_MOST_BYTES} bytes")
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
        try:
            self._end.sendmsg([content], rights, socket.MSG_NOSIGNAL)
        except OSError as error:
            raise ClosedError from error

    def hear(self) -> tuple[Message, list[int]]:
        """The next message, and descriptors that the caller closes.

        Raises ClosedError, HostError if this process has too many open files for them, and ValueError for no message.
        """
        descriptors = array.array("i")
        space = socket.CMSG_SPACE(MOST_DESCRIPTORS * descriptors.itemsize)
        try:
            content, ancillary, flags, _ = self._end.recvmsg(_MOST_BYTES, space, socket.MSG_CMSG_CLOEXEC)
        except OSError as error:
            raise ClosedError from error
        for _, _, data in ancillary:  # rights: the socket has asked for nothing else
            descriptors.frombytes(data[: len(data) // descriptors.itemsize * descriptors.itemsize])
        try:
            if flags & socket.MSG_CTRUNC:
                raise HostError("shared network: the simulator has as many open files as `ulimit -Hn` allows")
            if not content:
                raise ClosedError
            return json.loads(content), list(descriptors)
        except BaseException:
            for descriptor in descriptors:
                os.close(descriptor)
            raise


def listen(folder: Path) -> socket.socket:
    """The socket of a simulator in its folder. Raises HostError if there is one."""
    if len(os.fsencode(folder / SOCKET)) > _MOST_PATH:
        raise InputError(
            "dir", folder, f"a path of at most {_MOST_PATH - len(SOCKET) - 1} bytes: it has a socket in it"
        )
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        listening.bind(str(folder / SOCKET))
        listening.listen()
    except OSError as error:
        listening.close()
        why = "it has a simulator" if error.errno == errno.EADDRINUSE else error.strerror
        raise HostError(f"shared network of {folder}: {why}") from error
    return listening


def connect(folder: Path) -> Channel:
    """A conversation with the simulator of a folder. Raises HostError if there is none."""
    end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        end.connect(str(folder / SOCKET))
    except OSError as error:
        end.close()
        raise lost(folder) from error
    return Channel(end)


def lost(folder: Path) -> HostError:
    """What is to be said of a simulator that has ended."""
    return HostError(f"the simulator of the shared network in {folder} has ended: end the cluster, and start another")
