"""What srun and mpiexec of a cluster ask for, and how a job's nodes become a partition."""

import json

import pytest

import apenet
from apenet.base.errors import HostError, InputError
from apenet.slurm import daemons, steps


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
    assert steps.partition_of(ape128, [0, 1, 5]) == "nodes:0,1,5"
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
    if daemons._found("slurmctld") is not None:
        with pytest.raises(InputError, match=r"a path of at most [0-9]+ characters"):
            daemons.up(ape16, tmp_path / ("x" * 100))
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="expected a new folder"):
        daemons.up(ape16, tmp_path / "mine")
    (tmp_path / "mine" / "cluster.json").write_text(json.dumps({}))
    with pytest.raises(InputError, match="apenet cluster down --dir"):
        daemons.up(ape16, tmp_path / "mine")
    monkeypatch.setattr(daemons.shutil, "which", lambda *_, **__: None)
    with pytest.raises(HostError, match=r"slurmctld is not installed .*slurm-wlm"):
        daemons.up(ape16, folder)
    assert not folder.exists()
