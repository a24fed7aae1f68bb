"""Recognises files of other programs by their content, and says what to do with them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

HEAD_BYTES = 512
"""The first bytes of a file, enough for `recognise_bytes`."""

GOAL_TRACE = "a GOAL trace"
TOML = "TOML"
_TRACES = "apenet replay reads the text form of GOAL, as apenet run --record writes it, OTF2 and Chakra"
_MACHINE = "a machine file is TOML, as apenet machine show prints it"
_COMPRESSED = "unpack it first with"


@dataclass(frozen=True)
class Foreign:
    """A format that this package does not read, and what converts it."""

    name: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"it is {self.name}" + (f"; {self.remedy}" if self.remedy else "")


_BEGINNINGS: tuple[tuple[bytes, Foreign], ...] = (
    (
        b"\x7f\x10\0\0\0\0\0\0",
        Foreign("a GOAL trace in LogGOPSim's binary form", f"{_TRACES}: use txt2bin's input"),
    ),
    (b"\xff\xaa\xddDUMPI", Foreign("a DUMPI trace", f"{_TRACES}; dumpi2ascii shows what is in it")),
    (b"CLOG-0", Foreign("a trace of MPE (CLOG-2)", _TRACES)),
    (b"#Paraver (", Foreign("a trace of Paraver (.prv)", _TRACES)),
    (
        b"version https://git-lfs.github.com/",
        Foreign("a pointer of Git LFS, not the file itself", "git lfs pull fetches the file"),
    ),
    (b"\xfd7zXZ\0", Foreign("compressed by xz", f"{_COMPRESSED} xz -d")),
    (b"\x28\xb5\x2f\xfd", Foreign("compressed by zstd", f"{_COMPRESSED} zstd -d")),
    (b"\x1f\x8b", Foreign("compressed by gzip more than once", "gzip -d takes one layer off")),
    (b"BZh", Foreign("compressed by bzip2", f"{_COMPRESSED} bzip2 -d")),
    (b"\x04\x22\x4d\x18", Foreign("compressed by lz4", f"{_COMPRESSED} lz4 -d")),
    (b"PK\x03\x04", Foreign("a ZIP archive", f"{_COMPRESSED} unzip")),
    (b"7z\xbc\xaf\x27\x1c", Foreign("a 7z archive", f"{_COMPRESSED} 7z x")),
    (b"\x7fELF", Foreign("a program or library (ELF)", "apenet run -- runs programs")),
    (b"\xd4\xc3\xb2\xa1", Foreign("captured packets (pcap)", "tshark -r shows them")),
    (b"\xa1\xb2\xc3\xd4", Foreign("captured packets (pcap)", "tshark -r shows them")),
    (b"\x4d\x3c\xb2\xa1", Foreign("captured packets (pcap)", "tshark -r shows them")),
    (b"\xa1\xb2\x3c\x4d", Foreign("captured packets (pcap)", "tshark -r shows them")),
    (b"\x0a\x0d\x0d\x0a", Foreign("captured packets (pcapng)", "tshark -r shows them")),
    (b"\x89HDF\r\n\x1a\n", Foreign("an HDF5 file", "export the table as CSV")),
    (b"PAR1", Foreign("a Parquet file", "export the table as CSV")),
    (b"\x93NUMPY", Foreign("an array of NumPy", "numpy.savetxt writes it as text")),
    (b"SQLite format 3\0", Foreign("a database of SQLite", "export the table as CSV")),
    (b"%PDF-", Foreign("a PDF document")),
    (b"\x89PNG", Foreign("a picture (PNG)")),
    (b"\xff\xd8\xff", Foreign("a picture (JPEG)")),
    (b"\xff\xfe\0\0", Foreign("text in UTF-32", "iconv -f UTF-32 -t UTF-8 converts it")),
    (b"\0\0\xfe\xff", Foreign("text in UTF-32", "iconv -f UTF-32 -t UTF-8 converts it")),
    (b"\xff\xfe", Foreign("text in UTF-16", "iconv -f UTF-16 -t UTF-8 converts it")),
    (b"\xfe\xff", Foreign("text in UTF-16", "iconv -f UTF-16 -t UTF-8 converts it")),
)
OTF2 = Foreign("the anchor file of an OTF2 trace", "apenet replay reads it")
CHAKRA = Foreign("an execution trace of Chakra (.et)", "apenet replay reads it")
_SLOG2 = Foreign("a trace of Jumpshot (SLOG-2)", _TRACES)
_DARSHAN = Foreign("a log of Darshan", "darshan-parser shows what is in it")
# The version in 8 bytes, then this number in the order of bytes of the host that wrote it (darshan-log-format.h).
_DARSHAN_MARKS = ((6567223).to_bytes(8, "little"), (6567223).to_bytes(8, "big"))
_TAR = Foreign("a tar archive", f"{_COMPRESSED} tar -x")
_TAR_MARK = slice(257, 262)


def recognise_bytes(head: bytes) -> Foreign | None:
    """The format of a file by its first HEAD_BYTES; None for a text and for an unknown binary format."""
    for beginning, foreign in _BEGINNINGS:
        if head.startswith(beginning):
            return foreign
    if b"OTF2\0" in head[:8]:
        return OTF2
    if head[2:11] == b"SLOG 2.0.":  # behind the length of this text
        return _SLOG2
    if head[8:16] in _DARSHAN_MARKS:
        return _DARSHAN
    if head[_TAR_MARK] == b"ustar":
        return _TAR
    return CHAKRA if _is_chakra(head) else None


def _is_chakra(head: bytes) -> bool:
    """Whether it begins with Chakra's metadata: a message with its length, whose first field is a version."""
    found = re.match(rb"[\x01-\x7f]\x0a([\x05-\x20])", head)
    return found is not None and re.fullmatch(rb"\d+\.\d+\.\d+.*", head[3 : 3 + found[1][0]]) is not None


_XML = re.compile(r"\s*<(?:\?xml|!DOCTYPE|!--|/?[a-zA-Z])", re.IGNORECASE)
_HTML = re.compile(r"\s*<(?:!DOCTYPE\s+html|html|head|body)\b", re.IGNORECASE)
_SIMGRID = re.compile(r"<platform\b|simgrid\.dtd")


def recognise_markup(text: str) -> Foreign | None:
    """XML or HTML, which no reader of this package accepts."""
    if _XML.match(text) is None:
        return None
    if _HTML.match(text) is not None:
        return Foreign("a page of HTML", "perhaps the message of a failed download")
    if _SIMGRID.search(text[:4096]) is not None:
        return Foreign("a platform of SimGrid (XML)", _MACHINE)
    return Foreign("XML")


_BOOKSIM = re.compile(
    r"^[ \t]*(topology|k|n|routing_function|num_vcs|traffic|injection_rate)\s*=\s*[\w.(){},]+\s*;", re.M
)
_YAML = re.compile(r"\A(?>[ \t\r]*+(?:#[^\n]*+)?\n)*+(?:---[ \t]*\n|[A-Za-z_][\w.-]*:(?:[ \t]+\S.*)?\n)")
_GOAL = re.compile(r"\A\s*+(?>(?://[^\n]*+|/\*(?s:.)*?\*/)\s*+)*+num_ranks\s+[0-9]")
_TOML = re.compile(r"^[ \t]*\[[A-Za-z_][\w.-]*\][ \t]*$", re.M)
_DUMPI = re.compile(r"^MPI_\w+ (?:entering|returning) at walltime ", re.M)
_TIME_INDEPENDENT = re.compile(
    r"^p?[0-9]+ (?:init|finalize|compute|I?send|I?recv|comm_size|barrier|bcast)\b", re.I | re.M
)
_CODES = re.compile(r"^[ \t]*LPGROUPS[ \t]*\n?[ \t]*\{", re.M)
_NED = re.compile(r"^[ \t]*(?:simple|module|network|channel)[ \t]+\w+[^\n{;=]{0,200}\n?[ \t]*\{", re.M)
_SST = re.compile(r"^[ \t]*(?:import sst\b|from sst\b.{0,80} import )", re.M)
_NS3 = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]ns3/", re.M)
_C_SOURCE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"]", re.M)


def _lines(*beginnings: str) -> tuple[re.Pattern[str], ...]:
    """Patterns of lines that begin so."""
    return tuple(re.compile(f"^{beginning}", re.M) for beginning in beginnings)


# Each with patterns of which all are found. None may take long on a text made for that.
_TEXTS: tuple[tuple[tuple[re.Pattern[str], ...], Foreign], ...] = (
    (
        _lines("numprocs=[0-9]+$", "fileprefix="),
        Foreign("the file .meta of a DUMPI trace", f"{_TRACES}; dumpi2ascii shows what is in the others"),
    ),
    (_lines(r"%EventDef[ \t]+Paje\w"), Foreign("a trace in the format of Paje", _TRACES)),
    ((_CODES,), Foreign("a configuration of CODES", _MACHINE)),
    (_lines(r"Nodes[ \t]+[0-9]+$", r"Tiers[ \t]+[0-9]+$"), Foreign("a topology of htsim", _MACHINE)),
    ((_NS3,), Foreign("a program of ns-3 (C++)", _MACHINE)),
    ((_SST,), Foreign("a script of SST (Python)", _MACHINE)),
    (_lines(r"\[General\]", r"network[ \t]*=[ \t]*[A-Za-z_]"), Foreign("a configuration of OMNeT++", _MACHINE)),
    ((_C_SOURCE,), Foreign("the source of a program in C or C++", "apenet run -- runs the compiled program")),
    ((_NED,), Foreign("a network of OMNeT++ (NED)", _MACHINE)),
    ((_DUMPI,), Foreign("a DUMPI trace as dumpi2ascii shows it", _TRACES)),
    ((_TIME_INDEPENDENT,), Foreign("a time-independent trace of SimGrid", _TRACES)),
    ((_GOAL,), Foreign(GOAL_TRACE, "apenet replay reads it")),
    ((_TOML,), Foreign(TOML, "--machine reads machine files")),
    ((_YAML,), Foreign("YAML")),
)
_SHOWN_OF_TEXT = 65536


def recognise_text(text: str) -> Foreign | None:
    """The format that a text seems to have, for a reader that could not read it."""
    found = recognise_markup(text)
    if found is not None:
        return found
    head = text[:_SHOWN_OF_TEXT].replace("\r\n", "\n")
    if head.lstrip().startswith("{") or re.match(r"\s*\[\s*[{\[0-9\"]", head):
        return _json_kind(text)
    if len(_BOOKSIM.findall(head)) > 1:
        return Foreign("a configuration of BookSim", _MACHINE)
    return next((foreign for patterns, foreign in _TEXTS if all(one.search(head) for one in patterns)), None)


def _json_kind(text: str) -> Foreign | None:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return Foreign("like JSON")
    if isinstance(content, dict) and content.get("format") == "apenet compute profile":
        return Foreign("a compute profile", "--compute FILE reads it")
    if isinstance(content, dict) and ("traceEvents" in content or {"schema", "nodes"} <= content.keys()):
        return Foreign("a trace of a profiler in JSON", _TRACES)
    return Foreign("JSON")
