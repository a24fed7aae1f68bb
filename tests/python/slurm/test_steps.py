"""What srun and mpiexec of a cluster ask for, and how a job's nodes become a partition."""

import json
import shutil
import tomllib

import pytest

import apenet
from apenet.base.errors import HostError, InputError
from apenet.cluster import run_file
from apenet.slurm import daemons, history, programs, steps


@pytest.mark.parametrize(
    ("line", "ranks", "nodes", "ranks_per_node", "program"),
    [
        ("-n 4 ./a -n 9", 4, None, None, ["./a", "-n", "9"]),
        ("-n4 -N2 ./a", 4, 2, None, ["./a"]),
        ("--ntasks=8 --ntasks-per-node 4 -- -x", 8, None, 4, ["-x"]),
        ("-np 3 -ppn 2 ./a", 3, None, 2, ["./a"]),
        ("-l -u --mpi=pmi2 -c 2 ./a", None, None, None, ["./a"]),
    ],
)
def test_options_in_front_of_the_program(line, ranks, nodes, ranks_per_node, program):
    step = steps.parse("srun", line.split())
    assert (step.ranks, step.nodes, step.ranks_per_node, step.program) == (ranks, nodes, ranks_per_node, program)
    assert step.is_labelled == ("-l" in line.split())


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--multi-prog file", 'srun = "--multi-prog": expected one of '),
        ("-n 0 ./a", 'srun -n = "0": expected a whole number'),
        ("-n", "srun -n = "),
        ("-n 2", "expected a program"),
        ("", "expected a program"),
    ],
)
def test_what_is_not_known_is_refused(line, said):
    with pytest.raises(InputError, match=said):
        steps.parse("srun", line.split())


@pytest.mark.parametrize("option", ["-w", "--partition=whole", "-t"])
def test_what_a_job_has_chosen_is_not_chosen_by_its_steps(option, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    words = [option] if "=" in option else [option, "1"]
    with pytest.raises(InputError, match="none in a job"):
        steps.command(daemons.Cluster(tmp_path, "ape16", ("a",), 1), "srun", [*words, "./a"])


def test_a_box_of_nodes_keeps_its_shape():
    ape128 = apenet.machine("ape128")
    assert steps.partition_of(ape128, list(range(128))) == "8x4x4@0,0,0"
    plane = list(ape128.with_partition("1x4x4@3,0,0").partition.nodes)
    assert steps.partition_of(ape128, plane) == "1x4x4@3,0,0"
    assert steps.partition_of(ape128, [0, 1, 5]) == ""
    assert steps.partition_of(ape128, list(range(12))) == ""  # the first nodes of a box
    assert steps.partition_of(ape128, [7]) == "1x1x1@7,0,0"
    tree = apenet.machine("my-cluster")
    assert steps.partition_of(tree, [0, 1]) == "nodes:0,1"


@pytest.mark.parametrize("content", [None, "{", "[]", '{"machine": 1}'])
def test_a_folder_without_a_cluster(content, tmp_path):
    if content is not None:
        (tmp_path / "cluster.json").write_text(content)
    with pytest.raises(InputError, match="that apenet cluster up has started"):
        daemons.opened(tmp_path)


def test_nothing_is_started_where_it_cannot_be(tmp_path, monkeypatch):
    ape16, folder = apenet.machine("ape16"), tmp_path / "cluster"
    with pytest.raises(InputError, match="a machine with a number of nodes"):
        daemons.up(apenet.machine("ideal"), folder)
    with pytest.raises(InputError, match="without blanks"):
        daemons.up(ape16, tmp_path / "a folder")
    if programs.found("slurmctld") is not None:
        with pytest.raises(InputError, match=r"a path of at most [0-9]+ characters"):
            daemons.up(ape16, tmp_path / ("x" * 100))
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="expected a new folder"):
        daemons.up(ape16, tmp_path / "mine")
    (tmp_path / "mine" / "cluster.json").write_text(json.dumps({}))
    with pytest.raises(InputError, match="apenet cluster down --dir"):
        daemons.up(ape16, tmp_path / "mine")
    monkeypatch.setattr(programs.shutil, "which", lambda *_, **__: None)
    with pytest.raises(HostError, match=r"slurmctld is not installed .*slurm-wlm"):
        daemons.up(ape16, folder)
    assert not folder.exists()


@pytest.fixture
def noted(tmp_path):
    """A cluster in which three jobs have run four steps; those of job 12 began before those of job 2."""
    machine = apenet.machine("ape16")
    (tmp_path / "cluster").mkdir()
    for name, content in machine.saved().items():
        (tmp_path / "cluster" / name).write_bytes(content)
    names = tuple(machine.description().node_name(node) for node in range(16))
    cluster = daemons.Cluster(tmp_path / "cluster", "ape16", names, 1, tuple(machine.saved()))
    for job, first, command in ((12, 8, ["true"]), (2, 0, ["bin/ring", "é"]), (2, 0, ["true"]), (3, 4, ["true"])):
        nodes = list(range(first, first + 4))
        history.note(
            cluster,
            history.RunStep(
                job=str(job),
                nodes=nodes,
                partition=steps.partition_of(machine, nodes),
                ranks=4,
                ranks_per_node=1,
                command=command,
                folder="/data/user" if job == 2 else "/",
            ),
        )
    return cluster


def test_the_steps_of_jobs_become_jobs_of_one_network(noted, tmp_path):
    assert list(history.steps_of(noted)) == ["2.0", "2.1", "3.0", "12.0"]
    assert history.write_jobs(noted, ["2.0", "12"], tmp_path / "out") == ["2.0", "12.0"]
    written = tomllib.loads((tmp_path / "out" / "jobs.toml").read_text())
    assert written["job"]["j2-0"]["command"] == ["bin/ring", "é"]
    assert written["job"]["j2-0"]["directory"] == "/data/user"
    assert written["job"]["j12-0"] == {
        "command": ["true"],
        "directory": "/",
        "ranks": 4,
        "ranks_per_node": 1,
        "partition": "4x1x1@0,0,1",
    }
    assert history.write_jobs(noted, ["12", "3.0"], tmp_path / "out") == ["12.0", "3.0"]
    shutil.rmtree(noted.folder)  # what apenet cluster down does
    result = run_file(tmp_path / "out" / "jobs.toml", matrix=False)
    assert [job.outcome for job in result.jobs] == ["completed"] * 2
    assert [(job.name, job.nodes) for job in result.jobs] == [
        ("j12-0", (8, 9, 10, 11)),
        ("j3-0", (4, 5, 6, 7)),
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["7"], 'step = "7": expected one of 2.0, 2.1, 3.0, 12.0'),
        (["2.2"], 'step = "2.2"'),
        (["2"], "2.0 and 2.1, on node ape16-0-0-0"),
        ([], "2.0 and 2.1, on node ape16-0-0-0"),
    ],
)
def test_steps_that_cannot_be_jobs_of_one_network_are_refused(noted, tmp_path, names, said):
    with pytest.raises(InputError, match=said):
        history.write_jobs(noted, names, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_a_step_there_is_nothing_to_write(noted, tmp_path):
    (noted.folder / "steps.jsonl").unlink()
    with pytest.raises(InputError, match="whose jobs have run a step"):
        history.write_jobs(noted, [], tmp_path / "out")
