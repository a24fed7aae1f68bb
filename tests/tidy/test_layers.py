"""Which module may include and import what: src/modules.json, executed. CMake links what it says there."""

import ast
import graphlib
import importlib.util
import json
import re
from pathlib import Path

import pytest
from project import ROOT, cxx_files, files, name, text

_SPECIFICATION = importlib.util.spec_from_file_location("splice", ROOT / "docs" / "splice.py")
assert _SPECIFICATION is not None
assert _SPECIFICATION.loader is not None
splice = importlib.util.module_from_spec(_SPECIFICATION)
_SPECIFICATION.loader.exec_module(splice)
MODULES = json.loads(text(ROOT / "src" / "modules.json"))
INCLUDES = {entry["module"]: entry["includes"] for entry in MODULES["src"]}
PYTHON_IMPORTS = {entry["module"].removesuffix(".py"): entry["imports"] for entry in MODULES["python"]}


def module_of(file: str) -> str:
    """The module of a file that is named from src/: the one with the longest name."""
    stem = file.partition(".")[0]
    parts = stem.split("/")
    for length in range(len(parts), 0, -1):
        module = "/".join(parts[:length])
        if module in INCLUDES:
            return module
    pytest.fail(f"src/{file} is in no module of src/modules.json")


def may_include(module: str, header: str) -> bool:
    return module_of(header) == module or any(
        header == entry or module_of(header) == entry or header.startswith(f"{entry}/") for entry in INCLUDES[module]
    )


def test_includes_follow_the_layers():
    wrong = []
    for path in cxx_files("src"):
        module = module_of(path.relative_to(ROOT / "src").as_posix())
        for header in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text(path), flags=re.MULTILINE):
            local = (path.parent / header).exists() and "/" not in header
            if not local and not may_include(module, header):
                wrong.append(f"{name(path)} includes {header}: not allowed in {module}")
    assert wrong == []


def test_every_module_includes_only_what_stands_after_it():
    """So no module imports upwards, and none in a cycle. A single header may stand before: it is a value type."""
    order = [entry["module"] for entry in MODULES["src"]]
    for entry in MODULES["src"]:
        for other in (*entry["links"], *entry["includes"]):
            if other in INCLUDES:
                assert order.index(other) > order.index(entry["module"]), f"{entry['module']} imports {other}"


def test_python_modules_import_only_what_stands_after_them():
    order = list(PYTHON_IMPORTS)
    wrong = [
        f"{module} imports {other}"
        for module, imports in PYTHON_IMPORTS.items()
        for other in imports
        if order.index(other) < order.index(module)
    ]
    assert wrong == []


def test_the_map_shows_the_modules():
    assert splice.modules_table("src") in text(ROOT / "src" / "README.md"), "run: .venv/bin/python docs/splice.py"


def test_nobody_includes_upwards_out_of_a_module():
    for path in cxx_files("src"):
        assert not re.search(r'#\s*include\s+"\.\./', text(path)), f"{name(path)} includes by a relative path"


def included(path: Path) -> set[Path]:
    """The files of src/ that a file includes."""
    headers = re.findall(r'^\s*#\s*include\s+"([^"]+)"', text(path), flags=re.MULTILINE)
    places = [(ROOT / "src" / header, path.parent / header) for header in headers]
    return {place for both in places for place in both if place.exists()}


def test_headers_include_in_no_circle():
    graphlib.TopologicalSorter({path: included(path) for path in cxx_files("src")}).prepare()


# The package's __init__.py, its interface, may import all.
PACKAGE = ROOT / "python" / "apenet"


def python_modules() -> dict[str, Path]:
    """The package's modules by their names."""
    paths = (path for path in files("python/apenet") if path.suffix == ".py")
    parts = ((path.relative_to(PACKAGE.parent).with_suffix("").parts, path) for path in paths)
    return {".".join(part for part in names if part != "__init__"): path for names, path in parts}


def imported(path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of this package that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {f"{node.module}.{alias.name}" for alias in node.names} - {"apenet._core"}
            found |= {name if name in modules else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules.keys()


def test_python_modules_follow_the_layers():
    modules = python_modules()
    wrong = []
    for module, path in modules.items():
        if module in ("apenet", "apenet.__main__"):  # the latter calls the console script
            continue
        part = module.split(".")[1]
        assert part in PYTHON_IMPORTS, f"{name(path)} is in no module of src/modules.json"
        for other in imported(path, modules):
            if other == "apenet" or other.split(".")[1] not in (part, *PYTHON_IMPORTS[part]):
                wrong.append(f"{name(path)} imports {other}: not allowed in {part}")
    assert wrong == []


def test_python_modules_import_in_no_circle():
    modules = python_modules()
    graph = {module: imported(path, modules) - {module} for module, path in modules.items()}
    graphlib.TopologicalSorter(graph).prepare()
