"""The scripts of the tests do not succeed where nothing is run."""

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


def run(script, *arguments):
    command = [sys.executable, TESTS / script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def tree(tmp_path):
    """As MPICH's: lists of other names stand in folders that only `testlist` names. This test needs too much memory."""
    folder = tmp_path / "datatype"
    folder.mkdir()
    (tmp_path / "testlist").write_text("datatype\n")
    (folder / "testlist.dtp").write_text("large 2 mem=900\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--lists", "testlist.dtp"), "every test was skipped: none was run"),
        (("--lists", "testlist"), "error: no test of testlist in "),
        (("--lists", "no-such-list"), "error: no test of no-such-list in "),
        (("--only", "no-such-test*"), "there is nothing to run"),
    ],
)
def test_mpichs_tests(tree, arguments, said):
    done = run("conformance/mpich_tree.py", tree, *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_a_list_is_found_below_the_folders_of_others(tree):
    done = run("conformance/mpich_tree.py", tree, "--lists", "testlist.dtp")
    assert "datatype/large 2: needs 900 GB of memory" in done.stdout


@pytest.mark.parametrize(
    ("script", "arguments", "status"),
    [
        ("conformance/gasnet_tree.py", (".", ".", "--only", "no-such-test"), 2),
        ("conformance/gasnet_tree.py", (".", ".", "--only", "testthreads", "--modes", "seq"), 2),
        ("soak/deaths.py", ("--only", "no-such-death"), 2),
        ("soak/deaths.py", ("--every", "0"), 2),
        ("soak/soak.py", ("--minutes", "0"), 1),
        ("soak/soak.py", ("--only", "no-such-case"), 1),
    ],
)
def test_other_scripts(script, arguments, status):
    done = run(script, *arguments)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
