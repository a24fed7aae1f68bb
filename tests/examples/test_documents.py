"""The documentation's transcripts equal the output of their commands."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_splice():
    specification = importlib.util.spec_from_file_location("splice", ROOT / "docs" / "splice.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


splice = load_splice()
# The layout of help texts depends on typer's version.
NOT_COMPARED = ("docs/reference/cli.md",)
DOCUMENTS = [path for path in splice.documents() if str(path.relative_to(ROOT)) not in NOT_COMPARED]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_is_current(document):
    shown = document.read_text(encoding="utf-8")
    assert splice.spliced(document) == shown, "run: .venv/bin/python docs/splice.py"


def test_first_screen_of_the_readme():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("## "))
    assert end <= 41
    assert max(map(len, lines[:end])) <= 120


def test_links_between_documents_lead_somewhere():
    for document in [
        ROOT / "README.md",
        *ROOT.glob("src/*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
    ]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.relative_to(ROOT)}: {target}"
