"""A rank that sends to all its neighbours at once uses the card's queues, and so all that its bus allows."""

from pathlib import Path

import pytest

import apenet
from apenet.host.toolchain import compiled

SOURCE = Path(__file__).resolve().parents[2] / "bench" / "mpi" / "fan_out.c"
# The tests of the card that reach the limit of its bus, and of its reads of host memory.
LIMITS = {"ape128": "bidirectional", "apenetplus-v5": "flush"}
SETTINGS = ("network.dims=[4, 4, 4]",)  # six different neighbours on both machines
NODES = (0, 1, 3, 4, 12, 16, 48)  # node 0, and its neighbours in +x, -x, +y, -y, +z, -z


@pytest.mark.parametrize(("size_bytes", "messages"), [(65536, 32), (2**20, 6)], ids=["64KiB", "1MiB"])
@pytest.mark.parametrize("name", LIMITS)
def test_six_neighbours_get_what_the_bus_allows(name, size_bytes, messages):
    machine = apenet.machine(name, SETTINGS)
    (limit,) = getattr(apenet.bench, LIMITS[name])(machine, sizes=[2**20]).bandwidths_mib_s
    reached = fan_out(machine, NODES, size_bytes, messages)
    assert 0.95 * limit < reached < 1.01 * limit


def test_two_directions_of_one_dimension_do_not_wait_for_each_other():
    machine = apenet.machine("ape128")
    one, two = (fan_out(machine, nodes, 65536, 32) for nodes in ((0, 1), (0, 1, 7)))
    assert two > 1.2 * one


def fan_out(machine, nodes, size_bytes, messages):
    command = [compiled(SOURCE), str(size_bytes), str(messages)]
    ran = apenet.run(command, n=len(nodes), machine=machine, mapping=nodes, capture=True)
    assert ran.ok, ran.stderr
    return float(ran.stdout)
