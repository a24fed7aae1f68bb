"""A million Active Messages to one node, over every conduit of GASNet. Only with --whole: they take minutes."""

from pathlib import Path

import pytest

import apenet as package
from apenet.host.compiling import compile_program

SOURCE = Path(__file__).parents[1] / "native" / "gasnet" / "flood.c"
CONDUITS = {"extoll": "extoll-64", "ibv": "pax", "apelink": "ape16", "udp": "pax", "mpi": "ideal"}
NODES = 16
MESSAGES = 66_667
"""Messages of each sender."""
SLEEP_US = 1_000_000
MOST_KIB = 80 * 1024
"""Limit of the host's memory of each process: a message that waits takes some 200 bytes, so a million take more."""


@pytest.fixture(scope="module")
def flood(request, tmp_path_factory):
    if not request.config.getoption("--whole", default=False):
        pytest.skip("only with --whole: a million messages take a minute")
    program = tmp_path_factory.mktemp("gasnet") / "flood"
    compile_program(["-O2", SOURCE, "-o", program], ["gasnet-seq"])
    return program


@pytest.mark.parametrize("conduit", CONDUITS)
def test_a_million_messages_to_a_node_that_sleeps_arrive_in_bounded_memory(flood, conduit):
    done = package.run(
        [flood, str(MESSAGES), str(SLEEP_US), str(MOST_KIB)],
        n=NODES,
        machine=CONDUITS[conduit],
        environment={"GASNET_CONDUIT": conduit},
        capture=True,
    )
    assert done.stdout == f"{(NODES - 1) * MESSAGES} messages in order\n".encode()
    assert done.virtual_time_us > SLEEP_US
