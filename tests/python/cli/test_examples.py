"""`apenet examples`: the installed package's copies."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_each_example_of_the_checkout_is_listed(apenet):
    listed = [line.split()[0] for line in apenet("examples", "list").stdout.splitlines()]
    assert listed == sorted(path.parent.name for path in ROOT.glob("examples/*/README.md"))


def test_a_copy_holds_the_files_and_names_no_checkout(apenet, tmp_path):
    done = apenet("examples", "copy", "02", "14_rma_put", "02_jacobi", cwd=tmp_path)
    assert done.stdout.splitlines() == ["examples/02_jacobi", "examples/14_rma_put"]
    copies = tmp_path / "examples"
    assert (copies / "14_rma_put" / "put.c").read_bytes() == (ROOT / "examples/14_rma_put/put.c").read_bytes()
    text = (copies / "02_jacobi" / "README.md").read_text()
    assert text == (ROOT / "examples/02_jacobi/README.md").read_text()
    assert "$ apenet run -n 16" in text
    assert ".venv" not in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["copy", "99"], 'example = "99": expected one of 01_pingpong, '),
        (["copy", "02", "--to", "taken"], 'folder = "taken/02_jacobi": expected a name that is not in use'),
        (["copy", "02", "--to", "file"], '--to = "file/02_jacobi": could not be written'),
    ],
)
def test_a_copy_that_is_refused(apenet, tmp_path, arguments, expected):
    (tmp_path / "taken" / "02_jacobi").mkdir(parents=True)
    (tmp_path / "file").touch()
    done = apenet("examples", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert expected in done.stderr
