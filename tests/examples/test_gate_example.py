"""The gate of example 08 on the commits of a repository, and the GitHub Action's steps beside a false `gh`."""

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
RING = ROOT / "examples" / "08_gate"
GH = """\
#!/bin/bash
printf '%s\\n' "$*" >> "$LOG"
[ -e "$REFUSED" ] && exit 1
case "$*" in *--jq*) cat "$COMMENTS" ;; esac
exit 0
"""


@pytest.fixture
def repository(tmp_path):
    """A repository whose second commit makes the program faster, and a function that runs git in it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    identity = ["-c", "user.name=A", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]

    def git(*words):
        subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)

    def commit(source, message):
        shutil.copy(RING / source, folder / "halo.c")
        git("add", ".")
        git("commit", "-m", message)
        git("tag", message)

    git("init", "--initial-branch", "main")
    shutil.copy(RING / "apenet.toml", folder)
    (folder / ".gitignore").write_text("/halo\n/gate.md\n")
    commit("halo.c", "slow")
    commit("halo_fast.c", "fast")
    return folder, git


def compile_at(folder, git, commit):
    git("checkout", commit, "--", "halo.c")
    subprocess.run([BIN / "mpicc", "-O1", "halo.c", "-o", "halo"], cwd=folder, check=True)


def test_a_slow_commit_is_seen_and_a_fast_one_accepted(apenet, repository):
    folder, git = repository
    compile_at(folder, git, "slow")
    assert apenet("gate", "--update", cwd=folder).returncode == 0
    compile_at(folder, git, "fast")
    done = apenet("gate", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "| better |" in done.stdout
    assert apenet("gate", "--update", cwd=folder).returncode == 0
    git("add", ".")
    git("commit", "-m", "accept")
    assert "1 run equal, in every event" in apenet("gate", cwd=folder).stdout
    compile_at(folder, git, "slow")
    done = apenet("gate", "--summary", "gate.md", cwd=folder)
    assert done.returncode == 1
    assert (folder / "gate.md").read_text() == done.stdout
    values = json.loads((folder / "apenet-gate.json").read_text())["runs"]["ring"]["values"]
    # 10 steps of two messages to two neighbours each, on 8 ranks; 8 KiB of payload in each.
    assert values["messages"] == 160
    assert values["bytes"] >= 160 * 8192


def steps():
    """The shell commands of the action by the names of its steps."""
    found = re.findall(r"- id: (\w+)\n(.*?)(?=\n    - id:|\Z)", (ROOT / "action.yml").read_text(), flags=re.DOTALL)
    return {name: textwrap.dedent(body.partition("run: |\n")[2]) for name, body in found}


@pytest.fixture
def act(repository, tmp_path):
    """Runs a step of the action as the runner does, in the repository."""
    folder, _ = repository
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    variables = {
        "PATH": f"{tools}:{BIN}:{os.environ['PATH']}",
        "RUNNER_TEMP": str(tmp_path),
        "REPOSITORY": "a/b",
        "NUMBER": "7",
        "ARGUMENTS": "--max +1%",
        "LOG": str(tmp_path / "gh.log"),
        "COMMENTS": str(tmp_path / "comments"),
        "REFUSED": str(tmp_path / "refused"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
    }
    (tmp_path / "comments").write_text("")

    def run(name, **given):
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps()[name]]
        environment = {**os.environ, **variables, **given}
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return run


def test_the_action_has_the_steps_of_a_composite_one():
    assert list(steps()) == ["sources", "cache", "install", "path", "build", "gate", "comment", "verdict"]
    assert [name for name, body in steps().items() if not body] == ["cache"]
    text = (ROOT / "action.yml").read_text()
    # Nothing that a pull request controls is pasted into a shell.
    assert not [line for body in steps().values() for line in body.splitlines() if "${{" in line]
    assert text.count("shell: bash") == len(steps()) - 1


def test_each_expression_of_the_action_names_something_that_is_there():
    text = (ROOT / "action.yml").read_text()
    inputs = set(
        re.findall(r"^  (\w+):$", text.partition("inputs:\n")[2].partition("outputs:\n")[0], flags=re.MULTILINE)
    )
    assert inputs == {"build", "folder", "arguments", "token"}
    bodies = {name: text.index(f"- id: {name}\n") for name in steps()}
    for found in re.finditer(r"\b(inputs|steps)\.(\w+)(?:\.outputs\.([\w-]+))?", text):
        kind, name, output = found.groups()
        if kind == "inputs":
            assert name in inputs
        elif (name, output) != ("cache", "cache-hit"):  # actions/cache sets it
            assert f'echo "{output}=' in steps()[name]
            is_of_the_action = found.start() < text.index("runs:\n")
            assert is_of_the_action or found.start() > bodies[name]
    # Variables that the steps read are the runner's or in their own `env`.
    given = {"GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY", "RUNNER_TEMP"}
    for name, body in steps().items():
        head = text[bodies[name] : text.index("run: |", bodies[name])] if body else ""
        own = set(re.findall(r"^        ([A-Z_]+):", head, flags=re.MULTILINE))
        assert set(re.findall(r"\$\{?([A-Z_]+)\b", body)) <= given | own


def test_the_workflow_of_the_page_gives_the_action_inputs_that_it_has():
    page = (ROOT / "docs/reference/gate.md").read_text()
    example = page[page.index("uses: OWNER/apenet@main") :].partition("```")[0]
    given = set(re.findall(r"^ +(\w+):", example.partition("with:")[2], flags=re.MULTILINE))
    assert given
    assert given <= {"build", "folder", "arguments", "token"}


def test_the_action_builds_again_when_a_file_of_its_sources_has_changed(act, tmp_path):
    sources = tmp_path / "sources"
    sources.mkdir()
    keys = []
    for content in ("one", "two", "one"):
        (sources / "file name.txt").write_text(content)
        (tmp_path / "output").write_text("")
        assert act("sources", SOURCE=str(sources)).returncode == 0
        keys.append((tmp_path / "output").read_text())
    assert re.fullmatch(r"key=3\.\d+\.\d+-[0-9a-f]{64}\n", keys[0])
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize(("commit", "status"), [("fast", 0), ("slow", 1)])
def test_the_action_comments_and_ends_as_the_gate(apenet, repository, act, tmp_path, commit, status):
    folder, git = repository
    compile_at(folder, git, "fast")
    assert apenet("gate", "--update", cwd=folder).returncode == 0
    compile_at(folder, git, commit)
    done = act("gate")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output").read_text() == f"status={status}\n"
    summary = (tmp_path / "summary.md").read_text()
    assert summary == (tmp_path / "apenet-gate.md").read_text()
    assert "+1 %" in summary
    assert act("comment").returncode == 0
    assert "--method POST repos/a/b/issues/7/comments" in (tmp_path / "gh.log").read_text()
    (tmp_path / "comments").write_text("41\n42\n")
    assert act("comment").returncode == 0
    assert "--method PATCH repos/a/b/issues/comments/41" in (tmp_path / "gh.log").read_text()
    assert act("verdict", STATUS=str(status)).returncode == status


def test_the_action_says_why_nothing_was_compared(repository, act, tmp_path):
    done = act("gate")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "output").read_text() == "status=2\n"
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("<!-- apenet gate -->\n### apenet gate: nothing was compared\n")
    assert "apenet-gate.json" in summary
    (tmp_path / "refused").touch()
    refused = act("comment")
    assert refused.returncode == 0
    assert "::warning::" in refused.stdout
