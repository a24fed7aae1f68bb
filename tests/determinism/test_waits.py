"""A rank sleeps through the messages of an MPI_Waitall. With a timeline it wakes for each, at the same times."""

from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("waits.c")


# A card with mailboxes, one that waits for credit, and ranks that share a card.
@pytest.mark.parametrize(
    ("machine", "options"),
    [("ape16", ()), ("extoll-64", ()), ("apenetplus-v4", ()), ("ape16", ("--ranks-per-node", "2"))],
)
def test_waking_for_each_message_changes_nothing(apenet, build, tmp_path, machine, options, whole):
    def run(seed, label, *more):
        folder = tmp_path / f"{seed}-{label}"
        done = apenet(
            "run", "-n", "8", "--machine", machine, *options, "--out", folder, *more, "--", build(PROGRAM), str(seed)
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, (folder / "run.json").read_text(encoding="utf-8")

    for seed in range(1, 13 if whole else 2):
        assert run(seed, "asleep") == run(seed, "awake", "--trace", tmp_path / "trace.json")
