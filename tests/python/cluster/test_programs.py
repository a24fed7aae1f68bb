"""Several programs in one simulation: the same times as alone on links of their own, and each ends alone."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import apenet
from apenet.base.errors import InputError, MachineError
from apenet.cluster import Job, run, run_file

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    """Compiles an example of a native library."""
    folder = tmp_path_factory.mktemp("native")

    def compile_example(option, example):
        program = folder / Path(example).stem
        source = ROOT / "examples" / example
        subprocess.run([BIN / "apenet", "cc", option, "-O1", source, "-o", program], check=True)
        return str(program)

    return compile_example


def job(name, program, rounds, *more, row=0, **rest):
    return Job(
        name, command=[str(program), str(rounds), "4096", *more], ranks=4, map=[4 * row + i for i in range(4)], **rest
    )


def test_programs_on_links_of_their_own_take_the_time_that_they_take_alone(exchange, tmp_path):
    """Also one that starts later: its clock begins with it."""
    jobs = [
        job("left", exchange, 8, out=tmp_path / "left"),
        job("right", exchange, 5, row=2, start="40us", output=tmp_path / "right"),
    ]
    result = run(jobs, machine="ape16", matrix=False)
    left, right = result.jobs
    assert [one.outcome for one in result.jobs] == ["completed", "completed"]
    assert left.time_us == left.alone_us
    assert right.time_us == right.alone_us
    assert right.start_us == 40
    assert left.time_us > right.time_us
    assert left.shared == right.shared == {}
    assert result.virtual_time_us == max(left.time_us, 40 + right.time_us)
    lines = left.stdout.decode().splitlines()
    assert sorted(line.split(":")[0] for line in lines) == [f"rank {rank} of 4" for rank in range(4)]
    assert len({line.split()[4] for line in lines}) == 1
    assert (tmp_path / "left" / "run.json").exists()
    assert (tmp_path / "right" / "rank-0003.out").read_text().startswith("rank 3 of 4")


def test_programs_of_native_libraries_begin_beside_others_and_at_their_start(exchange, native):
    """Each rank's clock begins at the job's start, as with MPI."""
    velo, gasnet = native("--extoll", "13_velo_ring/ring.c"), native("--gasnet-seq", "16_gasnet_histogram/histogram.c")
    jobs = [
        Job("mpi", command=[str(exchange), "3", "256"], ranks=4, partition="4x1x1@0,0,0"),
        Job("velo", command=[velo], ranks=4, partition="4x1x1@0,1,0", start="7us"),
        Job("gasnet", command=[gasnet], ranks=2, partition="2x1x1@0,2,0"),
    ]
    result = run(jobs, machine="extoll-64", matrix=False)
    assert [one.outcome for one in result.jobs] == ["completed"] * 3
    assert [one.time_us for one in result.jobs] == [one.alone_us for one in result.jobs]
    assert [one.start_us for one in result.jobs] == [0, 7, 0]
    assert result.virtual_time_us == max(one.start_us + one.time_us for one in result.jobs)


def test_an_apelib_program_takes_the_time_of_a_run_alone(native):
    program = native("--apelib", "10_halo_apelib_c/halo.c")
    alone = apenet.run([program], n=4, machine="ape16")
    late = run([Job("late", command=[program], ranks=4, map=[0, 1, 2, 3], start="12us")], machine="ape16").jobs[0]
    assert (late.outcome, late.time_us) == ("completed", alone.virtual_time_us)
    assert late.stdout.decode().splitlines()[-1].startswith("one exchange of six faces")


def test_the_page_of_a_job_says_that_links_are_of_the_whole_machine(exchange, tmp_path):
    jobs = [job("left", exchange, 2, out=tmp_path / "left"), job("right", exchange, 2, row=2, out=tmp_path / "right")]
    result = run(jobs, machine="ape16", matrix=False)
    said = "one of several jobs (apenet cluster run): links, ports and faults are of the whole machine"
    assert not [one for found in (result, *result.jobs) for one in found.warnings if one == said]
    content = apenet.explain(tmp_path / "left")
    assert said in content["warnings"]
    assert content["verdict"]["text"].startswith("Jobs beside each other are not recorded")
    notes = apenet.difference(tmp_path / "left", tmp_path / "right").notes
    assert [note.endswith(said) for note in notes] == [True, True]


def test_a_job_prints_its_lines_in_the_same_order_in_each_run(native, tmp_path):
    """Eight threads of each rank print at the same times, and some sleep."""
    threads = tmp_path / "all_receive"
    source = ROOT / "tests" / "conformance" / "threads" / "all_receive.c"
    subprocess.run([BIN / "mpicc", "-O1", "-pthread", source, "-o", threads], check=True)
    jobs = [
        Job("threads", command=[str(threads)], ranks=8, partition="4x2x1@0,0,0"),
        Job("apelib", command=[native("--apelib", "10_halo_apelib_c/halo.c")], ranks=4, partition="4x1x1@0,0,1"),
    ]
    first, *others = (run(jobs, machine="ape16", matrix=False).jobs[0].stdout for _ in range(3))
    assert len(first.splitlines()) > 200
    assert others == [first] * 2


def test_a_program_that_fails_ends_alone(exchange):
    jobs = [job("dies", exchange, 9, "exit"), job("lives", exchange, 6, row=2)]
    dies, lives = run(jobs, machine="ape16", matrix=False).jobs
    assert (dies.outcome, dies.time_us) == ("failed", None)
    assert dies.message.startswith("rank 1 exited with status 3")
    assert lives.time_us == lives.alone_us


COMPUTING = r"""
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
volatile double sum;
int main(void) {
  MPI_Init(NULL, NULL);
  for (int i = 0; i < 5; i++) {
    for (int k = 0; k < 3000000; k++) sum += k;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  printf("%s %.1f\n", getenv("MINE") ? getenv("MINE") : "none", MPI_Wtime() * 1e6);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(scope="module")
def computing(tmp_path_factory):
    folder = tmp_path_factory.mktemp("computing")
    (folder / "computing.c").write_text(COMPUTING)
    subprocess.run([BIN / "mpicc", "-O1", "-o", folder / "computing", folder / "computing.c"], check=True)
    return str(folder / "computing")


def test_each_job_has_its_own_environment_and_charges_its_own_computation(computing, tmp_path):
    profile = tmp_path / "computing.json"
    apenet.run([computing], n=2, machine="ape16", compute=f"record:{profile}", capture=True)
    charged = apenet.run([computing], n=2, machine="ape16", compute=str(profile), capture=True)
    free = apenet.run([computing], n=2, machine="ape16", capture=True)
    assert charged.virtual_time_us > 2 * free.virtual_time_us
    jobs = [
        Job("free", command=[computing], ranks=2, map=[0, 1], environment={"MINE": "yes"}),
        Job(
            "charged", command=[computing], ranks=2, map=[8, 9], compute=str(profile), start="5us", out=tmp_path / "out"
        ),
    ]
    result = run(jobs, machine="ape16", matrix=False)
    assert [one.time_us for one in result.jobs] == [free.virtual_time_us, charged.virtual_time_us]
    assert [one.alone_us for one in result.jobs] == [free.virtual_time_us, charged.virtual_time_us]
    assert [one.stdout.split()[0] for one in result.jobs] == [b"yes", b"none"]
    folder = json.loads((tmp_path / "out" / "run.json").read_text())
    assert folder["computation"] == json.loads(json.dumps(charged.to_json()["computation"]))


# Both jobs take their messages in the same step. Then the ranks of the one end, while those of the other hold
# the model.
ENDS_FIRST = r"""
#include <mpi.h>
int main(int count, char** words) {
  MPI_Init(&count, &words);
  int ranks, rank;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char out[1000] = {0}, in[1000];
  MPI_Send(out, 1000, MPI_CHAR, (rank + 1) % ranks, 0, MPI_COMM_WORLD);
  MPI_Recv(in, 1000, MPI_CHAR, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (words[1][0] == 'g') {
    volatile double sum = 0;
    for (long k = 0; k < 60000000; k++) sum += k;
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (words[1][0] == 's') MPI_Send(out, 8, MPI_CHAR, (rank + 1) % ranks, 7, MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
"""


@pytest.mark.parametrize("last", ["ends", "sends"])
def test_what_the_ranks_did_last_is_known_though_their_processes_end_before_the_next_step(tmp_path, last):
    (tmp_path / "ends.c").write_text(ENDS_FIRST)
    program = str(tmp_path / "ends")
    subprocess.run([BIN / "mpicc", "-O1", "-o", program, tmp_path / "ends.c"], check=True)
    jobs = [
        Job("first", command=[program, last], ranks=4, map=[0, 1, 2, 3]),
        Job("second", command=[program, "goes on"], ranks=4, map=[8, 9, 10, 11]),
    ]
    result = run(jobs, machine="ape16", matrix=False)
    first, second = result.jobs
    assert (first.outcome, first.time_us) == ("completed", first.alone_us)
    assert (second.outcome, second.warnings) == ("completed", ())
    said = "4 messages were never received; the first: from rank 3 to rank 0, tag 7, on MPI_COMM_WORLD"
    assert first.warnings == ((said,) if last == "sends" else ())
    assert result.messages == (20 if last == "sends" else 16)


def test_a_limit_of_virtual_time_counts_from_the_start_of_the_job_and_ends_it_alone(exchange):
    alone = run([job("one", exchange, 9)], machine="ape16").jobs[0].time_us
    jobs = [
        job("ends", exchange, 9, row=0, start="30us", limit_virtual=f"{alone + 1:.3f}us"),
        job("stops", exchange, 9, row=1, start="30us", limit_virtual="20us"),
        job("lives", exchange, 9, row=2),
    ]
    ends, stops, lives = run(jobs, machine="ape16", matrix=False).jobs
    assert (ends.outcome, lives.outcome) == ("completed", "completed")
    assert (stops.outcome, stops.time_us) == ("limit", None)
    assert lives.time_us == ends.time_us == alone


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('command = ["true"]\ntrace = "x.goal"', 'job.a.trace = "x.goal": expected none beside the command'),
        ('command = ["true"]', "job.a.ranks"),
        ('command = "true"\nranks = 1', "a list of texts"),
        ('trace = "x.goal"\nranks = 1', "only with a command"),
        ('trace = "x.goal"\nlimit_virtual = "1us"', "only with a command"),
        ('trace = "x.goal"\ncompute = "measured"', "a trace has its own computation"),
        ('command = ["true"]\nranks = 1\ncompute = "record:x"', "apenet run records one"),
        ('command = ["true"]\nranks = 1\ncompute = "x.json"', "job a: compute"),
        ('command = ["true"]\nranks = 1\nlimit_virtual = "0us"', "job a: limit_virtual"),
        ('command = ["true"]\nranks = 1\nlimit_virtual = 3', "a time such as 10ms"),
        ('command = ["true"]\nranks = 1\nenvironment = {A = 1}', "job.a.environment"),
        ('command = ["true"]\nranks = 1\nsize = "x y"', "job a: size"),
    ],
)
def test_what_is_wrong_with_a_job_is_said(tmp_path, keys, said):
    path = tmp_path / "jobs.toml"
    path.write_text(f'machine = "ape16"\n[job.a]\n{keys}\n')
    with pytest.raises((InputError, MachineError), match=said):
        run_file(path)
