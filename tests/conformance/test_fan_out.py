"""A rank that sends to all its neighbours at once uses the card's queues, and so all that its bus allows."""

import pytest

import apenet

# The tests of the card that reach the limit of its bus, and of its reads of host memory.
LIMITS = {"ape128": "bidirectional", "apenetplus-v5": "flush"}
SETTINGS = ("network.dims=[4, 4, 4]",)  # six different neighbours on both machines


def limit_of(machine, name):
    (limit,) = getattr(apenet.bench, LIMITS[name])(machine, sizes=[2**20]).bandwidths_mib_s
    return limit


@pytest.mark.parametrize("name", LIMITS)
def test_six_neighbours_get_what_the_bus_allows(name):
    machine = apenet.machine(name, SETTINGS)
    limit = limit_of(machine, name)
    for reached in apenet.bench.fanout(machine, sizes=[2**16, 2**20], neighbors=[6]).bandwidths_mib_s:
        assert 0.95 * limit < reached < 1.01 * limit


def test_any_number_of_neighbours_but_one_gets_what_the_bus_allows():
    """One neighbour gets what its link allows. Five share four queues unequally: docs/models/apelink.md."""
    machine = apenet.machine("ape128", SETTINGS)
    limit = limit_of(machine, "ape128")
    result = apenet.bench.fanout(machine, sizes=[2**20])
    assert result.neighbors.tolist() == [1, 2, 3, 4, 5, 6]
    one, *several = result.bandwidths_mib_s
    assert one < 0.85 * limit
    assert min(several) > 0.95 * limit
    assert result.bandwidths_mib_s[[1, 2, 3, 5]] == pytest.approx(limit, rel=0.01)
