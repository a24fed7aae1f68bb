"""The documentation's transcripts equal the output of their commands."""

import importlib.util
import json
import os
import re
import shlex
from pathlib import Path

import pytest
from forked import run_forked

ROOT = Path(__file__).resolve().parents[2]


def load_splice():
    specification = importlib.util.spec_from_file_location("splice", ROOT / "docs" / "splice.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


splice = load_splice()
PLAIN = re.compile(r"apenet ([\w\s.,:/=+@%'-]*)")
"""A command without anything that only a shell does."""
# The layout of help texts depends on typer's version.
NOT_COMPARED = ("docs/reference/cli.md",)
DOCUMENTS = [path for path in splice.documents() if str(path.relative_to(ROOT)) not in NOT_COMPARED]


class ForkedWorkplace(splice.Workplace):
    """Runs plain commands of apenet without a new interpreter each."""

    def output(self, command, environment):
        plain = PLAIN.fullmatch(command)
        if plain is None:
            return super().output(command, environment)
        return self.forked(shlex.split(plain[1]), environment, is_merged=True)

    def json(self, *arguments):
        return json.loads(self.forked([*arguments, "--json"], dict(os.environ), is_merged=False))

    def forked(self, arguments, environment, *, is_merged):
        here = {**environment, "PWD": str(self.folder)}
        limit = splice.TIME_LIMIT_S
        return run_forked(arguments, self.folder, env=here, timeout_s=limit, is_merged=is_merged).stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_document_is_current(document):
    shown = document.read_text(encoding="utf-8")
    assert splice.spliced(document, ForkedWorkplace) == shown, "run: .venv/bin/python docs/splice.py"


def test_the_page_of_the_command_line_has_each_command(apenet):
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    shown, now = page.partition("```\n\n")[0], apenet("--help").stdout
    commands = [
        re.findall(r"^  ([a-z-]+) {2,}\S", text.partition("Commands:")[2], re.MULTILINE) for text in (shown, now)
    ]
    assert len(commands[1]) > 15
    assert commands[0] == commands[1]


def test_first_screen_of_the_readme():
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    end = next(i for i, line in enumerate(lines) if line.startswith("## "))
    assert end <= 41
    assert max(map(len, lines[:end])) <= 120


PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *ROOT.glob("src/*.md"),
    *ROOT.glob("docs/**/*.md"),
    *ROOT.glob("examples/**/*.md"),
]


def anchors_of(page):
    """The anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(page):
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        linked = page.parent / target if target else page
        assert linked.exists(), target
        assert not anchor or anchor in anchors_of(linked), f"{target}#{anchor}"


def test_every_page_is_listed():
    """docs/README.md leads to each page and each example."""
    index = ROOT / "docs" / "README.md"
    targets = re.findall(r"\]\(([^)#:]+)", index.read_text(encoding="utf-8"))
    linked = {(index.parent / target).resolve() for target in targets}
    assert [page for page in PAGES if page not in linked and page not in (index, ROOT / "README.md")] == []
