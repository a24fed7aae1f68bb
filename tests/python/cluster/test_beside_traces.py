"""Programs, traces and workloads in one simulation: the same times as alone on links of their own; each ends alone."""

import pytest

import apenet
from apenet.base.errors import InputError, MachineError
from apenet.cluster import Job, run, run_file


def program(command, rounds, how="goes on", *, bytes_each=4096, places=(0, 1, 2, 3), **rest):
    words = [str(command), str(rounds), str(bytes_each), how]
    return Job("program", command=words, ranks=len(places), map=list(places), **rest)


def ring_trace(path, rounds, bytes_each=4096, ranks=4):
    """Each rank sends to the next one and receives from the one before, round after round."""
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines.append(f"rank {rank} {{")
        for number in range(rounds):
            lines.append(f"s{number}: send {bytes_each}b to {(rank + 1) % ranks} tag {number}")
            lines.append(f"r{number}: recv {bytes_each}b from {(rank - 1) % ranks} tag {number}")
            if number > 0:
                lines += [f"s{number} requires r{number - 1}", f"r{number} requires r{number - 1}"]
        lines.append("}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_on_links_of_their_own_both_take_the_time_that_they_take_alone(exchange, tmp_path, engine):
    """Alone, a trace is replayed from time zero; beside a program, from the end of MPI_Init on."""
    trace = ring_trace(tmp_path / "ring.goal", 9)
    jobs = [
        Job("first", trace, map=[8, 9, 10, 11]),
        program(exchange, 7, start="11us"),
        Job("late", trace, map=[4, 5, 6, 7], start="40us"),
    ]
    result = run(jobs, machine="ape16", engine=engine)
    first, of_program, late = result.jobs
    assert [one.outcome for one in result.jobs] == ["completed"] * 3
    assert [one.time_us for one in result.jobs] == [one.alone_us for one in result.jobs]
    assert first.time_us == late.time_us > 100
    assert (of_program.start_us, late.start_us) == (11, 40)
    assert first.shared == of_program.shared == late.shared == {}
    assert result.interference == ((1.0,) * 3,) * 3
    assert result.messages == 2 * 4 * 9 + 4 * 7


def test_on_shared_links_both_are_slower_and_the_result_repeats(exchange, tmp_path):
    trace = ring_trace(tmp_path / "ring.goal", 40, 32768)
    jobs = [
        program(exchange, 40, bytes_each=32768, places=[0, 2, 5, 7]),
        Job("trace", trace, map=[1, 3, 4, 6]),
    ]
    result = run(jobs, machine="extoll-64")
    of_program, of_trace = result.jobs
    assert of_program.shared["trace"] == of_trace.shared["program"]
    assert of_program.slowdown > 1
    assert of_trace.slowdown > 1
    assert result.interference[0][1] == of_program.slowdown
    again = run(jobs, machine="extoll-64")
    assert again.trace_hash == result.trace_hash
    assert [one.to_json() for one in again.jobs] == [one.to_json() for one in result.jobs]


@pytest.mark.parametrize(("how", "outcome"), [("exits", "failed"), ("deadlocks", "deadlock")])
def test_a_program_that_fails_ends_alone(exchange, tmp_path, how, outcome):
    trace = ring_trace(tmp_path / "ring.goal", 60)
    of_program, of_trace = run(
        [program(exchange, 5, how), Job("trace", trace, map=[8, 9, 10, 11])], machine="ape16", matrix=False
    ).jobs
    assert (of_program.outcome, of_program.time_us) == (outcome, None)
    assert (of_trace.outcome, of_trace.time_us) == ("completed", of_trace.alone_us)


def test_a_trace_that_deadlocks_ends_alone(exchange, tmp_path):
    stuck = tmp_path / "stuck.goal"
    stuck.write_text("num_ranks 2\nrank 0 {\nl1: recv 8b from 1 tag 0\n}\nrank 1 {\nl1: calc 1\n}\n")
    of_trace, of_program = run(
        [Job("trace", stuck, map=[8, 9]), program(exchange, 5)], machine="ape16", matrix=False
    ).jobs
    assert "stuck.goal: 1 of 2 ranks do not come to their end:\n  rank 0 waits for ever" in of_trace.deadlock
    assert (of_program.outcome, of_program.time_us) == ("completed", of_program.alone_us)


@pytest.mark.parametrize("command", ["true", "false"])
def test_a_trace_runs_also_if_virtual_time_never_begins_for_the_program(tmp_path, command):
    trace = ring_trace(tmp_path / "ring.goal", 3)
    jobs = [Job("program", command=[command], ranks=2, map=[0, 1]), Job("trace", trace, map=[8, 9, 10, 11])]
    of_program, of_trace = run(jobs, machine="ape16", matrix=False).jobs
    assert of_program.outcome == ("completed" if command == "true" else "failed")
    assert (of_trace.outcome, of_trace.time_us) == ("completed", of_trace.alone_us)
    assert of_trace.time_us > 10


def test_a_trace_that_computes_beyond_the_clocks_is_refused(exchange, tmp_path):
    lines = ["num_ranks 1", "rank 0 {", "c0: calc 1000000000000000"]
    for number in range(1, 10):
        lines += [f"c{number}: calc 1000000000000000", f"c{number} requires c{number - 1}"]
    (tmp_path / "long.goal").write_text("\n".join([*lines, "}"]) + "\n")
    with pytest.raises(InputError, match="within 104 days of virtual time"):
        run([program(exchange, 2), Job("trace", tmp_path / "long.goal", map=[9])], machine="ape16")


def test_a_program_and_a_trace_on_one_node_are_refused(exchange, tmp_path):
    trace = ring_trace(tmp_path / "ring.goal", 1)
    with pytest.raises(InputError, match="without a common node; both have node 3"):
        run([program(exchange, 1), Job("trace", trace, map=[3, 4, 5, 6])], machine="ape16")


def test_a_workload_is_the_trace_that_bench_writes(exchange, tmp_path):
    """In a partition its ranks are on all nodes."""
    options = {"sizes": "4K", "iterations": 4}
    apenet.bench.halo(
        apenet.machine("ape16").with_settings("network.dims=[4,1,1]"), goal=tmp_path / "halo.goal", **options
    )
    jobs = [
        Job("workload", workload={"test": "halo", **options}, partition="4x1x1@0,1,0"),
        Job("trace", tmp_path / "halo.goal", partition="4x1x1@0,0,1"),
        program(exchange, 3),
    ]
    workload, trace, of_program = run(jobs, machine="ape16", matrix=False).jobs
    assert workload.time_us == workload.alone_us == trace.time_us
    assert workload.nodes == (4, 5, 6, 7)
    assert workload.to_json()["workload"] == {"test": "halo", **options}
    assert of_program.time_us == of_program.alone_us


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ('"halo"', "a table such as"),
        ('{sizes = "4K"}', "workload.test = nothing: expected one of halo, allreduce"),
        ('{test = "pingpong"}', 'workload.test = "pingpong": expected one of halo, allreduce'),
        ('{test = "halo"}', "workload.sizes = nothing: expected one size"),
        ('{test = "halo", sizes = "4K:8K"}', "expected one size"),
        ('{test = "halo", sizes = "4K", goal = "x"}', 'workload.goal = "x": expected one of test, sizes'),
        ('{test = "halo", sizes = "4K", n = 99}', "workload.n = 99: expected at least 2 nodes, at most the 16"),
        ('{test = "halo", sizes = "4K", algorithm = "ring"}', "none for halo: it belongs to allreduce, alltoall"),
        ('{test = "halo", sizes = "4M", iterations = 1000000}', "or wait with --allow-long"),
    ],
)
def test_what_is_wrong_with_a_workload_is_said(tmp_path, workload, said):
    path = tmp_path / "jobs.toml"
    path.write_text(f'machine = "ape16"\n[job.a]\nworkload = {workload}\n')
    with pytest.raises((InputError, MachineError)) as refused:
        run_file(path)
    assert said in str(refused.value)


@pytest.mark.parametrize("key", ["map = [0, 1]", "ranks_per_node = 2", "ranks = 4", 'compute = "measured"'])
def test_a_workload_has_its_own_ranks(tmp_path, key):
    path = tmp_path / "jobs.toml"
    path.write_text(f'machine = "ape16"\n[job.a]\nworkload = {{test = "halo", sizes = "4K"}}\n{key}\n')
    with pytest.raises(InputError, match=f"job a: {key.split()[0]}"):
        run_file(path)
