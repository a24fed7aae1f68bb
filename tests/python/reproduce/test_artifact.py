"""What the paper's appendix for artifact evaluation says of `apenet reproduce` is so."""

import hashlib
import importlib.metadata
import json
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "paper" / "artifact.md").read_text(encoding="utf-8")


def test_the_results_are_the_expected_bytes(apenet):
    (version, mpich) = re.search(r"version ([\d.]+) with MPICH ([\d.]+):", PAGE).groups()
    if importlib.metadata.version("mpich") != mpich:
        pytest.skip(f"the page states the bytes with MPICH {mpich}")
    done = apenet("reproduce", "--json", timeout_s=900)
    results = json.loads(done.stdout)
    assert results["version"] == version
    met, missed = re.search(r"\((\d+) hard targets met, (none|\d+) missed\)", PAGE).groups()
    assert (results["hard"]["met"], results["hard"]["missed"]) == (int(met), 0 if missed == "none" else int(missed))
    assert done.returncode == 0
    assert re.findall(r"^(\w{64})  results\.json$", PAGE, re.MULTILINE) == [
        hashlib.sha256(done.stdout.encode()).hexdigest()
    ]
