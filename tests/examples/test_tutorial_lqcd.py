"""The steps of docs/tutorial-lqcd.md, with a small program in the place of SOMBRERO and fewer ranks."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
SMALLER = {"16x16x16x16": "8x8x8x8", "-n 64": "-n 8", "/4x4x2x2": "/2x2x2x1", "ape128 qpace pax": "qpace"}


def steps() -> list[str]:
    """The commands of the numbered sections, without those that fetch and build SOMBRERO."""
    text = (ROOT / "docs" / "tutorial-lqcd.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \d+\. .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    blocks = [block for section in sections for block in re.findall(r"```sh\n(.*?)```", section, re.DOTALL)]
    return [block for block in blocks if "git clone" not in block]


@pytest.fixture(scope="module")
def said(build, tmp_path_factory) -> list[str]:
    """What each block prints."""
    folder = tmp_path_factory.mktemp("tutorial")
    (folder / "sombrero").mkdir()
    (folder / "sombrero" / "sombrero2").symlink_to(build(Path(__file__).with_name("lattice_stand_in.c")))
    printed, before = [], ""
    for block in steps():
        script = block
        for text, smaller in SMALLER.items():
            script = script.replace(text, smaller)
        done = subprocess.run(
            ["bash", "-euc", f"{before}\n{script}"],
            cwd=folder,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "120", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, block + done.stdout + done.stderr
        before = "\n".join([before, *re.findall(r"^L=.*$", script, re.MULTILINE)])
        printed.append(done.stdout + done.stderr)
    return printed


def test_every_step_of_the_tutorial_runs(said):
    look, record, fit, run = said
    assert "compute: none" in look
    assert re.findall(r"compute: record:(\d)\.json", record) == ["2", "4", "8"]
    assert "Recording of 16 ranks: all computation predicted with an error of" in fit
    assert "wrote sombrero2.json" in fit
    assert "compute: sombrero2.json, recorded times x" in run
    assert "regions that the profile does not have" not in run
    sums = [re.findall(r"^sum (\S+) in", text, re.MULTILINE) for text in said]
    assert [len(found) for found in sums] == [1, 3, 1, 1]
    assert len({value for found in sums for value in found}) == 1
