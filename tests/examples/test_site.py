"""The site of the documentation: what its builder is given. `make docs` builds it, and finds dead links."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([sys.executable, ROOT / "docs" / "write_site.py", folder], check=True)
    return folder


def pages_of(navigation: Any) -> list[str]:
    if isinstance(navigation, str):
        return [navigation]
    below = navigation.values() if isinstance(navigation, dict) else navigation
    return [page for entry in below for page in pages_of(entry)]


def test_each_page_has_one_place_in_the_navigation(site: Path) -> None:
    listed = pages_of(json.loads((site / "mkdocs.yml").read_text())["nav"])
    assert sorted(listed) == sorted(str(page.relative_to(site / "pages")) for page in site.glob("pages/**/*.md"))
    assert {str(page.relative_to(ROOT)) for page in ROOT.glob("docs/**/*.md")} <= set(listed)


def test_the_python_reference_has_what_the_package_offers(site: Path) -> None:
    reference = site / "pages" / "docs" / "apis" / "python"
    assert "::: apenet.run.program.run\n" in (reference / "apenet.md").read_text()
    # A function that no source defines.
    assert "\n## pingpong\n" in (reference / "apenet.bench.md").read_text()
    assert "- `sizes`: Message sizes" in (reference / "apenet.bench.md").read_text()


def test_the_headers_are_those_of_the_package(site: Path) -> None:
    for name in ("apelib/apelib.h", "apelib/apelib.f90", "gasnet/gasnet_calls.h", "extoll/velo2.h"):
        header = ROOT / "src" / "api" / name
        page = site / "pages" / "docs" / "apis" / "headers" / f"{header.name}.md"
        assert header.read_text() in page.read_text()


def test_no_page_names_a_path_of_the_host(site: Path) -> None:
    for page in site.glob("pages/docs/apis/**/*.md"):
        assert str(ROOT) not in page.read_text(), page
