"""libfabric's own test programs, if APENET_FABTESTS names their folder: results as in docs/apis/libfabric.md."""

import os
import re
import socket
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "apis" / "libfabric.md"
ROW = re.compile(r"^\| `(?P<command>fi_[^`]*)` \| (?P<ranks>\d+) \| (?P<result>pass|refused|fails) \|", re.MULTILINE)
SECTION = "## libfabric's test programs"

ROWS = [(row["command"], row["ranks"], row["result"]) for row in ROW.finditer(PAGE.read_text().partition(SECTION)[2])]


def test_the_table_is_read():
    results = {result for _, _, result in ROWS}
    assert len(ROWS) > 40
    assert results == {"pass", "refused", "fails"}


@pytest.fixture(scope="session")
def fabtests() -> Path:
    folder = os.environ.get("APENET_FABTESTS")
    if folder is None:
        pytest.skip("APENET_FABTESTS names no folder of libfabric's fabtests, built against libfabric 1.17")
    with socket.socket() as listener:  # the port of their own connections
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", 9228))
        except OSError:
            pytest.skip("another program has the port 9228")
    return Path(folder)


@pytest.mark.parametrize(("command", "ranks", "result"), ROWS, ids=[row[0] for row in ROWS])
@pytest.mark.xdist_group("fabtests")
def test_program(apenet, fabtests, command, ranks, result):
    program, *arguments = command.split()
    done = apenet("run", "-n", ranks, "--machine", "torus-slice", "--", fabtests / program, *arguments)
    assert (done.returncode == 0) == (result == "pass"), done.stdout[-2000:] + done.stderr
