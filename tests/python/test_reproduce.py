"""Published beside simulated: marked as what it is, and in a file when asked for."""

import json

import pytest

from apenet.errors import InputError
from apenet.reproduce import plan, plot, reproduce


def test_the_card_of_2004():
    reproduction = reproduce(plan(["apenet-2004"]))
    assert reproduction.agrees
    roles = {comparison.key: comparison.published.role for comparison in reproduction.comparisons}
    assert roles["unidirectional_bandwidth"] == "predicted"
    assert roles["bidirectional_bandwidth"] == "fitted"
    for comparison in reproduction.comparisons:
        assert comparison.agrees


def test_context_never_agrees_or_disagrees():
    (sweep,) = plan(["ape16.one_way"])
    assert [key for key, _ in sweep.results] == ["one_way"]
    (comparison,) = reproduce([sweep]).comparisons
    assert comparison.agrees is None
    assert comparison.to_json()["role"] == "context"


def test_unknown_results_are_named():
    with pytest.raises(InputError, match=r"ape128\.round_trip"):
        plan(["ape128.rtt"])


def test_a_folder_gets_numbers_and_a_plot(apenet, tmp_path):
    done = apenet("reproduce", "--only", "apenet-2004.bidirectional_bandwidth", "--out", tmp_path / "report")
    assert done.returncode == 0, done.stderr
    assert "fitted" in done.stdout
    (result,) = json.loads((tmp_path / "report" / "results.json").read_text())["results"]
    assert result["published"] == 677
    assert result["agrees"]
    assert (tmp_path / "report" / "results.png").read_bytes().startswith(b"\x89PNG")


def test_a_plot_of_one_sweep(tmp_path):
    plot(reproduce(plan(["apenet-2004.unidirectional_bandwidth"])), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000
