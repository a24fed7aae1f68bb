"""The recipes of packaging/, the workflows and the forms agree with the project; none of them is run here."""

import re
import tomllib
from pathlib import PurePosixPath

import pytest
from project import ROOT, files, name, text

PACKAGING = ROOT / "packaging"
CONTAINERFILE = PACKAGING / "Containerfile"
APPTAINER = PACKAGING / "apenet.def"
SPACK = PACKAGING / "spack" / "package.py"
CONDA = PACKAGING / "conda" / "recipe.yaml"
WORKFLOWS = files(".github/workflows/*.yml")
PROJECT = tomllib.loads(text(ROOT / "pyproject.toml"))["project"]
(VERSION,) = re.findall(r"^project\(apenet VERSION ([\d.]+)", text(ROOT / "CMakeLists.txt"), re.MULTILINE)


def easyconfig():
    (path,) = files("packaging/easybuild/*.eb")
    return path


def parsed(path):
    return pytest.importorskip("yaml").safe_load(text(path))


def commands(tree):
    """The shell commands of a workflow."""
    steps = [step for job in tree["jobs"].values() for step in job.get("steps", ())]
    return [step["run"] for step in steps if "run" in step]


def dependencies():
    """The versions that pyproject.toml asks for at least, by name."""
    return dict(line.split(">=") for line in PROJECT["dependencies"])


def test_the_table_lists_the_files():
    listed = re.findall(r"^\| \[([^]]+)\]\(\1\) ", text(PACKAGING / "README.md"), re.MULTILINE)
    assert sorted(listed) == sorted(
        path.relative_to(PACKAGING).as_posix() for path in files("packaging") if path.name != "README.md"
    )


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        (ROOT / "CITATION.cff", r"^version: (.*)$"),
        (APPTAINER, r"^    Version (.*)$"),
        (SPACK, r'^    version\("([\d.]+)", tag="v\1"\)$'),
        (CONDA, r'^  version: "(.*)"$'),
        (easyconfig(), r"^version = '(.*)'$"),
    ],
    ids=lambda given: name(given) if hasattr(given, "name") else "",
)
def test_one_version(path, pattern):
    assert re.findall(pattern, text(path), re.MULTILINE) == [VERSION]


def test_the_name_of_the_easyconfig_has_its_version_and_toolchain():
    (toolchain,) = re.findall(
        r"^toolchain = \{'name': '(\w+)', 'version': '(\w+)'\}$", text(easyconfig()), re.MULTILINE
    )
    assert easyconfig().name == f"apenet-{VERSION}-{'-'.join(toolchain)}.eb"
    assert name(easyconfig()) in text(easyconfig()), "its first line names it"


def test_the_images_copy_what_there_is():
    sources = re.findall(r"^COPY ((?!--).+) \S+$", text(CONTAINERFILE), re.MULTILINE)
    copied = sorted(word for line in sources for word in line.split())
    assert copied
    assert [word for word in copied if not (ROOT / word).exists()] == []
    assert sorted(re.findall(r"^!(.+)$", text(ROOT / ".dockerignore"), re.MULTILINE)) == copied
    assert sorted(re.findall(r"^    (\S+) /source/\1$", text(APPTAINER), re.MULTILINE)) == copied
    # What the installation reads of the tree is part of it.
    used = re.findall(r"\$\{PROJECT_SOURCE_DIR\}/(\w+)", text(ROOT / "cmake" / "install.cmake"))
    assert used
    assert set(used) <= set(copied)


def test_both_images_install_the_same():
    def installed(path):
        pattern = r"apt-get install --yes --no-install-recommends ([\w+ .-]+?)(?: \\)?$"
        return re.findall(pattern, text(path), re.MULTILINE)

    assert len(installed(CONTAINERFILE)) == 2
    assert installed(APPTAINER) == installed(CONTAINERFILE)


def test_the_image_runs_apenet_as_an_ordinary_user():
    user, entry = text(CONTAINERFILE).index("\nUSER 1000\n"), text(CONTAINERFILE).index('\nENTRYPOINT ["apenet"]\n')
    assert text(CONTAINERFILE).rindex("\nFROM ") < user < entry


def test_spack_asks_for_what_the_package_asks_for():
    found = dict(re.findall(r'depends_on\("(?:py-)?([\w-]+)@([\d.]+):[^"]*", type=\("build", "run"\)\)', text(SPACK)))
    assert found == {package: re.sub(r"^(\d+)\.0$", r"\1", at_least) for package, at_least in dependencies().items()}


def test_conda_asks_for_what_the_package_asks_for():
    run = text(CONDA).partition("  run:\n")[2].partition("\n\n")[0]
    found = dict(re.findall(r"^    - ([\w-]+?)(?:-base)? >=([\d.]+)$", run, re.MULTILINE))
    assert found == dependencies() | {"python": PROJECT["requires-python"].removeprefix(">=")}


@pytest.mark.parametrize("path", WORKFLOWS, ids=name)
def test_workflows_run_what_there_is(path):
    targets = re.findall(r"^([\w-]+):", text(ROOT / "Makefile"), re.MULTILINE)
    tree = parsed(path)
    # `on` is a truth value of YAML 1.1.
    assert set(tree) >= {"name", True, "permissions", "jobs"}
    for command in commands(tree):
        assert set(re.findall(r"^\s*make ([\w-]+)", command, re.MULTILINE)) <= set(targets)
        named = re.findall(r"(?<![\w.-])((?:\.ci|docs|tests|python|packaging)/[\w./-]+)", command)
        assert [file for file in named if not (ROOT / PurePosixPath(file)).exists()] == []
        # Nothing that a pull request controls is pasted into a shell.
        assert re.findall(r"\$\{\{(?! matrix\.)", command) == []
    for job in tree["jobs"].values():
        if "uses" in job:
            assert (ROOT / job["uses"].removeprefix("./")).exists()
        else:
            assert job["runs-on"].startswith(("ubuntu-", "${{ matrix."))


def test_the_workflows_are_the_four():
    assert [path.stem for path in WORKFLOWS] == ["docs", "release", "test", "wheels"]


@pytest.mark.parametrize("path", files(".github/ISSUE_TEMPLATE/*.yml"), ids=name)
def test_forms_name_their_fields(path):
    tree = parsed(path)
    if path.name == "config.yml":
        assert tree == {"blank_issues_enabled": True}
        return
    assert {"name", "description", "body"} <= set(tree)
    fields = [field["id"] for field in tree["body"]]
    assert fields
    assert len(fields) == len(set(fields))
    assert any(field.get("validations", {}).get("required") for field in tree["body"])
