"""QMP on apelib: every call in virtual and in real time, its options, its costs, and its misuse."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from apenet.host.compiling import compile_program

BIN = Path(sys.executable).parent
HANG_GUARD_S = 300


@pytest.fixture
def run_virtual(apenet, compile_native):
    def run(source: str, ranks: int, *arguments: str, machine: str = "ape16", options: tuple[str, ...] = ()):
        program = compile_native(f"qmp/{source}", "qmp", "apelib")
        return apenet("run", "-n", str(ranks), "--machine", machine, *options, "--", program, *arguments)

    return run


@pytest.mark.parametrize("ranks", [1, 2, 3, 8])
def test_every_call_twice_with_the_same_trace(run_virtual, tmp_path, ranks):
    hashes = []
    for label in ("once", "again"):
        done = run_virtual("conformance.c", ranks, options=("--out", str(tmp_path / label)))
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout == f"{ranks} nodes: every call\n"
        hashes.append(json.loads((tmp_path / label / "run.json").read_text(encoding="utf-8"))["trace_hash"])
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize("machine", ["apenet-2004", "extoll-64", "qpace", "pax"])
def test_every_call_on_other_cards(run_virtual, machine):
    done = run_virtual("conformance.c", 4, machine=machine)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("ranks", "provider"), [(4, "tcp"), (5, "shm")])
def test_every_call_in_real_time(compile_native, ranks, provider):
    done = subprocess.run(
        [BIN / "mpiexec", "-n", str(ranks), compile_native("qmp/conformance.c", "qmp")],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_GUARD_S,
        env={**os.environ, "APELIB_PROVIDER": provider},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{ranks} nodes: every call\n"


@pytest.mark.parametrize(("suffix", "standard"), [("cpp", "c++17"), ("c", "c11")])
def test_the_header_compiles(tmp_path, suffix, standard):
    source = tmp_path / f"header.{suffix}"
    source.write_text("#include <qmp.h>\nint main(void) { return QMP_barrier() != QMP_NOT_INITED; }\n")
    strict = [f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    compile_program([*strict, source, "-o", tmp_path / "header"], ["qmp"])
    assert subprocess.run([tmp_path / "header"], check=False).returncode == 0


def layout(output: str) -> dict[str, str]:
    """What node 0 prints of the division of the lattice."""
    return dict(line.split(": ") for line in output.splitlines())


@pytest.mark.parametrize(
    ("ranks", "arguments", "machine_grid", "grid", "subgrid"),
    [
        # The torus divides the lattice: logical neighbours are neighbours on the machine.
        (16, ("8", "8", "8", "8"), "4 2 2", "4 2 2 1", "2 4 4 8"),
        # It does not: the smallest surface.
        (16, ("2", "8", "8", "8"), "4 2 2", "1 1 4 4", "2 8 2 2"),
        (8, ("6", "12", "4"), "4 2 1", "2 4 1", "3 3 4"),
        (6, ("5", "7", "6"), "3 2 1", "1 1 6", "5 7 1"),
        (8, ("8", "8", "8", "-qmp-geom", "2", "2", "2"), "2 2 2", "2 2 2", "4 4 4"),
        (8, ("8", "-qmp-geom", "native"), "4 2 1", "8", "1"),
    ],
)
def test_the_lattice_is_divided(run_virtual, ranks, arguments, machine_grid, grid, subgrid):
    done = run_virtual("layout.c", ranks, *arguments)
    assert done.returncode == 0, done.stderr
    printed = layout(done.stdout)
    assert printed["machine"] == machine_grid
    assert printed["grid"] == grid
    assert printed["subgrid"] == subgrid


def test_logical_neighbours_are_neighbours_on_the_torus(run_virtual):
    done = run_virtual("layout.c", 16, "8", "8", "8", "8")
    assert layout(done.stdout)["links to the neighbours"] == "1 1 1 0"


def test_the_map_of_the_arguments_orders_the_axes(run_virtual):
    usual = layout(run_virtual("layout.c", 8, "8", "8", "-qmp-geom", "2", "4").stdout)
    turned = layout(run_virtual("layout.c", 8, "8", "8", "-qmp-geom", "2", "4", "-qmp-logic-map", "1", "0").stdout)
    assert usual["node 1"] == "1 0"
    assert turned["node 1"] == "0 1"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("8", "-qmp-geom", "3"), "-qmp-geom 3: expected 2 nodes"),
        (("8", "-qmp-geom"), "-qmp-geom: expected numbers"),
        (("8", "-qmp-geom", "-2", "-1"), "-qmp-geom -2x-1: expected 2 nodes"),
        (("8", "-qmp-job", "2"), "-qmp-job: expected -qmp-geom or -qmp-logic-map"),
        (("7",), "lattice 7 on 2 nodes: does not divide"),
        (("7", "-qmp-geom", "2"), "lattice 7 on 2 nodes: does not divide"),
        (("8", "8", "-qmp-logic-map", "0", "0"), "map 0x0: expected each axis once"),
    ],
)
def test_what_does_not_suit_is_named(run_virtual, arguments, reason):
    done = run_virtual("layout.c", 2, *arguments)
    assert done.returncode != 0
    assert reason in done.stderr


def test_abort_ends_the_run_with_its_code_and_text(run_virtual):
    done = run_virtual("ends.c", 2, "abort")
    assert done.returncode == 3
    assert "error: no more lattice" in done.stderr


def test_finalize_with_a_message_in_progress_is_refused(run_virtual):
    done = run_virtual("ends.c", 2, "finalize")
    assert done.returncode == 1
    assert "QMP_finalize_msg_passing: not possible in this state" in done.stderr


def test_lines_name_the_node(run_virtual):
    done = run_virtual("ends.c", 2, "print")
    assert done.returncode == 0, done.stderr
    lines = sorted(line.replace("@", " ").split() for line in done.stdout.splitlines())
    assert [[*line[:2], *line[3:]] for line in lines] == [
        ["QMP", "m0,n2", "info:", "site", "0"],
        ["QMP", "m1,n2", "info:", "site", "10"],
    ]


def test_a_strided_message_costs_a_copy_at_each_side(run_virtual):
    done = run_virtual("strides.c", 2, "262144", machine="apenet-2004")
    assert done.returncode == 0, done.stderr
    _, plain, strided = map(float, done.stdout.splitlines()[-1].split())
    # hep-lat/0409071: copied transfers have about half of the bandwidth of zero-copy ones.
    assert strided / plain == pytest.approx(2, rel=0.1)
