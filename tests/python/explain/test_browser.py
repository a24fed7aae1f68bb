"""The page in Debian's chromium, at the width of a screen and of a phone: what check_page.js asks of it."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import apenet
from apenet.cli.difference import content_of
from apenet.explain.measurement import measurement
from apenet.explain.report import page

HERE = Path(__file__).parent
CHROMIUM = shutil.which("chromium")
HOSTILE = "</script><img src=x onerror=alert(1)>"
OPTIONS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
OPTIONS += ["--disable-background-networking", "--disable-component-update", "--hide-scrollbars"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this host (Debian: apt-get install chromium)")


@pytest.fixture(scope="module")
def slow(build):
    return build(HERE / "slow_programs.c")


def chromium(tmp_path, *arguments):
    command = [CHROMIUM, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def checked(page: Path, width: int, tmp_path: Path):
    """What the checks find in the page, in a frame of this width: chromium's own windows are wider than a phone."""
    script = (HERE / "check_page.js").read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8").replace("<head>", f"<head><script>{script}</script>", 1)
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<!doctype html><title>none</title><body style="margin:0"><iframe srcdoc="{html.escape(text)}" '
        f'style="width:{width}px;height:900px;border:0"></iframe>',
        encoding="utf-8",
    )
    size = f"--window-size={max(width, 600)},900"
    found = chromium(tmp_path, size, "--virtual-time-budget=20000", "--dump-dom", frame.as_uri())
    return json.loads(html.unescape(re.search("<title>(.*?)</title>", found)[1]))


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("case", ["recorded", "tree", "hostile", "without recording", "failed"])
def test_a_page_can_be_read(slow, tmp_path, case, width):
    out = tmp_path / "run"
    options = {"record": out / "recording.goal"} if case != "without recording" else {}
    program = "deadlock" if case == "failed" else "imbalance"
    arguments = [program, HOSTILE] if case == "hostile" else [program]
    machine = "my-cluster" if case == "tree" else "ape16"
    apenet.run([slow, *arguments], n=16, machine=machine, out=out, capture=True, check=False, **options)
    found = checked(apenet.report(out), width, tmp_path)
    assert found["failures"] == []
    assert found["width"] == width
    assert found["canvases"] == {"without recording": 1, "failed": 0}.get(case, 3)
    assert found["sections"] >= 2
    assert found["chooses"] == (case != "failed")
    assert found["picks"] == (case != "failed")


@pytest.mark.parametrize("width", [1400, 390])
def test_a_page_of_a_measurement_can_be_read(tmp_path, width):
    rows = [
        {
            "machine": "m",
            "clock": clock,
            "size_bytes": 2**power,
            "time_us": 2.0**power / clock,
            "name": HOSTILE,
            "is_odd": power % 2 == 1,
        }
        for clock in range(50, 64)
        for power in range(12)
    ]
    file = tmp_path / "page.html"
    file.write_text(page(measurement(rows, command=HOSTILE, axes=("clock",))), encoding="utf-8")
    found = checked(file, width, tmp_path)
    assert found["failures"] == []
    assert found["width"] == width
    assert found["sections"] == 3


@pytest.mark.parametrize("width", [1400, 390])
def test_a_page_of_two_runs_can_be_read(slow, tmp_path, width):
    runs = [tmp_path / name for name in (HOSTILE.replace("/", "|"), "b")]
    for out, machine in zip(runs, ("ape16", "ape128"), strict=True):
        apenet.run([slow, "ring"], n=4, machine=machine, out=out, record=out / "recording.goal", capture=True)
    file = tmp_path / "page.html"
    file.write_text(page(content_of(apenet.difference(*runs))), encoding="utf-8")
    found = checked(file, width, tmp_path)
    assert found["failures"] == []
    assert found["width"] == width
    assert found["sections"] == 3


def test_a_page_can_be_printed(slow, tmp_path):
    out = tmp_path / "run"
    apenet.run([slow, "imbalance"], n=4, out=out, record=out / "recording.goal", capture=True)
    chromium(tmp_path, f"--print-to-pdf={tmp_path / 'page.pdf'}", apenet.report(out).as_uri())
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
