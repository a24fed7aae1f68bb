"""Files of the repository: own files only, of limited size, without traces of the machine they were made on."""

import re
from collections.abc import Iterable
from pathlib import Path

from project import ALL, ROOT, TEXTS, cxx_files, files, name, text

LARGEST_BYTES = 2**20
LONGEST_SOURCE = 600  # lines; above about 500 a file should be split
SOURCES = {".cpp", ".hpp", ".c", ".h", ".py"}

OURS = [path for path in TEXTS if path.name != "LICENSE"]


def matches(paths: Iterable[Path], pattern: str, flags: int = 0) -> list[str]:
    """The matches of the pattern in the files, as `file: text`."""
    found = ((path, re.search(pattern, text(path), flags)) for path in paths)
    return [f"{name(path)}: {match[0]}" for path, match in found if match]


def test_no_file_is_large():
    assert [name(path) for path in ALL if path.stat().st_size > LARGEST_BYTES] == []


def test_no_source_is_long():
    sources = [path for path in ALL if path.suffix in SOURCES]
    assert sources
    assert [name(path) for path in sources if len(text(path).splitlines()) > LONGEST_SOURCE] == []


def test_no_path_of_a_machine():
    folders = "|".join(("work", "root", "home", "Users"))
    assert matches(TEXTS, rf"(?<![\w.$}}*~/-])/(?:{folders})/\w") == []


def test_no_file_of_another_project():
    words = (
        "copy" + r"right\s*(?:\(c\)|©|\d{4})",
        "all rights " + "reserved",
        "SPDX-" + "License",
        "GNU General " + "Public",
    )
    assert matches(OURS, "|".join(words), re.IGNORECASE) == [], "a file has a licence of its own"


def test_no_mark_of_unfinished_work():
    words = ("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK", "not " + "implemented", "place" + "holder")
    assert matches(OURS, r"\b(?:" + "|".join(words) + r")\b") == []


def test_no_address_of_a_package_registry():
    hosts = ("pypi" + r"\.org", "python" + r"hosted\.org", "--index" + "-url", "--extra-index" + "-url")
    assert matches(TEXTS, "|".join(hosts)) == []


def test_clang_tidy_reports_of_sources_that_other_files_include():
    """`make tidy` compiles the sources of a module as few files that include them."""
    (pattern,) = re.findall(r"^HeaderFilterRegex: '(.*)'$", text(ROOT / ".clang-tidy"), re.MULTILINE)
    sources = [path for path in cxx_files("src") if path.suffix in {".cpp", ".hpp"}]
    assert sources
    assert [name(path) for path in sources if not re.search(pattern, path.as_posix())] == []


def test_the_list_of_the_tests_of_the_night_names_tests(unknown_in_whole):
    assert unknown_in_whole == []


def test_digits_are_those_of_ascii():
    """In Python, \\d also matches the digits of other scripts, and int() reads them; only bytes are plain."""
    package = [path for path in files("python") if path.suffix == ".py"]
    assert package
    assert matches(package, r"""^(?!.*\brb["']).*(?<!\\)\\d.*$""", re.MULTILINE) == []


def test_the_search_finds_what_it_looks_for(tmp_path, monkeypatch):
    monkeypatch.setattr("project.ROOT", tmp_path)
    source = tmp_path / "bad.py"
    source.write_text("# TO" + "DO later\n")
    assert matches([source], "TO" + "DO") == ["bad.py: TO" + "DO"]


def test_headers_are_included_once():
    for path in cxx_files("src"):
        if path.suffix == ".hpp":
            assert "#pragma once" in text(path), name(path)


def test_every_cpp_test_is_built():
    for path in cxx_files("tests"):
        if path.name.endswith("_test.cpp"):
            assert path.stem in text(path.parent / "CMakeLists.txt"), f"{name(path)} is in no CMakeLists.txt"
            folders = path.parent.relative_to(ROOT / "tests").parts
            listed = text(ROOT / "tests" / "CMakeLists.txt")
            if len(folders) > 1:
                listed += text(ROOT / "tests" / folders[0] / "CMakeLists.txt")
            assert all(re.search(rf"\b{folder}\b", listed) for folder in folders), f"{name(path)}: folder not added"


def test_every_core_source_is_built():
    for path in cxx_files("src"):
        if path.suffix == ".cpp":
            folder = path.parent
            while not (folder / "CMakeLists.txt").exists():
                folder = folder.parent
            listed = text(folder / "CMakeLists.txt")
            parents = "".join(text(up / "CMakeLists.txt") for up in folder.parents if (up / "CMakeLists.txt").exists())
            globbed = any(path in folder.glob(pattern) for pattern in re.findall(r"\S*\*\S*\.cpp", listed))
            is_listed = path.relative_to(folder).as_posix() in listed or path.name in parents
            assert is_listed or globbed, f"{name(path)} is not built"


def test_every_example_is_run():
    """Either by its own test, or by a command in a document, whose output tests/examples compares."""
    tests = "".join(text(path) for path in files("tests") if path.suffix == ".py")
    documents = "".join(text(path) for path in files("README.md", "docs", "examples") if path.suffix == ".md")
    programs = [path for path in files("examples") if path.suffix in {".c", ".py"}]
    assert programs
    for program in programs:
        assert program.name in tests or name(program) in documents, f"nobody runs {name(program)}"


def test_documented_commands_exist():
    """Commands in code blocks of the documentation exist."""
    places = next(path for path in files("python") if name(path) == "python/apenet/cli/__init__.py")
    known = set(re.findall(r'^    "([a-z-]+)": _Place\(', text(places), flags=re.MULTILINE))
    assert {"run", "bench"} <= known
    for path in files("docs", "README.md", "examples"):
        if path.suffix == ".md":
            for block in re.findall(r"```[^\n]*\n(.*?)```", text(path), flags=re.DOTALL):
                for command in re.findall(r"^[ $]*(?:\S*/)?apenet ([a-z]+)", block, flags=re.MULTILINE):
                    assert command in known, f"{name(path)}: apenet {command}"


def test_every_test_left_to_the_night_exists():
    lines = [line for line in (ROOT / "tests" / "whole.txt").read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert lines == sorted(set(lines))
    for line in lines:
        file, _, test = line.partition("::")
        assert f"def {test.partition('[')[0]}(" in text(ROOT / file), line


def test_contributors_find_each_folder_of_tests():
    table = text(ROOT / "CONTRIBUTING.md").partition("## Where a test lives")[2].partition("##")[0]
    listed = {
        folder for row in re.findall(r"^\| (`.*?) \|", table, re.MULTILINE) for folder in re.findall(r"`(\w+)`", row)
    }
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in files("tests") if path.parent != ROOT / "tests"}
    assert listed == folders - {"support"}


def test_what_contributors_are_told_to_run_is_there():
    paths = re.findall(r"\btests/[\w/.]+\.\w+", text(ROOT / "CONTRIBUTING.md"))
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_python_tests_mirror_the_package():
    """tests/python/X holds the tests of apenet.X."""
    parts = {path.relative_to(ROOT / "tests/python").parts for path in files("tests/python")}
    assert {folder[0] for folder in parts if len(folder) == 1} == set(), "expected it in a folder"
    assert {folder[0] for folder in parts} <= {path.parent.name for path in files("python/apenet/*/__init__.py")}
