"""Traces of other tools as GOAL traces."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from apenet.base.foreign import CHAKRA, HEAD_BYTES, OTF2, recognise_bytes
from apenet.traces.chakra_trace import ChakraTrace
from apenet.traces.otf2_trace import Otf2Trace
from apenet.traces.schedule import write_trace

_READERS: dict[str, type[Otf2Trace] | type[ChakraTrace]] = {OTF2.name: Otf2Trace, CHAKRA.name: ChakraTrace}


def is_foreign(file: Path) -> bool:
    """Whether the file is a trace of another tool that `converted` reads."""
    return _reader(file) is not None


def _reader(file: Path) -> type[Otf2Trace] | type[ChakraTrace] | None:
    try:
        if not file.is_file():
            return None
        with file.open("rb") as opened:
            found = recognise_bytes(opened.read(HEAD_BYTES))
    except OSError:
        return None
    return None if found is None else _READERS.get(found.name)


@contextmanager
def converted(file: Path) -> Iterator[tuple[str, list[str]]]:
    """The name under which the GOAL trace of such a file can be read, and what the trace leaves open."""
    reader = _reader(file)
    if reader is None:
        raise ValueError(f"{file} is no trace of another tool")
    trace = reader(file)
    with tempfile.TemporaryFile("w+", encoding="utf-8") as text:
        write_trace(trace.operations(), trace.rank_count, text)
        text.flush()
        os.lseek(text.fileno(), 0, os.SEEK_SET)
        yield f"/proc/self/fd/{text.fileno()}", trace.notes()
