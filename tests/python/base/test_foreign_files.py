"""Files of other programs, and packed or otherwise encoded ones: read, or refused by the name of their format."""

import bz2
import gzip
import io
import json
import lzma
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

import apenet as package
from apenet.base import tomltext
from apenet.base.foreign import recognise_text
from apenet.base.infiles import TooLargeError, UnreadableError, read_bytes, read_text
from apenet.compute.profile import read_profile
from apenet.fit import read
from apenet.machine import MOST_FILE_BYTES, machine
from apenet.machine.mapping import map_ranks
from apenet.placing.traffic import read_traffic
from apenet.run.replay import read_trace

MACHINE = '[machine]\nname = "x"\ntitle = "t"\nsummary = "s"\nbase = "ape16"\n'
GOAL = "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n"
TABLE = "size_bytes,latency_us\n" + "".join(f"{size},{1 + size / 100}\n" for size in (1, 2, 4, 8, 16))
MAP = "0\n1\n"
MATRIX = "0 5\n5 0\n"

READERS = {
    "machine": (machine, MACHINE),
    "trace": (read_trace, GOAL),
    "fit": (read, TABLE),
    "map": (lambda path: map_ranks(machine("ape16"), 2, 1, path), MAP),
    "traffic": (read_traffic, MATRIX),
    "traffic of a trace": (read_traffic, GOAL),
}


def tar() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"), io.BytesIO())
    return held.getvalue()


def zipped() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("x", MACHINE)
    return held.getvalue()


FOREIGN = {
    "goal": (
        struct.pack("<QIBB", 4223, 2, 1, 1) + bytes(64),
        "GOAL trace in LogGOPSim's binary form",
        "txt2bin's input",
    ),
    "dumpi": (b"\xff\xaa\xddDUMPI" + bytes(64), "a DUMPI trace", "dumpi2ascii"),
    "otf2": (b"\x03BOTF2\0\3\2\3\0\2\0\0\x10\0", "an OTF2 trace", "apenet replay"),
    "chakra": (b"\7\x0a\x050.0.4\x0a\x08\0\x12\2ab", "Chakra", "apenet replay"),
    "pcap": (struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1), "(pcap)", "tshark"),
    "pcap with nanoseconds, big-endian": (bytes.fromhex("a1b23c4d0002000400000000"), "(pcap)", "tshark"),
    "pcap with nanoseconds, little-endian": (bytes.fromhex("4d3cb2a10200040000000000"), "(pcap)", "tshark"),
    "clog2": (b"CLOG-02.44" + bytes(100), "a trace of MPE (CLOG-2)", "GOAL"),
    "slog2": (b"\0\x0aSLOG 2.0.6" + bytes(100), "a trace of Jumpshot (SLOG-2)", "GOAL"),
    "darshan": (struct.pack("<8sq", b"3.21", 6567223) + bytes(64), "a log of Darshan", "darshan-parser"),
    "darshan, big-endian": (struct.pack(">8sq", b"3.10", 6567223) + bytes(64), "a log of Darshan", "darshan-parser"),
    "xz": (lzma.compress(MACHINE.encode()), "compressed by xz", "xz -d"),
    "bzip2": (bz2.compress(MACHINE.encode()), "compressed by bzip2", "bzip2 -d"),
    "zstd": (b"\x28\xb5\x2f\xfd\4\0abc", "compressed by zstd", "zstd -d"),
    "zip": (zipped(), "a ZIP archive", "unzip"),
    "tar": (tar(), "a tar archive", "tar -x"),
    "tar.gz": (gzip.compress(tar()), "a tar archive", "tar -x"),
    "elf": (b"\x7fELF\2\1\1" + bytes(60), "(ELF)", "apenet run --"),
    "utf-16": (MACHINE.encode("utf-16"), "UTF-16", "iconv"),
    "utf-32": (MACHINE.encode("utf-32"), "UTF-32", "iconv"),
    "simgrid": (
        b'<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "simgrid.dtd">\n<platform/>\n',
        "SimGrid (XML)",
        "TOML",
    ),
    "gzip twice": (gzip.compress(gzip.compress(MACHINE.encode())), "gzip more than once", "gzip -d"),
    "paraver": (
        b"#Paraver (28/11/2026 at 10:00):99_ns:1(2):1:2(1:1,1:1)\n1:1:1:1:1:0:99:1\n",
        "a trace of Paraver (.prv)",
        "GOAL",
    ),
    "lfs": (
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12\n",
        "Git LFS",
        "git lfs pull",
    ),
    "html": (b"<!DOCTYPE html>\n<html><body>404 Not Found</body></html>\n", "HTML", "download"),
}


TEXT_TRACES = {
    "a trace in the format of Paje": "#This file was generated\n%EventDef PajeDefineContainerType 0\n%  Alias string\n",
    "the file .meta of a DUMPI trace": "hostname=n1\nnumprocs=4\nusername=u\nstartime=1\nfileprefix=d\nversion=1\n",
    "a DUMPI trace as dumpi2ascii shows it": "MPI_Init entering at walltime 1709.2, cputime 0.01 seconds.\n",
    "a time-independent trace of SimGrid": "0 init\n0 compute 1e6\n0 send 1 0 1000 6\n1 recv 0 0 1000 6\n0 finalize\n",
}


@pytest.mark.parametrize("name", TEXT_TRACES)
def test_a_trace_in_the_text_of_another_tool_is_named(tmp_path, name):
    path = tmp_path / "trace"
    path.write_text(TEXT_TRACES[name], encoding="ascii")
    with pytest.raises(package.ApenetError, match=name):
        READERS["trace"][0](path)


@pytest.mark.parametrize("text", ["\n" * 60 + "x y", "//  \n" * 60 + "x y", "/* */ " * 60 + "x y", "# \n" * 60 + "[x"])
def test_a_text_of_no_known_format_is_refused_at_once(text):
    """Blank lines and comments could be divided among the parts of a pattern in 2^60 ways."""
    assert recognise_text(text) is None


def test_a_folder_of_score_p_is_refused_with_the_file_to_give(tmp_path):
    (tmp_path / "traces.otf2").write_bytes(FOREIGN["otf2"][0])
    with pytest.raises(package.InputError, match=r"a file: .*traces\.otf2 is the anchor file of an OTF2 trace"):
        read_trace(tmp_path)


CONVERTED = ("otf2", "chakra")
TRACE_READERS = ("trace", "traffic", "traffic of a trace")  # read them, and say what these files lack


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused_by_its_name_with_a_remedy(tmp_path, monkeypatch, reader, kind):
    content, name, remedy = FOREIGN[kind]
    monkeypatch.chdir(tmp_path)
    path = Path("a-file")  # errors shorten long paths
    path.write_bytes(content)
    with pytest.raises(package.ApenetError) as caught:
        READERS[reader][0](path)
    assert str(path) in str(caught.value)
    assert name in str(caught.value)
    if not (kind in CONVERTED and reader in TRACE_READERS):
        assert remedy in str(caught.value)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "encode",
    [
        pytest.param(lambda text: b"\xef\xbb\xbf" + text.encode(), id="byte-order mark"),
        pytest.param(lambda text: text.replace("\n", "\r\n").encode(), id="CRLF"),
        pytest.param(lambda text: gzip.compress(text.encode()), id="gzip"),
        pytest.param(lambda text: gzip.compress(text[:9].encode()) + gzip.compress(text[9:].encode()), id="two gzips"),
        pytest.param(lambda text: gzip.compress(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()), id="all"),
    ],
)
def test_marked_and_packed_texts_are_read(tmp_path, reader, encode):
    reads, text = READERS[reader]
    path = tmp_path / "file"
    path.write_bytes(encode(text))
    reads(path)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("content", "name"),
    [
        pytest.param(gzip.compress(b"x" * 99)[:-9], "cut off", id="cut off"),
        pytest.param(gzip.compress(bytes(range(99)))[:-9] + b"x" * 9, "damaged", id="damaged"),
    ],
)
def test_damaged_packed_files_are_refused(tmp_path, reader, content, name):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(package.ApenetError, match=f"packed by gzip, and {name}"):
        READERS[reader][0](path)


@pytest.mark.parametrize(
    ("reader", "content", "name"),
    [
        ("machine", '{"machine": {"name": "x"}}', "it is JSON"),
        ("machine", "machine:\n  name: x\n", "it is YAML"),
        ("machine", "topology = torus;\nk = 8;\nn = 2;\n", "a configuration of BookSim"),
        ("machine", 'LPGROUPS\n{\n  MODELNET_GRP\n  {\n    repetitions="36";\n  }\n}\n', "a configuration of CODES"),
        ("trace", 'PARAMS { packet_size="512"; }\nLPGROUPS {\n}\n', "a configuration of CODES"),
        ("machine", "# a tree\nNodes 16\nTiers 2\nPodsize 4\n\nTier 0\nRadix_Down 4\n", "a topology of htsim"),
        ("machine", '/* x */\n#include "ns3/core-module.h"\nint main() {}\n', "a program of ns-3 (C++)"),
        ("machine", "#include <mpi.h>\nint main() {}\n", "the source of a program in C or C++; apenet run --"),
        ("machine", "import sst\nrouter = sst.Component('a', 'merlin.hr_router')\n", "a script of SST (Python)"),
        ("machine", "[General]\nnetwork = Tree\nsim-time-limit = 1s\n", "a configuration of OMNeT++"),
        ("machine", "package x;\n\nnetwork Tree extends Base\n{\n    submodules:\n}\n", "a network of OMNeT++ (NED)"),
        ("trace", "simple Source\n{\n    gates:\n        output out;\n}\n", "a network of OMNeT++ (NED)"),
        ("machine", GOAL, "it is a GOAL trace; apenet replay reads it"),
        ("trace", '{"nodes": [], "schema": "1.0"}', "a trace of a profiler in JSON"),
        ("trace", MACHINE, "it is TOML"),
        ("trace", "", "the file is empty"),
        ("map", "[0, 1]", "it is JSON"),
        ("traffic", '{"a": 1}', "it is JSON"),
    ],
)
def test_texts_of_another_format_are_named(tmp_path, reader, content, name):
    path = tmp_path / "file"
    path.write_text(content)
    with pytest.raises(package.ApenetError) as caught:
        READERS[reader][0](path)
    assert name in str(caught.value)


def test_what_is_no_profile_is_named(tmp_path):
    path = tmp_path / "p"
    for content, name in ((FOREIGN["otf2"][0], "an OTF2 trace"), (GOAL.encode(), "it is a GOAL trace")):
        path.write_bytes(content)
        with pytest.raises(package.ApenetError, match=name):
            read_profile(path)


def test_packed_files_are_read_within_the_limit(tmp_path):
    path = tmp_path / "bomb"
    path.write_bytes(gzip.compress(bytes(2**24)))
    assert path.stat().st_size < 2**15
    with pytest.raises(TooLargeError, match="more than 1 MiB unpacked"):
        read_bytes(path, 2**20)
    # Pieces of exactly the step in which it is unpacked.
    assert read_bytes(path, 2**24) == bytes(2**24)
    with pytest.raises(UnreadableError, match="more than 1 MiB"):
        machine_of = Path(tmp_path / "big.toml")
        machine_of.write_text(MACHINE + "#" * MOST_FILE_BYTES)
        read_text(machine_of, MOST_FILE_BYTES)


def test_a_text_names_its_first_byte_that_is_no_utf_8(tmp_path):
    path = tmp_path / "latin"
    path.write_bytes(b"a\nZ\xfcrich\n")
    with pytest.raises(UnreadableError, match="line 2 has the byte 0xfc"):
        read_text(path, 100)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x" + ".y" * 50_000 + " = 1", "a key of more than 16 parts"),
        ("a = 1\n[x" + ".y" * 50_000 + "]", r"a key of more than 16 parts \(at line 2\)"),
        ("a = {x" + '."y"' * 50_000 + " = 1}", "a key of more than 16 parts"),
        ("a = " + "[" * 100_000, "more than 16 brackets in each other"),
        ("a = " + "[1, " * 17 + "]" * 17, "more than 16 brackets in each other"),
        ("a = " + "{b = " * 17 + "1" + "}" * 17, "more than 16 brackets in each other"),
        ("a = 1" + "0" * 5000, "a number of 5001 digits"),
        ("a = 0x" + "f" * 5000, "a number of 5002 digits"),
        ("a = 1." + "5" * 5000, "a number of 5000 digits"),
        ('a = """' + '\\"""' * 50_000, "string"),
        ("'" * 100_000, "key"),
    ],
)
def test_toml_that_takes_the_parser_long_is_refused(text, reason):
    with pytest.raises(tomltext.TomlError, match=reason):
        tomltext.parse_toml(text)


def test_toml_within_the_limits_is_that_of_the_standard_library():
    import tomllib

    text = (
        'a.b.c = 1.5 # x.y.y.y.y.y.y.y.y.y.y.y.y.y.y.y.y.y.y\nd = "'
        + "1.2." * 99
        + "\"\ne = '''\n"
        + "[" * 99
        + "'''\nf = [[1, 2], [3.25, -4e5]]\n[g.\"h.i\".'j']\nk = 1979-05-27T07:32:00.999999-07:00\n"
        + 'l = """\n'
        + "a.b" * 999
        + '\\""""\nm = {n.o = true}\n'
    )
    assert tomltext.parse_toml(text) == tomllib.loads(text)


def test_json_with_many_digits_is_no_traceback(tmp_path):
    path = tmp_path / "p"
    path.write_text(json.dumps({"format": 1})[:-1] + ', "x": ' + "9" * 9999 + "}")
    with pytest.raises(package.ApenetError):
        read_profile(path)
