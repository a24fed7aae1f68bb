"""Completion scripts and man pages are made of the commands' options: nothing is written twice."""

import shutil
import subprocess

import pytest

from apenet.cli import command
from apenet.cli.completion import manual
from apenet.cli.pages import pages

ALL = {page.words: page for page in pages(command())}


@pytest.fixture(scope="module")
def completed(apenet, tmp_path_factory):
    """What bash offers for the last of these words."""
    script = tmp_path_factory.mktemp("completion") / "apenet.bash"
    script.write_text(apenet("completion", "bash").stdout)
    ask = f'source "{script}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _apenet; echo "${{COMPREPLY[*]}}"'

    def offered(*words):
        done = subprocess.run(["bash", "-c", ask, "bash", *words], capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    return offered


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["apenet", "ru"], ["run"]),
        (["apenet", "machine", ""], ["show", "export", "check", "new", "keys", "-h", "--help"]),
        (["apenet", "run", "--limit-"], ["--limit-wall", "--limit-virtual"]),
        (["apenet", "run", "--engine", ""], ["packet", "flit", "both"]),
        (["apenet", "run", "--engine", "both", "-m", "qp"], ["qpace", "qpace-8x16x16"]),
        (["apenet", "bench", "halo4"], ["halo4d"]),
        (["apenet", "bench", "halo", "--site"], ["--site-bytes"]),
        (["apenet", "bench", "halo", "--engine", "p"], ["packet"]),
        (["apenet", "run", "-n", "2", "--", "--limit-"], []),  # the program's own
        (["apenet", "no-such-command", "--limit-"], []),
    ],
)
def test_bash_completes(completed, words, offered):
    assert completed(*words) == offered


@pytest.mark.parametrize(("shell", "check"), [("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["--no-execute"])])
def test_each_shell_can_read_its_script(apenet, tmp_path, shell, check):
    done = apenet("completion", shell)
    assert done.returncode == 0
    script = tmp_path / "script"
    script.write_text(done.stdout)
    if shutil.which(shell):
        subprocess.run([shell, *check, script], check=True)
    for page in ALL.values():
        for option in page.options:
            assert all(flag.lstrip("-") in done.stdout for flag in option.flags)


def test_another_shell_is_refused(apenet):
    done = apenet("completion", "csh")
    assert (done.returncode, done.stdout) == (2, "")
    assert 'shell = "csh": expected one of bash, zsh, fish' in done.stderr


@pytest.mark.parametrize("words", ALL, ids=" ".join)
def test_a_man_page_has_the_options_of_the_help(apenet, words):
    page = manual(ALL[words])
    helped = apenet(*words, "--help").stdout
    for option in ALL[words].options:
        for flag in option.flags:
            assert flag in helped
            assert f"\\fB{flag.replace('-', chr(92) + '-')}\\fR" in page
    requests = {line.split()[0] for line in page.splitlines() if line[0] in ".'"}
    assert requests <= {".TH", ".SH", ".B", ".BR", ".PP", ".TP"}


def test_the_command_prints_a_page(apenet):
    done = apenet("man", "bench", "halo")
    assert done.stdout == manual(ALL["bench", "halo"])
    assert done.stdout.startswith('.TH "APENET-BENCH-HALO" 1 "" "APENet ')
    assert apenet("man").stdout == manual(ALL[()])
    refused = apenet("man", "no-such")
    assert refused.returncode == 2
    assert 'command = "no-such": expected the words of a command' in refused.stderr
