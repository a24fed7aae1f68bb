"""Reads what the loader needs to know of a program or library: the headers and the dynamic section of an ELF file."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
MACHINES = {3: "x86", 8: "MIPS", 21: "POWER", 40: "ARM", 62: "x86_64", 183: "aarch64", 243: "RISC-V"}


@dataclass(frozen=True)
class Elf:
    """A 64-bit little-endian ELF file."""

    machine: str
    interpreter: str | None
    """The loader that the file asks for; None for libraries and static programs."""
    is_dynamic: bool
    needed: tuple[str, ...]
    rpath: str
    """Searched before LD_LIBRARY_PATH."""
    runpath: str
    """Searched after LD_LIBRARY_PATH."""


def read_elf(path: Path) -> Elf | None:
    """The file's headers; None for anything else than a 64-bit ELF file."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _parsed(data) if data[:6] == b"\x7fELF\x02\x01" else None
    except (OSError, OverflowError, struct.error, ValueError):  # ValueError: empty
        return None


def contains(path: Path, text: bytes) -> bool:
    """Whether these bytes are in the file."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return data.find(text) >= 0
    except (OSError, OverflowError, ValueError):  # missing, or empty
        return False


@dataclass(frozen=True)
class _Segment:
    kind: int
    offset: int
    address: int
    length: int


def _segments(data: mmap.mmap) -> Iterator[_Segment]:
    (table,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for i in range(count):
        yield _Segment(*struct.unpack_from("<I4xQQ8xQ", data, table + i * size))


def _parsed(data: mmap.mmap) -> Elf:
    segments = list(_segments(data))
    (machine,) = struct.unpack_from("<H", data, 18)
    entries = [
        struct.unpack_from("<qQ", data, segment.offset + i)
        for segment in segments
        if segment.kind == _PT_DYNAMIC
        for i in range(0, segment.length, 16)
    ]
    address = next((value for tag, value in entries if tag == _DT_STRTAB), 0)
    strings = next(
        (
            address - segment.address + segment.offset
            for segment in segments
            if segment.kind == _PT_LOAD and segment.address <= address < segment.address + segment.length
        ),
        None,
    )

    def texts(wanted: int) -> tuple[str, ...]:
        if strings is None:
            return ()
        return tuple(_text(data, strings + value) for tag, value in entries if tag == wanted)

    interpreter = next((_text(data, segment.offset) for segment in segments if segment.kind == _PT_INTERP), None)
    return Elf(
        machine=MACHINES.get(machine, f"machine {machine}"),
        interpreter=interpreter,
        is_dynamic=any(segment.kind == _PT_DYNAMIC for segment in segments),
        needed=texts(_DT_NEEDED),
        rpath=":".join(texts(_DT_RPATH)),
        runpath=":".join(texts(_DT_RUNPATH)),
    )


def _text(data: mmap.mmap, begin: int) -> str:
    return data[begin : data.find(b"\0", begin)].decode(errors="replace")
