"""Programs behind other programs keep the shim and the run's settings, or the run ends and says what has lost them."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from shared import make_once, shared_folder
from wrapper_matrix import LANGUAGES, MPIS, OPENMPI, RIGHT, WRAPPERS, Bench, row, shown_rows

from apenet.host import inherited
from apenet.host.toolchain import SHIM

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
DATE = "1122249600"
WAYS = 34  # in wrappers/starts.c


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    return Bench(shared_folder(tmp_path_factory, "wrappers"), make_once)


# One of each kind. The others, and the other libraries and languages, are for the night.
DRAWN = [
    ("cleared", "mpich", "C"),
    ("cleared", "openmpi", "C"),
    ("cleared", "intel", "C"),
    ("preloads", "mpich", "C"),
    ("settings", "mpich", "C"),
    ("sh", "mpich", "Fortran"),
    ("python", "mpich", "C"),
    ("subprocess", "mpich", "Python"),
    ("perl", "mpich", "C"),
    ("strace", "mpich", "C"),
    ("make", "mpich", "C"),
    ("vfork", "mpich", "C"),
    ("container", "mpich", "C"),
    ("static", "mpich", "C"),
    ("static-shim", "mpich", "C"),
    ("raw-all", "mpich", "C"),
]


@pytest.mark.parametrize(("name", "mpi", "language"), DRAWN)
def test_a_drawn_wrapper_does_as_its_row_says(bench, name, mpi, language):
    wrapper = WRAPPERS[name]
    if why := bench.why_not(wrapper, mpi, language):
        pytest.skip(why)
    assert bench.outcome(wrapper, mpi, language, runs=1) == shown_rows()[wrapper.shown][MPIS.index(mpi)]


@pytest.mark.parametrize("name", WRAPPERS)
def test_every_wrapper_does_as_its_row_says(bench, name):
    shown = shown_rows()[WRAPPERS[name].shown]
    assert row(WRAPPERS[name], bench, shown) == shown


def test_the_table_has_a_row_for_each_wrapper():
    assert list(shown_rows()) == [wrapper.shown for wrapper in WRAPPERS.values()]


def started(apenet, bench, mpi, tmp_path):
    """What each rank prints whose program was started in another way."""
    program = bench.program(mpi, LANGUAGES[0])[0]
    environment = {**os.environ, "PATH": f"{OPENMPI}:{os.environ['PATH']}"} if mpi == "openmpi" else dict(os.environ)
    starts = bench.launcher("starts", "-pthread")
    command = ("run", "-n", str(WAYS), "--machine", "ape128", "--mpi", mpi, "--", starts, program)
    done = apenet(*command, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    return sorted(tuple(line.split()[1::2]) for line in done.stdout.splitlines())


def test_every_way_to_start_a_program_finds_the_shim(apenet, bench, tmp_path):
    assert started(apenet, bench, "mpich", tmp_path) == [(DATE, "0.500")] * WAYS


@pytest.mark.skipif(not OPENMPI.exists(), reason="no Open MPI here")
def test_every_way_to_start_a_program_finds_the_shim_of_open_mpi(apenet, bench, tmp_path):
    assert started(apenet, bench, "openmpi", tmp_path) == [(DATE, "0.500")] * WAYS


def test_a_run_without_the_shim_names_who_lost_it(apenet, bench):
    drops, program = bench.launcher("drops", "-static"), bench.program("mpich", "C")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", '"$@"; true', "sh", drops, "shim", *program)
    assert done.returncode == 2
    assert "LD_PRELOAD is not set" in done.stderr
    assert f"{drops}', which is linked statically: nothing can be preloaded into it" in done.stderr
    assert f"expected: LD_PRELOAD with {SHIM} reaches the program" in done.stderr
    assert "rank 0 lost libapenet-shim.so on its way to the program" in done.stderr
    assert done.stdout == ""


def test_a_program_that_may_run_past_the_network_is_no_result(apenet, bench):
    """As an MPI program would without any variable of the run: its ranks are worlds of size 1."""
    drops = bench.launcher("drops", "-static")
    done = apenet(
        "run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", '"$@"; true', "sh", drops, "all", "/bin/true"
    )
    assert done.returncode == 2
    assert "rank 0 has not used the simulated network" in done.stderr
    assert f"It has started '{drops}', which is linked statically" in done.stderr


def test_a_go_program_may_lead_past_the_network(apenet, bench):
    """It may end too early for anyone to see what it becomes."""
    go = bench.launcher("raw-of-go", "-DOF_GO", source="raw")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", '"$@"; true', "sh", go, "all", "/bin/true")
    assert done.returncode == 2
    assert f"It has started '{go}', which is a Go program" in done.stderr
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", go, "keep", *bench.program("mpich", "C"))
    assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr


def undispatched(bench):
    """Runs a program on a host that cannot catch its direct system calls (docs/internals/direct-calls.md)."""
    return bench.launcher("without_dispatch", source="../direct/without_dispatch")


def test_a_direct_call_to_start_a_program_finds_the_shim(apenet, bench):
    for script in ('exec "$@"', '"$@"; true'):
        command = ("sh", "-c", script, "sh", bench.launcher("raw"), "all", *bench.program("mpich", "C"))
        done = apenet("run", "-n", "2", "--machine", "ape16", "--", *command)
        assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr


def test_a_program_past_the_network_is_named_with_what_started_it(apenet, bench, surroundings):
    """It has made a segment of shared memory with a name, which does not remain either."""
    program, raw = bench.program("mpich", "C")[0], bench.launcher("raw")
    script = ("sh", "-c", '"$0" all "$1"; true', raw, program)
    command = ("run", "-n", "2", "--machine", "ape16", "--", undispatched(bench), *script)
    done = apenet(*command, env=surroundings.environment)
    assert done.returncode == 2
    assert f"'{program}' uses " in done.stderr
    assert "libmpi.so.12 without libapenet-shim.so: it runs by itself" in done.stderr
    assert "It was started by 'sh -c" in done.stderr


def test_a_program_that_nobody_has_seen_leaves_a_trace(apenet, bench):
    """No check of running processes is needed: a program without MPI is not found by any."""
    raw = bench.launcher("raw")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", undispatched(bench), raw, "all", "/bin/true")
    assert done.returncode == 2
    assert f"rank 0 has not used the simulated network. '{raw}' has become 'true' by a system call" in done.stderr
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", raw, "keep", "/bin/true")
    assert (done.returncode, "clocks of the host" in done.stderr) == (0, False), done.stderr


@pytest.mark.parametrize(
    ("fork", "wait", "trace"),
    [
        ("c", "c", "has started a program by a system call of its own"),
        ("raw", "c", "has started a program by a system call of its own"),
        ("raw", "raw", "has started a program by a system call of its own"),
        ("c", "raw", "has ended unseen, or has become another program by a system call of its own"),
    ],
)
@pytest.mark.parametrize("script", ['exec "$@"', '"$@"; true'])
def test_each_way_past_the_c_library_leaves_a_trace(apenet, bench, fork, wait, trace, script):
    raw = bench.launcher("raw_forks")
    command = (undispatched(bench), "sh", "-c", script, "sh", raw, fork, wait, "/bin/true")
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", *command)
    assert done.returncode == 2
    assert f"rank 0 has not used the simulated network. '{raw}' {trace}" in done.stderr


def test_a_program_beside_mpi_that_saw_the_host_is_named(apenet, bench):
    """It cannot spoil the times of messages, but its own dates and times are the host's."""
    static = bench.launcher("drops", "-static")
    raw, program = bench.launcher("raw"), bench.program("mpich", "C")[0]
    script = f"{static} keep /bin/true; {raw} all /bin/true; {program}"
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", undispatched(bench), "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr
    told = f"ranks 0, 1: '{raw}' has started a program by a system call of its own without libapenet-shim.so"
    assert f"apenet: warning: {told}: it saw the clocks of the host\n" in done.stderr
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", f"{static} none; {program}")
    assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr
    assert f"ranks 0, 1: '{static}', which is linked statically" in done.stderr
    assert "it saw the clocks of the host" in done.stderr


def test_a_child_of_vfork_that_starts_nothing_has_seen_no_other_clock(apenet, bench):
    program = bench.program("mpich", "C")[0]
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", f"{bench.launcher('vforks')}; {program}")
    assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr
    assert "system call" not in done.stderr


def test_a_static_tool_alone_is_no_failure(apenet, bench):
    """Unless it starts another program, or may be an MPI program."""
    static = bench.launcher("drops", "-static")
    command = ("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", 'exec "$@"', "sh", static)
    alone = apenet(*command, "all", "/nowhere")
    assert alone.returncode == 1
    for name in ("tool", "mpi"):
        source = bench.launcher("drops").parent / f"{name}.c"
        source.write_text(f'#include <stdio.h>\nint main(void) {{ return puts("{name.upper()}_Init") == EOF; }}\n')
        tool = source.with_suffix("")
        subprocess.run(["cc", "-static", "-o", tool, source], check=True)
        done = apenet("run", "-n", "2", "--machine", "ape16", "--", tool)
        assert done.returncode == (0 if name == "tool" else 2), done.stderr
        assert (f"apenet: warning: ranks 0, 1: '{tool}', which is linked statically" in done.stderr) == (name == "tool")


def test_scripts_leave_no_trace(apenet):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", HERE / "wrappers" / "quiet.sh")
    said = [line for line in done.stderr.splitlines() if line.startswith("apenet: ")]
    assert done.returncode == 0, done.stderr
    (warning,) = said
    assert warning.startswith("apenet: warning: no rank opened an endpoint: nothing crossed the simulated network")
    assert "the times that the program has read are the host's" in warning


def test_a_second_program_past_the_network_is_named(apenet, bench, tmp_path, surroundings):
    """While the first takes part, and waits for it. Four times, because processes are checked now and then."""
    program, raw = bench.program("mpich", "C")[0], bench.launcher("raw")
    script = tmp_path / "script.py"
    text = "import subprocess, sys\nfrom mpi4py import MPI\nMPI.COMM_WORLD.barrier()\nsubprocess.run(sys.argv[1:])\n"
    script.write_text(text, encoding="utf-8")
    slow = ("sh", "-c", f"for i in 1 2 3 4; do {raw} all {program} || exit; done")
    command = ("run", "-n", "2", "--machine", "ape16", "--", undispatched(bench), "python", script, *slow)
    done = apenet(*command, env=surroundings.environment)
    assert done.returncode == 2
    assert f"'{program}' uses " in done.stderr
    assert "It was started by '" in done.stderr


CLOSES = "import os, sys; os.closerange(3, 256); os.execv(sys.argv[1], sys.argv[1:])"


def test_a_program_reaches_its_manager_without_the_descriptor(apenet, bench):
    """Whoever has closed it, or uses its number for something else."""
    program = bench.program("mpich", "C")
    takes = "import os, sys; os.dup2(1, 100); os.execv(sys.argv[1], sys.argv[1:])"
    for script in (CLOSES, takes):
        done = apenet("run", "-n", "2", "--machine", "ape16", "--", "python", "-c", script, *program)
        assert (done.returncode, done.stdout) == (0, RIGHT), done.stderr


def test_a_refusal_is_reported_once_for_all_ranks(apenet):
    """Whatever becomes of the output and the status of the refused program."""
    script = '"$@" > /dev/null 2>&1; true'
    change = "import os; os.environ['FI_PROVIDER'] = 'tcp'; from mpi4py import MPI"
    command = ("python", "-c", change)
    done = apenet("run", "-n", "3", "--machine", "ape16", "--", "sh", "-c", script, "sh", *command)
    assert done.returncode == 2
    said = done.stderr.splitlines()
    assert said[0].startswith("apenet: failed: rank 0 was refused: FI_PROVIDER = 'tcp' in the program's")
    assert said[1:] == ["apenet:   then ranks 1, 2 ended for the same reason"]


def test_a_library_of_an_older_version_is_refused_once(apenet):
    """It prints its refusal itself."""
    why = "APENET_MAPPING = '/proc/1/fd/5': expected a simulation of the same apenet version"
    done = apenet("run", "-n", "3", "--machine", "ape16", "--", "sh", "-c", f'echo "apenet: {why}" >&2; exit 2')
    assert done.returncode == 2
    said = done.stderr.splitlines()
    assert said == [f"apenet: failed: rank 0 was refused: {why}", "apenet:   then ranks 1, 2 ended for the same reason"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
@pytest.mark.parametrize("closes", [False, True])
def test_a_program_of_another_user_is_refused_once(apenet, bench, closes):
    """It cannot reach the simulation: it tells the process manager, or prints a line that the run takes."""
    become = f"import os, sys; os.setuid(65534); {CLOSES if closes else CLOSES.replace('os.closerange(3, 256); ', '')}"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        program = shutil.copy(bench.program("mpich", "C")[0], folder)
        done = apenet("run", "-n", "2", "--machine", "ape16", "--", "python", "-c", become, program)
    assert done.returncode == 2
    said = done.stderr.splitlines()
    assert said[0].startswith("apenet: failed: rank 0 was refused: APENET_MAPPING: ")
    assert "which another user, also of a user namespace, may not open" in said[0]
    assert said[1:] == ["apenet:   then rank 1 ended for the same reason"]


def test_a_library_of_the_machine_needs_the_shim_too(apenet, bench):
    """apelib, by its bindings for Python."""
    drops = bench.launcher("drops", "-static")
    script = "from apenet import apelib; apelib.init()"
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", drops, "shim", BIN / "python", "-c", script)
    assert done.returncode == 2, done.stderr
    assert "opened the simulated network without libapenet-shim.so" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to another user")
def test_a_program_with_the_rights_of_another_user_is_refused(apenet, bench, tmp_path):
    program = Path(shutil.copy(bench.program("mpich", "C")[0], tmp_path / "theirs"))
    os.chown(program, 65534, -1)
    program.chmod(0o4755)
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", "sh", "-c", f"{program}; true")
    assert done.returncode == 2
    assert "without libapenet-shim.so" in done.stderr
    assert "runs with the rights of another user (set-user-ID)" in done.stderr


def test_a_rank_may_start_a_simulation_with_its_own_environment(apenet, bench):
    inner = (BIN / "apenet", "run", "-n", "2", "--machine", "ape16", "--", *bench.program("mpich", "C"))
    done = apenet("run", "-n", "1", "--machine", "ideal", "--", "env", "-i", "PATH=/usr/bin:/bin", *inner)
    assert done.returncode == 0, done.stderr
    assert done.stdout == RIGHT


def test_children_of_a_rank_keep_the_dates_of_the_run(apenet, tmp_path):
    """Also those that get an environment of their own."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, subprocess\nfrom mpi4py import MPI\n"
        "print([subprocess.check_output(['date', '-u', '+%Y'], env=env).decode().strip() for env in (None, {})])\n"
        "print('LD_PRELOAD' in os.environ)\n",
        encoding="utf-8",
    )
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", "python", script)
    assert done.stdout == "['2005', '2005']\nTrue\n", done.stderr


LISTS = [
    "",
    "libm.so.6",
    "libm.so.6:libdl.so.2  libm.so.6",
    f"{SHIM} libm.so.6",
    f"libm.so.6 {SHIM}",
    f"{SHIM}:{SHIM}",
    "libm.so.6 libnowhere/libclang_rt.tsan-x86_64.so libdl.so.2",
    "libclang_rt.so.1 libm.so.6",
    "/nowhere/xlibasan2.so /nowhere/liblsan.so.0",
    "/nowhere/libmpi.so.40 libm.so.6 libmpich.so:/nowhere/libmpiP.so /nowhere/liblsan.so.0",
    f"libmpi_abi.so.0 {SHIM} libmpitrace.so",
    f"libm.so.6 {SHIM} libmpi.so",
]


def test_libraries_have_one_order_wherever_a_program_is_started(apenet):
    """The front end and the shim have the same rule."""
    shell = "sh -c 'echo \"$LD_PRELOAD,$ASAN_OPTIONS\"'"
    script = f'for list in "$@"; do env -u ASAN_OPTIONS LD_PRELOAD="$list" {shell} 2>/dev/null; done'
    done = apenet("run", "-n", "1", "--machine", "ape16", "--", "sh", "-c", script, "sh", *LISTS)
    expected = []
    for given in LISTS:
        variables = inherited.preloaded(SHIM, Path("/bin/sh"), {"LD_PRELOAD": given})
        shown = variables["LD_PRELOAD"]
        # The shim leaves a list in the right order as it is.
        shown = given if given.split() == shown.split() else shown
        expected.append(f"{shown},{variables.get('ASAN_OPTIONS', '')}")
    assert done.stdout.splitlines() == expected, done.stderr


def test_a_folder_that_cannot_be_preloaded_from_is_recognised():
    assert inherited.separates(Path("/a folder/libapenet-shim.so"))
    assert inherited.separates(Path("/a:b/libapenet-shim.so"))
    assert not inherited.separates(SHIM)


@pytest.mark.parametrize("wrapper", [("sh", "-c", '"$0"; exit $?'), ("sh", "-c", 'exec "$0"'), ("env",)])
def test_a_program_that_the_loader_refuses_has_started_nothing(apenet, tmp_path, wrapper):
    """The loader ends it with status 1 if a library has not the version that it needs, before the shim acts."""
    library, program = tmp_path / "libversioned.so", tmp_path / "program"
    (tmp_path / "library.c").write_text("int f(void) { return 0; }\n")
    (tmp_path / "program.c").write_text("int f(void);\nint main(void) { return f(); }\n")
    for version in ("NEW", "OLD"):
        (tmp_path / "versions").write_text(f"{version} {{ global: f; }};\n")
        options = ["-shared", "-fPIC", f"-Wl,--version-script={tmp_path}/versions"]
        subprocess.run(["gcc", *options, tmp_path / "library.c", "-o", library], check=True)
        if version == "NEW":
            found = [library, f"-Wl,-rpath,{tmp_path}"]
            subprocess.run(["gcc", tmp_path / "program.c", *found, "-o", program], check=True)
    done = apenet("run", "-n", "2", "--", *wrapper, program)
    assert done.returncode == 1
    assert "version `NEW' not found" in done.stderr
    assert "system call" not in done.stderr
    assert "failed: rank 0 exited with status 1" in done.stderr
