"""Programs with one fault each: the verdict names it, and its gain is true when the advice is followed."""

from pathlib import Path

import pytest

import apenet

SLOW = Path(__file__).with_name("slow_programs.c")
SLOW_LINKS = "network.link.clock_mhz=40"


@pytest.fixture(scope="module")
def slow(build):
    return build(SLOW)


@pytest.fixture
def explained(tmp_path, slow):
    """Runs a program and explains it."""

    def explain(*arguments, **options):
        out = tmp_path / "run"
        result = apenet.run([slow, *arguments], out=out, record=out / "recording.goal", capture=True, **options)
        return result, apenet.explain(out)

    return explain


def gain(before, after):
    return 1 - after.virtual_time_us / before.virtual_time_us


def test_a_late_sender(explained, slow):
    result, content = explained("late-sender", n=4)
    assert content["verdict"]["advice"] == "sends before computation"
    assert "because a sender is late" in content["verdict"]["text"]
    assert content["verdict"]["text"].endswith("if the data is ready before it.")
    mended = apenet.run([slow, "late-sender", "mended"], n=4, capture=True)
    assert content["verdict"]["gain"] == pytest.approx(gain(result, mended), abs=0.01)
    assert gain(result, mended) > 0.4


def test_a_bad_map(explained, slow):
    machine = apenet.machine("ape16", [SLOW_LINKS])
    result, content = explained("ring", n=16, machine=machine, map="random:7")
    assert content["verdict"]["advice"] == "linear"
    assert "--map linear saves" in content["verdict"]["text"]
    mended = apenet.run([slow, "ring"], n=16, machine=machine, map="linear", capture=True)
    assert content["verdict"]["gain"] == pytest.approx(gain(result, mended), abs=0.01)
    assert gain(result, mended) > 0.1


def test_an_eager_limit(explained, slow):
    result, content = explained("rendezvous", n=4)
    assert content["verdict"]["advice"] == "eager limit of 16384 B"
    assert "because a receiver is late for a rendezvous" in content["verdict"]["text"]
    machine = apenet.machine("ape16", ["software.mpi.eager_limit_bytes=16384"])
    mended = apenet.run([slow, "rendezvous"], n=4, machine=machine, capture=True)
    assert content["verdict"]["gain"] == pytest.approx(gain(result, mended), abs=0.01)
    assert gain(result, mended) > 0.4


def test_a_hot_link(explained, slow):
    """On a ring of eight, partners four links apart share each link with another pair; neighbours do not."""
    machine = apenet.machine("ape16", [SLOW_LINKS, "network.dims=[8,1,1]"])
    result, content = explained("far-partner", n=8, machine=machine)
    assert "Link (0,0,0)+x is busy for 100 % of the time, and carries messages of 2 pairs" in content["verdict"]["text"]
    text = content["verdict"]["text"]
    assert "has not left, most of that while the network takes packets more slowly than the card makes them. " in text
    assert content["verdict"]["advice"] == "found"
    assert content["verdict"]["limit"] == "links twice as fast"
    assert [0, 4] in content["hot_link"]["pairs"]  # ties between the two directions are broken by node
    assert len(content["hot_link"]["pairs"]) == 2
    assert content["link_users"]["(0,0,0)+x"] == content["hot_link"]["pairs"]
    loaded = {name for name, busy, *_ in content["links"] if busy > 0}
    assert set(content["link_users"]) == loaded
    nodes = next(one["nodes"] for one in content["alternatives"] if one["name"] == "found")
    mended = apenet.run([slow, "far-partner"], n=8, machine=machine, map=nodes, capture=True)
    assert content["verdict"]["gain"] == pytest.approx(gain(result, mended), abs=0.01)
    assert gain(result, mended) > 0.4


def test_links_and_routers_that_limit_together(explained, slow):
    """Both move 12.5 GB/s on this machine: one alone twice as fast saves little, though a link is busy all the time."""
    result, content = explained("far-partner", n=16, machine="my-cluster")
    gains = {one["name"]: one["gain"] for one in content["alternatives"]}
    assert gains["links twice as fast"] + gains["routers twice as fast"] < 0.1
    assert content["verdict"]["limit"] == "links and routers twice as fast"
    (settings,) = (
        one["settings"] for one in content["alternatives"] if one["name"] == "links and routers twice as fast"
    )
    machine = apenet.machine("my-cluster", settings)
    faster = apenet.run([slow, "far-partner"], n=16, machine=machine, capture=True)
    assert gains["links and routers twice as fast"] == pytest.approx(gain(result, faster), abs=0.01)
    assert gain(result, faster) > 0.2


def test_serialised_sends(explained, slow):
    result, content = explained("serialised", n=8)
    assert content["verdict"]["advice"] == "sends at once"
    assert "Sending with MPI_Isend, then one MPI_Waitall would save" in content["verdict"]["text"]
    mended = apenet.run([slow, "serialised", "mended"], n=8, capture=True)
    assert content["verdict"]["gain"] == pytest.approx(gain(result, mended), abs=0.01)
    assert gain(result, mended) > 0.1


def test_load_imbalance(explained, slow):
    """Ranks compute 1, 2, 3 and 4 parts: equally divided, 2.5 of 4."""
    result, content = explained("imbalance", n=4)
    assert content["verdict"]["advice"] == "equal computation"
    mended = apenet.run([slow, "imbalance", "mended"], n=4, capture=True)
    assert content["verdict"]["gain"] == pytest.approx(gain(result, mended), abs=0.01)
    assert gain(result, mended) == pytest.approx(1 - 2.5 / 4, abs=0.05)
    efficiency = {one["name"]: one["value"] for one in content["efficiencies"]}
    assert efficiency["load balance"] == pytest.approx(2.5 / 4)


def test_what_cannot_be_improved_gets_no_advice(explained):
    _, content = explained("alone", n=4)
    assert content["verdict"]["advice"] is None
    assert content["verdict"]["limit"] is None
    assert content["verdict"]["text"].endswith("There is nothing to gain from the network.")


def test_waits_of_other_processors_are_said_to_be_unknown(tmp_path):
    """Chakra's traces communicate beside the processor that computes; so did this say that no rank waits."""
    trace = tmp_path / "beside.goal"
    trace.write_text(
        "num_ranks 2\nrank 0 {\nl1: send 1000000b to 1 tag 0 cpu 1\n}\n"
        "rank 1 {\nl1: recv 1000000b from 0 tag 0 cpu 1\nl2: calc 1000\nl2 requires l1\n}\n"
    )
    apenet.replay(trace, machine="ape16", out=tmp_path / "run")
    text = apenet.explain(tmp_path / "run")["verdict"]["text"]
    assert text.startswith("The first processor of no rank waits for the network; other processors move the messages")
