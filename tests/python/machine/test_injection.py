"""Injection FIFOs and ejection ports in machine files: what cards and topologies cannot have is refused."""

import pytest

import apenet
from apenet.base.errors import ApenetError
from apenet.machine import machine as read_machine

QUEUE = "router.injection_rule=queue"


@pytest.mark.parametrize(
    ("machine", "settings", "said"),
    [
        ("ape16", ("router.injection_fifos=5",), "router.injection_fifos = 5: expected at most 4, card.queues"),
        (
            "ape16",
            ("router.injection_fifos=3", QUEUE),
            "router.injection_fifos = 3: expected a divisor of 4, card.queues",
        ),
        ("ape16", ("router.injection_fifos=2",), 'router.injection_rule = "direction": expected "queue" on this card'),
        ("extoll-64", ("router.injection_fifos=4",), "at most 3: VELO, requests of RMA and responses of RMA"),
        (
            "qpace",
            ("router.injection_fifos=4",),
            "router.injection_fifos = 4: expected a divisor of 6, one for each link",
        ),
        ("torus-slice", ("router.injection_fifos=5",), "1, or at least the 6 directions of a node"),
        ("torus-slice", ("router.injection_fifos=0",), "router.injection_fifos = 0"),
        (
            "extoll-64",
            ("router.injection_rule=least-loaded",),
            'router.injection_rule = "least-loaded": expected "queue" on this card',
        ),
        ("torus-slice", ("router.injection_rule=directions",), "router.injection_rule"),
        ("torus-slice", ("card.virtual_lanes=11",), "router.injection_fifos = 6: expected at most 5"),
        ("pax", ("router.injection_fifos=2", QUEUE), "router.injection_fifos = 2: expected 1 on a network.topology"),
        ("pax", ("router.ejection_ports=2",), "router.ejection_ports = 2: expected 1 on a network.topology"),
        # Both ends of a link count credits alike: there is one rule for all.
        ("torus-slice", ("network.link.credit_cycles=3",), "network.link.credit_cycles = 3: expected"),
        ("torus-slice", ("network.links.x.buffer_bytes=8320",), "network.links.x.buffer_bytes = 8320: expected"),
    ],
)
def test_impossible_counts_and_rules_are_refused(machine, settings, said):
    with pytest.raises(ApenetError) as error:
        apenet.bench.pingpong(read_machine(machine, settings), sizes=[16])
    assert said in str(error.value)


def test_the_cards_of_the_shipped_machines_take_several_fifos():
    """Each unit, queue or link by itself: a ping-pong uses one, and takes the same time."""
    for machine, fifos in (("ape16", 4), ("extoll-64", 3), ("qpace", 6)):
        times = []
        for count in (1, fifos):
            settings = (f"router.injection_fifos={count}", QUEUE, f"router.ejection_ports={count}")
            times.append(apenet.bench.pingpong(read_machine(machine, settings), sizes=[512]).times_us[0])
        assert times[0] == times[1]


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_the_least_loaded_fifo_separates_what_other_rules_join(engine):
    """By queue pair and by destination two of the six streams share a FIFO; five FIFOs are too few for directions."""
    sent = {}
    for rule, fifos in (("direction", 6), ("least-loaded", 6), ("least-loaded", 5), ("queue", 6), ("destination", 6)):
        machine = read_machine("torus-slice", (f"router.injection_rule={rule}", f"router.injection_fifos={fifos}"))
        result = apenet.bench.fanout(machine, sizes=[4 << 20], neighbors=[6], engine=engine)
        sent[rule, fifos] = result.bandwidths_mib_s[0]
    assert sent["least-loaded", 6] == pytest.approx(sent["direction", 6], rel=0.01)
    assert sent["least-loaded", 5] < 0.9 * sent["direction", 6]
    assert max(sent["queue", 6], sent["destination", 6]) < 0.6 * sent["direction", 6]


@pytest.mark.parametrize("engine", ["packet", "flit"])
def test_six_links_of_torus_slice_carry_what_its_engine_feeds(engine):
    """Six neighbours: 300 GB/s less headers; the flit engine idles two of 85 cycles between packets."""
    result = apenet.bench.fanout("torus-slice", sizes=[16 << 20], neighbors=[1, 6], engine=engine)
    one, six = (bytes_ / 1e3 for bytes_ in result.bandwidths_mib_s * 2**20 / 1e6)
    assert six > 0.95 * 300
    assert six / one == pytest.approx(6, rel=0.03)
