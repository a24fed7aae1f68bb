"""The ranks' standard output and error: pipes to the simulator, or one file for each rank and stream."""

from __future__ import annotations

import json
import os
import re
from contextlib import ExitStack, suppress
from pathlib import Path

from apenet._core import version as __version__
from apenet.base.calls import named_call
from apenet.base.errors import InputError
from apenet.base.outfiles import FolderKind, Held, OutFolder, holds_json

_MARKER = "output.json"
_NAME = re.compile(r"rank-[0-9]{4,}\.(?:out|err)")
_LAST_BYTES = 4096
_KIND = FolderKind(_MARKER, holds_json(lambda keys: keys == {"ranks", "version"}), "run's output")


class OutputFolder(Held):
    """A folder with a file for each rank and stream: rank-0003.out, rank-0003.err.

    The files of an earlier run are deleted. Raises InputError if such a file was not written by this package.
    """

    def __init__(self, path: Path, ranks: int) -> None:
        present: list[str] = []
        with suppress(OSError):
            present = sorted(entry.name for entry in path.iterdir() if _NAME.fullmatch(entry.name))
        wanted = [name for rank in range(ranks) for name in _names(rank)]
        with ExitStack() as stack:
            self._folder = stack.enter_context(OutFolder("output", path, _KIND, {*present, *wanted}))
            self._folder.remove(present)
            self._folder.keep({_MARKER: (json.dumps({"ranks": ranks, "version": __version__}) + "\n").encode()})
            self._closing = stack.pop_all()

    def open(self, rank: int) -> tuple[int, int]:
        """Opens the files of a rank for writing."""
        out, err = _names(rank)
        first = self._create(out)
        try:
            return first, self._create(err)
        except InputError:
            os.close(first)
            raise

    def check_room(self) -> None:
        """Raises NotWrittenError if the files cannot grow: few programs check that their output was written."""
        self._folder.check_room("the ranks' output is cut off")

    def end_of_errors(self, rank: int) -> bytes:
        """The last part of what a rank wrote to standard error, for a message; empty if it cannot be read."""
        with suppress(OSError), (self._folder.path / _names(rank)[1]).open("rb") as file:
            file.seek(max(file.seek(0, os.SEEK_END) - _LAST_BYTES, 0))
            return file.read(_LAST_BYTES)
        return b""

    def _create(self, name: str) -> int:
        # A program may open it once more, as /dev/stdout: what the one writes must not overwrite what the other has.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(self._folder.path / name, flags, 0o666)
        except OSError as error:
            expected = f"a folder that can be written ({error.strerror})"
            raise InputError("output", self._folder.path, expected) from error


def _names(rank: int) -> tuple[str, str]:
    return f"rank-{rank:04}.out", f"rank-{rank:04}.err"


class RankStreams:
    """A rank's standard output and error: the descriptors that it writes to and those that the simulator reads.

    A read end is -1 if the simulator reads nothing. `given` closes the write ends once the rank has them, `ours` the
    read ends if the run does not start.
    """

    def __init__(self, rank: int, folder: OutputFolder | None, given: ExitStack, ours: ExitStack) -> None:
        if folder is not None:
            self.write_ends, self.read_ends = folder.open(rank), (-1, -1)
        else:
            with named_call("pipe"):
                (read_out, write_out), (read_err, write_err) = os.pipe(), os.pipe()
            self.write_ends, self.read_ends = (write_out, write_err), (read_out, read_err)
        for stack, descriptors in ((given, self.write_ends), (ours, self.read_ends)):
            for descriptor in descriptors:
                if descriptor >= 0:
                    stack.callback(os.close, descriptor)
