"""Benchmarks in a partition: those of a machine of its shape, and in no node outside it."""

import numpy as np
import pytest

import apenet as package
from apenet.base.errors import InputError

PLANE = package.machine("ape128", partition="1x4x4@6,0,0")
SHAPED = package.machine("ape128", ["network.dims=[1,4,4]"])


@pytest.mark.parametrize(
    ("test", "options"),
    [
        ("pingpong", {"sizes": "1K:4K"}),
        ("unidirectional", {"sizes": "4K:4K", "nodes": "2,7"}),
        ("pingpong", {"sizes": "1K:2K", "layer": "mpi", "nodes": "0,5"}),
        ("pingpong", {"sizes": "1K:1K", "layer": "apelib"}),
        ("halo", {"sizes": "4K:8K"}),
        ("halo", {"sizes": "4K:4K", "layer": "apelib"}),
        ("allreduce", {"sizes": "4K:4K", "n": 8}),
        ("alltoall", {"sizes": "2K:2K"}),
        ("randomaccess", {"sizes": "8K:8K"}),
    ],
)
def test_a_plane_measures_what_a_machine_of_its_shape_does(test, options):
    measure = getattr(package.bench, test)
    inside, alone = measure(PLANE, **options), measure(SHAPED, **options)
    assert np.array_equal(inside.times_us, alone.times_us)
    assert np.array_equal(inside.bandwidths_mib_s, alone.bandwidths_mib_s)


def test_an_open_box_exchanges_as_a_mesh_does():
    """Along X a box of ape128 is open, so no pair of a halo lies across its ends."""
    box = package.bench.halo(package.machine("ape128", partition="4x1x1"), sizes="8K:8K")
    mesh = package.bench.halo(
        package.machine("ape128", ["network.topology=mesh", "network.dims=[4,1,1]"]), sizes="8K:8K"
    )
    assert np.array_equal(box.times_us, mesh.times_us)
    assert box.messages[0] == mesh.messages[0]


def test_the_partition_stands_in_the_result():
    result = package.bench.pingpong(PLANE, sizes="1K:1K")
    assert result.to_json()["partition"] == "1x4x4@6,0,0"


def test_what_does_not_fit_is_refused():
    with pytest.raises(InputError, match="nodes of partition 1x4x4@6,0,0 of ape128: 0 to 15"):
        package.bench.pingpong(PLANE, nodes="0,16")
    with pytest.raises(InputError, match="at most the 16 of partition"):
        package.bench.halo(PLANE, n=17)
    with pytest.raises(InputError, match="one of at least two nodes"):
        package.bench.pingpong(package.machine("ape128", partition="1x1x1"))
    with pytest.raises(InputError, match="takes the whole machine"):
        package.bench.alltoall(PLANE, sizes="4K", partitions="2:8")
    qpace = package.machine("qpace", ["network.dims=[8,4,4]"], partition="4x1x1")
    with pytest.raises(InputError, match="neighbours on partition 4x1x1 of qpace"):
        package.bench.pingpong(qpace, layer="tnw", sizes="128:128", nodes="0,3")


def test_the_command_takes_a_partition(apenet):
    done = apenet("bench", "pingpong", "-m", "ape128", "--partition", "1x4x4@6,0,0", "--sizes", "1K:1K")
    assert done.returncode == 0, done.stderr
    alone = apenet(
        "bench", "pingpong", "-m", "ape128", "--set", "network.dims=[1,4,4]", "--sizes", "1K:1K", "--no-check-settings"
    )
    assert done.stdout.splitlines()[-1] == alone.stdout.splitlines()[-1]
