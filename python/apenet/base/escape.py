"""Makes foreign text safe to print: names of machines, files and hosts, and texts of files may hold any character."""

from __future__ import annotations

import re

# C0 and C1 controls, DEL, what changes the direction of text or breaks a line, and bytes of names that are no UTF-8.
_UNSAFE = "\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff"
_IN_LINE = re.compile(f"[{_UNSAFE}]")
_IN_TEXT = re.compile(f"(?![\n\t])[{_UNSAFE}]")


def escape_line(text: str) -> str:
    """The text in one line: without control characters, line ends included."""
    return _IN_LINE.sub(_shown, text)


def escape_text(text: str) -> str:
    """The text without control characters, except for line ends and tabs."""
    return _IN_TEXT.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if 0xDC80 <= code <= 0xDCFF:  # noqa: PLR2004 (a byte that is no UTF-8, as Python keeps it in names)
        code -= 0xDC00
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return named.get(found[0]) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")  # noqa: PLR2004
