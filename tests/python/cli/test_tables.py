"""Tables on terminals: no name, key or value is cut, whatever the width."""

import os
import pty
import subprocess

import pytest
from forked import start_forked

import apenet as package
from apenet.machine.keys import keys

CUT = "\N{HORIZONTAL ELLIPSIS}"


def on_a_terminal(columns: int, *arguments: str) -> str:
    """The output of a command on a terminal."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "dumb"}
    with start_forked(arguments, stdout=slave, stderr=subprocess.PIPE, env=environment) as process:
        os.close(slave)
        said = b""
        try:
            while part := os.read(master, 65536):
                said += part
        except OSError:  # how a terminal ends
            pass
    os.close(master)
    assert process.returncode == 0
    return said.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [80, 100])
def test_machines(columns):
    said = on_a_terminal(columns, "machines")
    assert CUT not in said
    assert max(map(len, said.splitlines())) <= columns
    assert {line.split(" ")[0] for line in said.splitlines()} >= set(package.machine_names())
    # Folded between words: all of each summary is there.
    words = said.split()
    for machine in package.machines():
        assert set(machine.file.machine.summary.split()) <= set(words)


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("section", ["network", "router", "card hca", "software"])
def test_keys_of_machines(section, columns):
    """A table that does not fit is a list, so that each key begins a line and no row is broken."""
    said = on_a_terminal(columns, "machine", "keys", section)
    assert CUT not in said
    assert max(map(len, said.splitlines())) <= columns
    begins = {line.split(" ")[0] for line in said.splitlines()}
    for key in keys(section):
        assert key.key in begins
        assert set(key.meaning.split()) <= set(said.replace("\n", " ").split())


def test_published_results():
    keys = ("apenetplus-v4.soft_translation_ceiling_4k", "gasnet.extoll.medium_packets_0args_56B", "apenet-2004.uni_bw")
    said = on_a_terminal(80, "reproduce", *(word for key in keys for word in ("--only", key)))
    assert CUT not in said
    lines = said.splitlines()
    assert max(map(len, lines)) <= 80
    heading = lines.index("apenetplus-v4.soft_translation_ceiling_4k (apenetplus-v4)")
    assert lines[heading + 1].split()[:3] == ["<", "2156", "MB/s"]
    assert lines[heading + 1].split()[-1] in ("pass", "miss", "n/a")
    curve = lines.index("apenet-2004.uni_bw (apenet-2004)")
    assert lines[curve + 1].split()[:3] == ["1048576", "470", "MiB/s"]
    assert "gasnet.extoll.medium_packets_0args_56B: 1, 1, 2, 10 and 147" in lines


def test_a_fit(tmp_path):
    points = "\n".join(f"{size},{1 + 0.001 * size}" for size in (1, 2, 4, 8, 1024, 2048, 4096, 8192))
    (tmp_path / "a-rather-long-name-of-a-file.csv").write_text(f"size_bytes,latency_us\n{points}\n")
    said = on_a_terminal(80, "fit", "--test", "pingpong", str(tmp_path / "a-rather-long-name-of-a-file.csv"))
    assert CUT not in said
    assert "a-rather-long-name-of-a-file.csv" in said.replace("\n", "")
