"""Messages that would end after the end of virtual time, 104 days, end the run: no time wraps."""

import re

import pytest

import apenet as package
from apenet import EndOfTimeError, InputError
from apenet.host.compiling import compile_program

# 1 byte per second, so that 9,000,000 bytes take until the end of virtual time.
SLOW_CARD = "card.bandwidth_mib_s=1e-6"
SLOW_LINK = "network.link.clock_mhz=1e-6"
SENDS = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
for _ in range(int(sys.argv[2])):
    data = bytearray(int(sys.argv[1]))
    if world.rank == 0:
        world.Send(data, 1)
    elif world.rank == 1:
        world.Recv(data, 0)
print(world.rank, MPI.Wtime())
"""
PUTS = """
import sys
from mpi4py import MPI
world = MPI.COMM_WORLD
data = bytearray(int(sys.argv[1]))
window = MPI.Win.Create(bytearray(data), comm=world)
for _ in range(int(sys.argv[2])):
    window.Fence()
    if world.rank == 0:
        window.Put(data, 1)
    window.Fence()
window.Free()
print(world.rank, MPI.Wtime())
"""
BEYOND = "after the end of virtual time, 104 days"


@pytest.mark.parametrize(
    ("machine", "setting", "script", "bytes_sent", "count", "said"),
    [
        # 20,000,000 s are 2 * 10^19 ps, more than 2^64; 2 * 8,000,000 s more than 2^63.
        ("ideal", SLOW_CARD, SENDS, 20_000_000, 1, "the message of 20000000 bytes that process 0 has posted"),
        ("ideal", SLOW_CARD, SENDS, 8_000_000, 2, "the message of 8000000 bytes that process 0 has posted"),
        ("ideal", SLOW_CARD, PUTS, 20_000_000, 1, "the message of 20000000 bytes that process 0 has posted"),
        (
            "ape16",
            SLOW_LINK,
            SENDS,
            70_000_000,
            1,
            "the first one under way is a put of [0-9]+ bytes from rank 0 to rank 1",
        ),
        (
            "ape16",
            SLOW_LINK,
            PUTS,
            70_000_000,
            1,
            "the first one under way is a put of [0-9]+ bytes from rank 0 to rank 1",
        ),
    ],
    ids=["card", "second-message", "card-put", "link", "link-put"],
)
def test_programs(machine, setting, script, bytes_sent, count, said, apenet):
    command = ["python", "-c", script, str(bytes_sent), str(count)]
    done = apenet("run", "-n", "2", "--machine", machine, "--set", setting, "--", *command)
    assert done.returncode == 1, done.stderr
    assert re.search(f"apenet: failed: .*{said}", done.stderr)
    assert BEYOND in done.stderr
    assert done.stdout == ""


def test_a_message_that_ends_in_time_has_its_time(apenet):
    command = ["python", "-c", SENDS, "8000000", "1"]
    done = apenet("run", "-n", "2", "--machine", "ideal", "--set", SLOW_CARD, "--", *command)
    assert done.returncode == 0, done.stderr
    (seconds,) = (float(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("1 "))
    assert 8_000_000 <= seconds < 8_000_500  # with the messages of the protocol


APELIB = """
#include <apelib.h>
#include <stdlib.h>
int main(void) {
  int rank = 0;
  char* data = calloc(70000000, 1);
  if (ape_init() != APE_OK || ape_rank(&rank) != APE_OK) return 3;
  if (rank == 0) ape_send(data, 70000000, 1, 0, APE_AUTO);
  if (rank == 1) ape_recv(data, 70000000, 0, 0, APE_AUTO);
  return ape_finalize();
}
"""
GASNET = """
#include <gasnet.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  gasnet_seginfo_t segments[2];
  gasnet_init(&argc, &argv);
  gasnet_attach(NULL, 0, 71 << 20, 0);
  gasnet_getSegmentInfo(segments, 2);
  if (gasnet_mynode() == 0) gasnet_put_bulk(1, segments[1].addr, segments[0].addr, 70000000);
  gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
  gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
  gasnet_exit(0);
  return 0;
}
"""


@pytest.mark.parametrize(("library", "text"), [("apelib", APELIB), ("gasnet-seq", GASNET)])
def test_programs_of_the_machines_own_libraries(library, text, apenet, tmp_path):
    source = tmp_path / "sends.c"
    source.write_text(text)
    compile_program(["-w", source, "-o", tmp_path / "sends"], [library])
    done = apenet("run", "-n", "2", "--machine", "ape16", "--set", SLOW_LINK, "--", tmp_path / "sends")
    assert done.returncode == 1, done.stderr
    assert f"apenet: failed: a message would still be under way {BEYOND}" in done.stderr


def test_workloads():
    def program(rank):
        yield rank.send(1, 70_000_000) if rank.id == 0 else rank.recv(0)

    with pytest.raises(EndOfTimeError, match=BEYOND):
        package.workload(program, n=2, machine=package.machine("ape16", [SLOW_LINK]))


def test_benchmarks(apenet):
    done = apenet("bench", "pingpong", "--machine", "ape16", "--set", SLOW_LINK, "--sizes", "64M", "--allow-long")
    assert done.returncode == 1
    assert done.stderr == f"apenet: a message would still be under way {BEYOND}\n"


def test_traffic():
    slow = package.machine("ape16", ["router.clock_mhz=1e-6", SLOW_LINK])
    with pytest.raises(InputError, match=r"measure_cycles = 900000000: expected .* 104 days .* 1 cycles per second"):
        package.traffic(slow, loads=[0.1], measure_cycles=900_000_000, allow_long=True)
