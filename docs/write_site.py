"""Writes what the builder of the documentation's site reads, from the pages as they stand: `make docs`.

The pages keep their folders, so that a link that works in the repository works on the site. docs/README.md is the
index: its sections are those of the navigation. The reference of the Python package is made from the docstrings of the
installed package, that of the C headers from the headers.

    .venv/bin/python docs/write_site.py FOLDER    writes FOLDER/mkdocs.yml and FOLDER/pages
"""

import argparse
import importlib
import inspect
import json
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from apenet import bench

ROOT = Path(__file__).resolve().parents[1]
INDEX = Path("docs/README.md")
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")
TITLE = re.compile(r"^(?:# |title: )[\"']?(.+?)[\"']?$", re.MULTILINE)
# What a user imports: each gets a page.
PYTHON_MODULES = (
    "apenet",
    "apenet.bench",
    "apenet.fit",
    "apenet.fit.calibrate",
    "apenet.reproduce",
    "apenet.study",
    "apenet.apelib",
)
PYTHON_PAGES = Path("docs/apis/python")
HEADER_PAGES = Path("docs/apis/headers")

# That of MkDocs and its theme Material, which Zensical reads, too.
CONFIGURATION: dict[str, Any] = {
    "site_name": "APENet in software",
    "site_description": "Unmodified MPI programs on a simulated interconnect, in deterministic virtual time",
    "docs_dir": "pages",
    "site_dir": "html",
    "use_directory_urls": False,  # so that the site works from a folder, without a server
    "theme": {
        "name": "material",
        "font": False,  # nothing is loaded from elsewhere
        "features": ["navigation.tabs", "navigation.top", "search.highlight", "content.code.copy", "toc.follow"],
        "palette": [
            {
                "media": f"(prefers-color-scheme: {scheme})",
                "scheme": name,
                "primary": "indigo",
                "toggle": {"icon": icon, "name": f"Switch to {other} colours"},
            }
            for scheme, name, icon, other in (
                ("light", "default", "material/weather-night", "dark"),
                ("dark", "slate", "material/weather-sunny", "light"),
            )
        ],
    },
    "plugins": [
        "search",
        {
            "mkdocstrings": {
                "handlers": {
                    "python": {
                        "options": {
                            "show_source": False,
                            "show_root_heading": True,
                            "show_root_full_path": False,
                            "filters": ["!^_"],
                            "heading_level": 2,
                            "separate_signature": True,
                        }
                    }
                }
            }
        },
    ],
    "markdown_extensions": ["admonition", "attr_list", "tables", {"toc": {"permalink": True}}, "pymdownx.superfences"],
    "validation": {
        "omitted_files": "warn",
        "absolute_links": "warn",
        "unrecognized_links": "warn",
        "anchors": "warn",
    },
}


@dataclass
class Section:
    """A section of the index, or a part of one."""

    title: str
    pages: list[Path] = field(default_factory=list)
    parts: list["Section"] = field(default_factory=list)

    def all_pages(self) -> list[Path]:
        """Those of its parts, too."""
        return [*self.pages, *(page for part in self.parts for page in part.pages)]

    def navigation(self, titles: dict[Path, str]) -> dict[str, list[Any]]:
        """As mkdocs wants it."""
        entries: list[Any] = [{titles[page]: str(page)} for page in self.pages]
        return {self.title: entries + [part.navigation(titles) for part in self.parts]}


def linked_pages(page: Path, text: str) -> list[Path]:
    """The files that a page links to, relative to the root."""
    targets = (link.group(1) for link in LINK.finditer(text))
    return [
        (ROOT / page.parent / target).resolve().relative_to(ROOT)
        for target in targets
        if not re.match(r"[a-z]+:", target)
    ]


def read_index() -> list[Section]:
    """The sections of the index, with each page in the first place that names it."""
    sections: list[Section] = []
    seen: set[Path] = set()
    for block in re.split(r"^(?=###? )", (ROOT / INDEX).read_text(), flags=re.MULTILINE)[1:]:
        heading, _, text = block.partition("\n")
        section = Section(heading.lstrip("# "))
        for page in linked_pages(INDEX, text):
            if page.suffix == ".md" and page not in seen:
                seen.add(page)
                section.pages.append(page)
        if heading.startswith("## "):
            sections.append(section)
        else:
            sections[-1].parts.append(section)
    return sections


def title_of(page: Path, text: str) -> str:
    """The first heading, or the title above it, as plain text."""
    found = TITLE.search(text)
    if not found:
        raise SystemExit(f"{page}: expected a heading")
    return found.group(1).replace("`", "")


def read_pages(pages: list[Path]) -> dict[Path, str]:
    """The texts of the pages, and of the files to which they link."""
    texts = {page: (ROOT / page).read_text() for page in pages}
    for page in pages:
        for target in linked_pages(page, texts[page]):
            if not (ROOT / target).is_file():
                raise SystemExit(f"{page}: links to {target}, expected a file")
            if target.suffix == ".md" and target not in texts:
                raise SystemExit(f"{page}: links to {target}, which {INDEX} does not list")
    return texts


def python_reference() -> dict[Path, str]:
    """A page for each module that users import."""
    pages = {}
    for name in PYTHON_MODULES:
        module = importlib.import_module(name)
        own = [key for key, member in vars(module).items() if getattr(member, "__module__", None) == name]
        blocks = [f"# {name}", inspect.getdoc(module) or ""]
        for member in sorted(getattr(module, "__all__", own)):
            described = getattr(module, member)
            if callable(described) and not member.startswith("_"):
                blocks.append(f"::: {described.__module__}.{described.__qualname__}")
        # Its functions are made from the tests when the package is imported: no source defines them.
        for test in sorted(bench.TESTS) if module is bench else ():
            function = getattr(bench, test)
            parameters = inspect.signature(function).parameters.values()
            signature = "".join(f"    {parameter},\n" for parameter in parameters)
            options = re.sub(r"^(\w+): ", r"- `\1`: ", inspect.getdoc(function) or "", flags=re.MULTILINE)
            blocks += [f"## {test}", f"```python\n{test}(\n{signature})\n```", options]
        pages[PYTHON_PAGES / f"{name}.md"] = "\n\n".join(blocks) + "\n"
    return pages


def header_reference() -> dict[Path, str]:
    """A page for each public C header, and for Fortran's module."""
    pages = {}
    installed = Path(inspect.getfile(importlib.import_module("apenet"))).parent / "include"
    for header in sorted(file for file in installed.rglob("*") if file.suffix in {".h", ".f90"}):
        name = header.relative_to(installed)
        language = "c" if header.suffix == ".h" else "fortran"
        pages[HEADER_PAGES / f"{name}.md"] = f"# {name}\n\n````{language}\n{header.read_text()}````\n"
    return pages


def write_sources(folder: Path) -> None:
    """Writes the pages and the configuration."""
    sections = read_index()
    front = Path("README.md")
    texts = read_pages([front, INDEX, *(page for section in sections for page in section.all_pages())])
    reference = next(section for section in sections if section.title == "Look up")
    for title, made in (("Python", python_reference()), ("C headers", header_reference())):
        reference.parts.append(Section(title, list(made)))
        texts |= made
    titles = {page: title_of(page, text) for page, text in texts.items()}
    navigation = [{"Overview": [str(front), {"All pages": str(INDEX)}]}]
    navigation += [section.navigation(titles) for section in sections]
    shutil.rmtree(folder, ignore_errors=True)
    linked = {target for page, text in texts.items() for target in linked_pages(page, text)}
    for page in {*texts, *linked}:
        to = folder / "pages" / page
        to.parent.mkdir(parents=True, exist_ok=True)
        if page in texts:
            to.write_text(texts[page])
        else:
            shutil.copyfile(ROOT / page, to)
    # JSON is YAML, too.
    (folder / "mkdocs.yml").write_text(json.dumps({**CONFIGURATION, "nav": navigation}, indent=2))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="is emptied")
    write_sources(parser.parse_args().folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
