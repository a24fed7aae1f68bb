"""An MPI program on nodes with two cards, which chooses between them."""

import json
import os
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("rails") / "two_cards.c"
BOTH_CARDS = {"MPIR_CVAR_CH4_OFI_MAX_NICS": "2"}


@pytest.fixture
def times_us(apenet, build, tmp_path):
    """Half round trips of 8 bytes by communicators that prefer the first card and the second."""
    program = build(SOURCE)

    def run(machine, *options, environment=None):
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        done = apenet(
            "run",
            "-n",
            "2",
            "--machine",
            machine,
            *options,
            "--out",
            out,
            "--",
            program,
            env={**os.environ, **(environment or {})},
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return [float(line) for line in done.stdout.splitlines()], json.loads((out / "run.json").read_text())

    return run


def test_a_communicator_chooses_its_card(times_us):
    (torus, infiniband), once = times_us("quong", environment=BOTH_CARDS)
    (_, again) = times_us("quong", environment=BOTH_CARDS)
    assert once == again
    assert infiniband < 0.5 * torus
    ((one, other), _) = times_us("quong")
    assert one == pytest.approx(other, rel=0.02), "MPICH uses one card unless it is told to use more"
    ((alone, _), _) = times_us("quong", "--rail", "first")
    assert one == alone
    ((alone, _), _) = times_us("quong", "--rail", "ib")
    assert infiniband == pytest.approx(alone, rel=0.02)  # beside the polls of the other card


def test_equal_cards_take_equal_times(times_us):
    """A poll of one card's queue does not wait for an event when the other's has brought what the program waits for."""
    (one, other), _ = times_us("pax-dual", environment=BOTH_CARDS)
    assert one == pytest.approx(other, rel=0.01)


def test_links_of_a_further_card_have_its_name(times_us, tmp_path):
    places = tmp_path / "places"
    places.write_text("0\n17\n", encoding="utf-8")
    _, report = times_us("pax-dual", "--map", places, environment=BOTH_CARDS)
    used = [link["name"] for link in report["links"] if link["packets"] > 0]
    assert any(name.startswith("port2: ") for name in used)
    assert any(not name.startswith("port2: ") for name in used)


def test_a_card_without_any_message_is_named(apenet, build):
    def notes(*options, environment=None):
        command = ("run", "-n", "2", "--machine", "quong", *options, "--", build(SOURCE))
        done = apenet(*command, env={**os.environ, **(environment or {})})
        assert done.returncode == 0, done.stderr
        return [line for line in done.stderr.splitlines() if "no message took" in line]

    assert notes() == [
        "apenet: note: no message took card ib: an MPI library uses a node's first card unless it is told otherwise "
        "(--rail)"
    ]
    assert notes(environment=BOTH_CARDS) == []
    assert notes("--rail", "ib") == []
