"""Control characters and bytes that are no UTF-8 in names and arguments: shown escaped, never sent to a terminal."""

import os
import pty
import re

import pytest
from forked import start_forked

from apenet.base.errors import InputError, MachineError, shown
from apenet.base.escape import escape_line, escape_text

EVIL = "a\x1b[31mred\x1b]0;title\x07\nline2\r\x9b1m\u202egnp.exe"
ESCAPED = r"a\x1b[31mred\x1b]0;title\x07\nline2\r\x9b1m\u202egnp.exe"


def test_every_control_character_is_escaped():
    assert escape_line(EVIL) == ESCAPED
    assert escape_text("a\tb\nc\x1b\r") == "a\tb\nc\\x1b\\r"
    assert escape_line("Zürich µs 漢字 👍") == "Zürich µs 漢字 👍"
    assert escape_line("x\udcff") == r"x\xff"
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", escape_line("".join(map(chr, range(0x300)))))


def test_errors_escape_names_and_values():
    assert shown(EVIL) == f'"{ESCAPED}"'
    assert str(InputError(EVIL, EVIL, "x")) == f'{ESCAPED} = "{ESCAPED}": expected x'
    assert str(MachineError(EVIL, EVIL, EVIL, "x")) == f'{ESCAPED}: {ESCAPED} = "{ESCAPED}": expected x'
    assert shown(10**5000) == "a number of 16610 bits"


MACHINE = (
    '[machine]\nname = "a\\u001b[31mred\\u001b]0;title\\u0007\\nline2"\ntitle = "t"\nsummary = "s"\nbase = "ape16"\n'
)


@pytest.mark.parametrize(
    "arguments", [("machine", "check", "{}"), ("bench", "pingpong", "--sizes", "8", "-m", "{}"), ("replay", "{}")]
)
def test_a_name_has_no_effect_on_the_terminal(tmp_path, arguments):
    path = tmp_path / "evil\x1b[2J\n[b].toml"
    path.write_text(MACHINE)
    ours, theirs = pty.openpty()
    started = start_forked([str(path) if one == "{}" else one for one in arguments], stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the command has ended
            break
        said += part
    started.wait()
    os.close(ours)
    # Styles and the progress bar are apenet's own: no sequence of the name is there, and no line of its own.
    for sequence in (b"\x1b[31m", b"\x1b]0", b"\x07", b"\x1b[2J", b"\r\nline2"):
        assert sequence not in said
    assert rb"\x1b[31mred\x1b]0;title\x07\nline2" in said or rb"evil\x1b[2J\n[b].toml" in said


BYTES = "x\udcff"  # as Python gives the byte 0xff where names are UTF-8


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "-n", "2", "--fault", BYTES, "--", "true"),
        ("run", "-n", "2", "--fault", f"link {BYTES} down @1us", "--", "true"),
        ("run", "-n", BYTES, "--", "true"),
        ("run", "-n", "2", "--rail", BYTES, "--", "true"),
        ("run", "-n", "2", "--map", BYTES, "--", "true"),
        ("run", "-n", "2", "--compute", BYTES, "--", "true"),
        ("run", "-n", "2", "--size", BYTES, "--", "true"),
        ("run", "-n", "2", "--mpi", BYTES, "--", "true"),
        ("run", "-n", "2", "--engine", BYTES, "--", "true"),
        ("machine", "show", "ape16", "--set", f"{BYTES}=1"),
        ("machine", "show", "ape16", "--set", f'machine.name="{BYTES}"'),
        ("machine", "show", BYTES),
        ("machine", "keys", BYTES),
        ("bench", BYTES),
        ("bench", "halo", "--lattice", BYTES),
        ("bench", "pingpong", "--sizes", BYTES),
        ("traffic", "--pattern", BYTES),
        ("traffic", "--load", BYTES),
        ("fit", BYTES),
        ("reproduce", "--only", BYTES),
        (BYTES,),
    ],
)
def test_arguments_that_are_no_utf_8_are_refused_in_one_line(apenet, arguments):
    done = apenet(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert [line for line in done.stderr.splitlines() if line.startswith(("apenet: ", "Error: "))]
