"""The identity of a program's file, as the shim finds it for a loaded module (src/runtime/shim/call_sites.hpp)."""

from __future__ import annotations

import struct
from pathlib import Path

_PT_NOTE = 4
_NT_GNU_BUILD_ID = 3
_MOST_ID_BYTES = 20


def fnv(data: bytes) -> int:
    """FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


def build_id(program: Path) -> str | None:
    """The linker's build id, as `build-id:HEX`; None if the file has none, or is no 64-bit ELF file."""
    try:
        with program.open("rb") as file:
            head = file.read(64)
            if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":  # noqa: PLR2004 (the size of an ELF header)
                return None
            offset, size, count = (*struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54))[:3]
            for number in range(count):
                file.seek(offset + number * size)
                kind, _, begin, _, _, length = struct.unpack("<IIQQQQ", file.read(40))
                if kind != _PT_NOTE:
                    continue
                file.seek(begin)
                found = _build_id_in(file.read(length))
                if found is not None:
                    return found
    except (OSError, struct.error):
        pass
    return None


def _build_id_in(notes: bytes) -> str | None:
    position = 0
    while position + 12 <= len(notes):
        name_bytes, contents, kind = struct.unpack_from("<III", notes, position)
        name = notes[position + 12 : position + 12 + name_bytes]
        begin = position + 12 + (name_bytes + 3) // 4 * 4
        if kind == _NT_GNU_BUILD_ID and name == b"GNU\0":
            return "build-id:" + notes[begin : begin + min(contents, _MOST_ID_BYTES)].hex()
        position = begin + (contents + 3) // 4 * 4
    return None
