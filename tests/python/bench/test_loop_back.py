"""Messages within a node that its card carries: card.same_node = card."""

import pytest

import apenet
from apenet.base.errors import ApenetError, InputError

BY_CARD = "card.same_node=card"


def measured(test, machine, *settings, **options):
    return apenet.bench.measure(test, apenet.machine(machine, list(settings)), nodes="0,0", **options)


@pytest.mark.parametrize(
    ("machine", "setting", "said"),
    [
        ("ape16", "card.same_node=cards", "card.same_node = \"cards\": expected one of 'memory' or 'card'"),
        ("ape16", "card.same_node=1", "card.same_node = 1: expected"),
        ("ape16", "host.same_node=card", "host.same_node"),
        (
            "qpace",
            BY_CARD,
            'card.same_node = "card": expected "memory" with card.kind = "tnw": its links lead to neighbours only',
        ),
        ("pax", BY_CARD, 'card.same_node = "card": expected "memory" with card.kind = "hca"'),
        ("ideal", BY_CARD, 'card.same_node = "card": expected "memory" with card.kind = "ideal"'),
        ("quong", "rail.ib.card.same_node=card", 'rail.ib.card.same_node = "card": expected "memory"'),
    ],
)
def test_what_a_card_cannot_loop_back_is_refused(machine, setting, said):
    with pytest.raises(ApenetError) as error:
        apenet.bench.pingpong(apenet.machine(machine, [setting]), sizes=[16])
    assert said in str(error.value)


def test_the_card_is_measured_on_one_node_only_if_it_takes_part():
    with pytest.raises(InputError, match='nodes = "0,0": expected two different nodes at layer card: only with card'):
        measured("pingpong", "apenetplus-v4", sizes=[16])
    with pytest.raises(InputError, match='nodes = "0,0": expected at least two different nodes'):
        measured("fanout", "ape16", BY_CARD, sizes=[16])
    with pytest.raises(InputError, match='nodes = "0,0": expected two different nodes at layer velo'):
        measured("pingpong", "extoll-64", BY_CARD, sizes=[16], layer="velo")


@pytest.mark.parametrize("machine", ["apenetplus-v4", "apenetplus-v5", "ape16", "extoll-64"])
def test_a_message_saves_the_link_and_one_router(machine):
    (there,) = apenet.bench.pingpong(machine, sizes=[64]).times_us
    (back,) = measured("pingpong", machine, BY_CARD, sizes=[64]).times_us
    (by_flits,) = measured("pingpong", machine, BY_CARD, sizes=[64], engine="flit").times_us
    assert 0.05 < there - back < 0.4
    assert by_flits == pytest.approx(back, rel=0.03)


@pytest.mark.parametrize("machine", ["apenetplus-v4", "apenetplus-v5"])
def test_both_directions_share_the_one_card(machine):
    """Between two nodes there are two cards."""
    (one,) = measured("unidirectional", machine, BY_CARD, sizes=[262144]).bandwidths_mib_s
    (both,) = measured("bidirectional", machine, BY_CARD, sizes=[262144]).bandwidths_mib_s
    (apart,) = apenet.bench.bidirectional(machine, sizes=[262144]).bandwidths_mib_s
    assert both == pytest.approx(one, rel=0.1)
    assert apart > 1.7 * both


def test_mpi_within_a_node_takes_the_way_that_the_machine_names():
    sizes = [8, 65536]
    memory, card = (measured("pingpong", "apenetplus-v4", *of, sizes=sizes, layer="mpi") for of in ((), (BY_CARD,)))
    assert (card.times_us > memory.times_us).all()
    between = apenet.bench.pingpong("apenetplus-v4", sizes=sizes, layer="mpi")
    assert card.times_us[0] == pytest.approx(between.times_us[0], abs=0.4)


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_mpi_both_ways_within_two_nodes_twice_the_same(engine):
    machine = apenet.machine("apenetplus-v5", [BY_CARD])
    first, second = (
        apenet.bench.bidirectional(machine, nodes="0,0,1,1", sizes=[1024, 65536], layer="mpi", engine=engine).to_json()
        for _ in range(2)
    )
    assert first == second
