"""The library of OTF2 traces. What it says of a file becomes part of an error; it would write to the terminal."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib import import_module
from pathlib import Path
from typing import Any

from apenet.base.errors import InputError
from apenet.base.escape import escape_line

_MOST_BYTES = 512
# (user data, file, line, function, error code, format, va_list) -> error code. Where a va_list is no pointer, it is
# passed by one.
_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_char_p,
    ctypes.c_uint64,
    ctypes.c_char_p,
    ctypes.c_int,
    ctypes.c_char_p,
    ctypes.c_void_p,
)


def otf2_library(name: str, path: Path | str) -> Any:  # noqa: ANN401 (otf2 has no types)
    """Returns the module otf2. Raises InputError, about the value `path` of `name`, where it is not installed."""
    try:
        return import_module("otf2")
    except ImportError as error:
        raise InputError(name, path, "an installed otf2: pip install otf2") from error


class _Tracebacks(io.TextIOBase):
    """Takes what the library's part in Python writes of an exception, and keeps the last line."""

    def __init__(self, said: list[str]) -> None:
        self._said = said

    def write(self, text: str) -> int:
        if text.startswith("Traceback"):
            self._said.append(escape_line(text.splitlines()[-1]))
        return len(text)


@contextmanager
def said_by_otf2() -> Iterator[list[str]]:
    """Collects what the library says of errors meanwhile, the most special first. Requires that it is installed."""
    errors = import_module("_otf2.ErrorCodes")
    register = import_module("_otf2.Config").conf.lib.OTF2_Error_RegisterCallback
    register.argtypes, register.restype = (ctypes.c_void_p, ctypes.c_void_p), ctypes.c_void_p
    write = ctypes.CDLL(None).vsnprintf
    write.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_void_p)
    said: list[str] = []

    def note(_: object, __: object, ___: object, ____: object, code: int, form: bytes, arguments: int) -> int:
        text = ctypes.create_string_buffer(_MOST_BYTES)
        write(text, _MOST_BYTES, form, arguments)
        if code > 0:  # others are warnings
            detail = text.value.decode(errors="replace").rstrip(".")
            said.append(escape_line(f"{errors.Error_GetDescription(errors.ErrorCode(code))}: {detail}"))
        return code

    callback = _Callback(note)
    before = register(ctypes.cast(callback, ctypes.c_void_p), None)
    try:
        with redirect_stderr(_Tracebacks(said)):
            yield said
    finally:
        register(before, None)
