"""The numbers of a run's page, its input, and that nothing in it can run as a script."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import apenet
from apenet.base.errors import InputError
from apenet.cli import app
from apenet.explain.call_times import call_times
from apenet.explain.critical_path import CriticalPath
from apenet.explain.folder import read_folder
from apenet.explain.frames import frames
from apenet.explain.report import page
from apenet.explain.timed import operations_of, timed
from apenet.explain.waiting import caused

SLOW = Path(__file__).with_name("slow_programs.c")
HOSTILE = "</script><script>alert(1)</script><!-- \" onload=alert(2) '"


@pytest.fixture(scope="module")
def slow(build):
    return build(SLOW)


@pytest.fixture(scope="module")
def run_folder(slow, tmp_path_factory):
    out = tmp_path_factory.mktemp("explained") / "run"
    apenet.run([slow, "serialised"], n=8, out=out, record=out / "recording.goal", capture=True)
    return out


@pytest.fixture(scope="module")
def replayed(run_folder):
    run = read_folder(run_folder)
    return timed(run.request, run.schedule, operations_of(run.schedule))


def copied(folder, tmp_path):
    other = tmp_path / "copy"
    other.mkdir()
    for file in folder.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    return other


class TestPath:
    def test_its_parts_sum_to_the_time_of_the_run(self, replayed):
        parts = list(CriticalPath(replayed))
        assert parts[0].start == 0
        assert parts[-1].until == replayed.time_ps
        assert all(one.until == following.start for one, following in pairwise(parts))
        assert sum(part.length for part in parts) == replayed.time_ps

    @pytest.mark.parametrize("card", ["ape16", "quong", "extoll-64", "qpace", "ideal"])
    def test_on_every_card(self, run_folder, card):
        run = read_folder(run_folder)
        other = replace(run.request, machine=apenet.machine(card))
        replay = timed(other, run.schedule, operations_of(run.schedule))
        assert sum(part.length for part in CriticalPath(replay)) == replay.time_ps


class TestWaits:
    def test_the_pieces_sum_to_the_waiting_of_each_rank(self, replayed):
        pieces = caused(replayed)
        sums = np.zeros(8, dtype=np.int64)
        np.add.at(sums, replayed.waits.rank[pieces.wait], pieces.length)
        assert sums.tolist() == replayed.report.waited_ps.tolist()

    def test_waits_are_of_the_call_in_which_the_program_waited(self, run_folder):
        calls = {one["call"] for one in apenet.explain(run_folder)["waits"]["calls"]}
        assert calls <= {"MPI_Send", "MPI_Recv", "MPI_Finalize", ""}
        assert {"MPI_Send", "MPI_Recv"} <= calls


class TestPorts:
    @pytest.fixture
    def result(self, run_folder):
        return json.loads((run_folder / "run.json").read_text())

    def test_links_are_as_busy_as_each_of_them(self, result):
        links = next(port for port in result["ports"] if port["name"] == "links")
        busy = [link["busy_us"] for link in result["links"]]
        assert links["busy_us"] == pytest.approx(sum(busy))
        assert links["busiest_us"] == max(busy)
        assert links["used"] == len(busy)
        assert links["packets"] == sum(link["packets"] for link in result["links"])

    def test_every_packet_leaves_one_card_and_reaches_another(self, result):
        ports = {port["name"]: port for port in result["ports"]}
        assert ports["ports from cards"]["packets"] == ports["ports to cards"]["packets"] > 0
        assert ports["ports from cards"]["count"] == 16

    def test_the_bus_of_the_sender_is_the_busiest(self, result):
        """Rank 0 sends 70 messages of 40000 bytes over 8 bytes a clock of 100 MHz; each burst has 16 clocks more."""
        buses = next(port for port in result["ports"] if port["name"] == "buses")
        bursts = 70 * -(-40000 // 256)
        clocks = 70 * 40000 / 8 + bursts * 16
        assert buses["busiest_us"] == pytest.approx(clocks / 100, rel=0.05)
        assert buses["packets"] >= bursts
        assert buses["waited_us"] > 0

    def test_replay_counts_the_same(self, run_folder, result, tmp_path):
        apenet.replay(run_folder / "recording.goal", out=tmp_path / "again")
        assert json.loads((tmp_path / "again" / "run.json").read_text())["ports"] == result["ports"]


def test_calls_computation_and_nothing_else_make_the_time(replayed):
    rows = call_times(replayed, caused(replayed))
    in_calls = sum(row["waiting_us"] + row["software_us"] for row in rows)
    whole = replayed.report.finish_ps.sum() - replayed.report.computed_ps.sum()
    assert in_calls == pytest.approx(whole / 1e6, abs=1e-5)
    assert {row["call"]: row["operations"] for row in rows if row["operations"]} == {"MPI_Send": 70, "MPI_Recv": 70}


def test_computation_that_cost_nothing_is_said(run_folder):
    assert "cost no virtual time" in apenet.explain(run_folder)["warnings"][0]


def test_a_recording_repeats_the_run_exactly(run_folder):
    assert apenet.explain(run_folder)["replay"]["is_exact"]


def test_the_same_run_gives_the_same_page(run_folder, tmp_path):
    one = apenet.report(run_folder, tmp_path / "one.html").read_bytes()
    assert apenet.report(run_folder, tmp_path / "two.html").read_bytes() == one


@pytest.mark.parametrize(
    ("machine", "nodes", "places"),
    [
        ("ape16", [5, 0], ["(1,1,0)", "(0,0,0)"]),  # 4x2x2, x first
        ("my-cluster", [9, 0], ["leaf1", "leaf0"]),  # eight nodes below a leaf
        ("ideal", [1, 0], []),
    ],
)
def test_nodes_have_the_names_of_their_routers(slow, tmp_path, machine, nodes, places):
    apenet.run([slow, "none"], n=2, machine=machine, map=nodes, out=tmp_path / "run", capture=True)
    assert apenet.explain(tmp_path / "run")["places"] == places


def test_the_page_loads_nothing_and_names_no_other_place(run_folder, tmp_path):
    text = apenet.report(run_folder, tmp_path / "page.html").read_text()
    assert len(text) < 500_000
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text)


class TestTheCommandThatRepeatsIt:
    def repeated(self, folder, tmp_path):
        """Runs the command of the page in the run's folder, and returns what it wrote and the command's words."""
        words = shlex.split(apenet.explain(folder)["repeat"])
        at = words.index("--") if "--" in words else len(words)
        done = CliRunner().invoke(app, [*words[1:at], "--out", str(tmp_path / "again"), *words[at:]])
        assert done.exit_code == 0, done.output
        return json.loads((tmp_path / "again" / "run.json").read_text()), words

    def test_all_options_of_a_run(self, slow, tmp_path):
        machine = apenet.machine(
            "ape16", ["network.link.clock_mhz=40"], ["link (0,0,0)+x down @10us up @20us"], partition="2x2x2"
        )
        out = tmp_path / "run"
        options = {"map": "random:3", "ranks_per_node": 2, "seed": 7, "engine": "flit", "capture": True}
        apenet.run([slow, "ring", "a b"], n=12, machine=machine, out=out, **options)
        again, words = self.repeated(out, tmp_path)
        assert again == json.loads((out / "run.json").read_text())
        assert words[4:8] == ["-m", "ape16", "--set", "network.link.clock_mhz=40"]
        assert words[-3:] == [str(slow), "ring", "a b"]

    @pytest.mark.parametrize("rail", ["ib", "first"])
    def test_one_of_several_cards(self, slow, tmp_path, rail):
        out = tmp_path / "run"
        machine = apenet.machine("quong", rail=rail)
        apenet.run([slow, "ring"], n=4, machine=machine, out=out, record=out / "recording.goal", capture=True)
        content = apenet.explain(out)
        assert content["replay"]["operations"] > 0
        assert abs(content["replay"]["deviation"]) < 0.01
        (out / "recording.goal").unlink()
        again, words = self.repeated(out, tmp_path)
        assert again == json.loads((out / "run.json").read_text())
        assert words[4:8] == ["-m", "quong", "--rail", rail]

    def test_limits(self, slow, tmp_path):
        out = tmp_path / "run"
        options = {"limit_virtual": 0.001, "limit_wall": "2min", "capture": True, "check": False}
        apenet.run([slow, "ring"], n=4, out=out, **options)
        words = shlex.split(apenet.explain(out)["repeat"])
        assert words[6:10] == ["--limit-virtual", "0.001s", "--limit-wall", "2min"]
        at = words.index("--")
        done = CliRunner().invoke(app, [*words[1:at], "--out", str(tmp_path / "again"), *words[at:]])
        assert done.exit_code == 124
        assert (tmp_path / "again" / "run.json").read_text() == (out / "run.json").read_text()

    def test_a_machine_of_the_users_own_that_has_a_shipped_ones_name(self, slow, tmp_path, monkeypatch):
        text = b"".join(apenet.machine("ape16", ["bus.clock_mhz=66"]).saved().values())
        (tmp_path / "mine.toml").write_bytes(text)
        out = tmp_path / "run"
        apenet.run([slow, "ring"], n=4, machine=apenet.machine(tmp_path / "mine.toml"), out=out, capture=True)
        monkeypatch.chdir(out)
        again, words = self.repeated(out, tmp_path)
        assert again == json.loads((out / "run.json").read_text())
        assert words[4:6] == ["-m", "machine.toml"]

    def test_a_replay(self, run_folder, tmp_path):
        apenet.replay(run_folder / "recording.goal", machine="ape128", out=tmp_path / "run")
        again, words = self.repeated(tmp_path / "run", tmp_path)
        assert again == json.loads((tmp_path / "run" / "run.json").read_text())
        assert words[:3] == ["apenet", "replay", str(run_folder / "recording.goal")]


def test_the_shares_are_those_of_the_run(slow, tmp_path):
    """Ranks end at different times: a rank that has ended has no time that could be waiting."""
    out = tmp_path / "run"
    result = apenet.run(
        [slow, "ring"], n=32, machine="my-cluster", out=out, record=out / "recording.goal", capture=True
    )
    content = apenet.explain(out)
    share = sum(one["us"] for one in content["waits"]["causes"]) / content["replay"]["ranks_us"]
    assert content["verdict"]["text"].startswith(f"{100 * share:.0f} % of the ranks' time is waiting")
    assert share == pytest.approx(json.loads((out / "run.json").read_text())["waiting_share"], rel=1e-3)
    assert content["replay"]["ranks_us"] < 0.99 * 32 * result.virtual_time_us


def test_a_recording_of_other_messages_is_said(slow, tmp_path):
    folders = [tmp_path / name for name in ("one", "other")]
    for folder, program in zip(folders, ("ring", "imbalance"), strict=True):
        apenet.run([slow, program], n=4, out=folder, record=folder / "recording.goal", capture=True)
    assert not [one for one in apenet.explain(folders[0])["warnings"] if "of another run" in one]
    (folders[1] / "recording.goal").replace(folders[0] / "recording.goal")
    assert [one for one in apenet.explain(folders[0])["warnings"] if "of another run" in one]


def test_a_run_without_messages_says_so(tmp_path):
    out = tmp_path / "run"
    apenet.run(["true"], n=2, out=out, record=out / "recording.goal", capture=True)
    assert apenet.explain(out)["verdict"]["text"].startswith("No message was sent.")


def test_the_placements_are_values_of_map_that_a_run_takes(slow, tmp_path):
    """Each `--map` of the page, applied, has the page's time: the replay of this program is exact."""
    out = tmp_path / "run"
    apenet.run([slow, "ring"], n=12, map="random:3", out=out, record=out / "recording.goal", capture=True)
    content = apenet.explain(out)
    assert content["replay"]["is_exact"]
    placements = {one["name"]: one for one in content["alternatives"] if one["kind"] == "placement"}
    assert placements.keys() >= {"linear", "random:1", "cart:4x3", "cart:3x2x2"}
    for name in placements.keys() - {"found"}:
        run = apenet.run([slow, "ring"], n=12, map=name, capture=True)
        assert run.virtual_time_us == placements[name]["time_us"]


class TestHostileNames:
    def test_no_text_ends_the_script_or_is_markup(self, run_folder):
        content = apenet.explain(run_folder)
        content["command"] = ["./program", HOSTILE]
        content["repeat"] = HOSTILE
        content["warnings"] = [HOSTILE]
        content["message"] = HOSTILE
        content["machine"] = {**content["machine"], "name": HOSTILE, "title": HOSTILE}
        text = page(content)
        assert text.count("</script>") == page(apenet.explain(run_folder)).count("</script>")
        assert "alert(1)</script>" not in text
        data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
        assert json.loads(data[1])["message"] == HOSTILE

    def test_marks_of_the_template_in_a_name_are_text(self, run_folder):
        content = {**apenet.explain(run_folder), "message": "/*SCRIPT*/ /*STYLE*/"}
        data = re.search(r'id="data">(.*?)</script>', page(content), re.DOTALL)
        assert json.loads(data[1])["message"] == "/*SCRIPT*/ /*STYLE*/"

    def test_a_script_never_writes_markup(self):
        folder = Path(apenet.__file__).parent / "explain" / "page"
        scripts = [*folder.glob("*.js"), folder.parents[1] / "base" / "page" / "common.js"]
        for script in scripts:
            assert not re.search(r"innerHTML|insertAdjacentHTML|document\.write|eval\(", script.read_text()), script


class TestInput:
    def test_what_is_no_run(self, tmp_path):
        with pytest.raises(InputError, match="a run folder"):
            apenet.explain(tmp_path)
        with pytest.raises(InputError, match="it does not exist"):
            apenet.explain(tmp_path / "nowhere")
        (tmp_path / "file").write_text("")
        with pytest.raises(InputError, match="it is a file"):
            apenet.explain(tmp_path / "file")

    def test_another_version(self, run_folder, tmp_path):
        other = copied(run_folder, tmp_path)
        command = json.loads((other / "command.json").read_text())
        (other / "command.json").write_text(json.dumps({**command, "version": "0.0.1"}))
        with pytest.raises(InputError, match="run it again"):
            apenet.explain(other)

    def test_a_half_written_run(self, run_folder, tmp_path):
        other = copied(run_folder, tmp_path)
        (other / "run.json").unlink()
        with pytest.raises(InputError, match="a run that has ended"):
            apenet.explain(other)
        for text, said in (('{"version": ', "no complete JSON"), ("[" * 200_000, "brackets are too deep")):
            (other / "run.json").write_text(text)
            with pytest.raises(InputError, match=said):
                apenet.explain(other)

    def test_a_recording_of_another_run(self, run_folder, tmp_path):
        other = copied(run_folder, tmp_path)
        (other / "recording.goal").write_text("num_ranks 1\nrank 0 {\n}\n")
        with pytest.raises(InputError, match="the 8 ranks of the run"):
            apenet.explain(other)

    def test_without_recording_the_page_says_how_to_get_one(self, run_folder, tmp_path):
        other = copied(run_folder, tmp_path)
        (other / "recording.goal").unlink()
        content = apenet.explain(other)
        assert "--report" in content["verdict"]["text"]
        assert "alternatives" not in content
        assert content["links"]
        assert apenet.report(other).name == "report.html"

    def test_a_replay_whose_trace_has_moved(self, run_folder, tmp_path):
        trace = tmp_path / "trace.goal"
        trace.write_text((run_folder / "recording.goal").read_text())
        apenet.replay(trace, out=tmp_path / "again")
        moved = trace.rename(tmp_path / "moved.goal")
        with pytest.raises(InputError, match=r"--recording FILE, because its trace, .*trace\.goal"):
            apenet.explain(tmp_path / "again")
        assert apenet.explain(tmp_path / "again", recording=moved)["replay"]

    def test_a_file_of_other_origin_is_kept(self, run_folder, tmp_path):
        (tmp_path / "mine.html").write_text("<p>mine</p>")
        with pytest.raises(InputError, match="not apenet's"):
            apenet.report(run_folder, tmp_path / "mine.html")
        assert (tmp_path / "mine.html").read_text() == "<p>mine</p>"

    def test_a_result_without_folder(self, slow):
        with pytest.raises(InputError, match="out="):
            apenet.report(apenet.run([slow, "alone"], n=2, capture=True))

    def test_a_new_run_deletes_the_recording_of_an_earlier_one(self, slow, run_folder, tmp_path):
        other = copied(run_folder, tmp_path)
        apenet.run([slow, "alone"], n=2, out=other, capture=True)
        assert not (other / "recording.goal").exists()


class TestCommand:
    def test_run_with_a_report(self, slow, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        done = CliRunner().invoke(
            app, ["run", "-n", "4", "--report", "--engine", "packet", "--", str(slow), "imbalance"]
        )
        assert done.exit_code == 0
        assert [file.name for file in tmp_path.iterdir()] == ["report.html"]

    def test_a_program_that_would_be_taken_for_the_report(self, slow, tmp_path):
        done = CliRunner().invoke(app, ["run", "-n", "2", "--report", str(slow)])
        assert isinstance(done.exception, InputError)
        assert "-- before the program" in str(done.exception)

    def test_run_with_a_report_in_which_no_time_passes(self, tmp_path):
        report = tmp_path / "why.html"
        done = CliRunner().invoke(app, ["run", "-n", "2", "--report", str(report), "--", "hostname"])
        assert done.exit_code == 0, done.output
        assert "No message was sent" in done.output + done.stderr
        assert report.exists()

    def test_run_with_a_report_keeps_the_recording_in_its_folder(self, slow, tmp_path):
        out = tmp_path / "run"
        arguments = [
            "-n",
            "2",
            "--out",
            str(out),
            "--report",
            str(tmp_path / "why.html"),
            str(slow),
            "alone",
            "--report",
        ]
        assert CliRunner().invoke(app, ["run", *arguments]).exit_code == 0
        assert (out / "recording.goal").exists()
        assert (tmp_path / "why.html").exists()

    def test_explain_prints_the_verdict_and_writes_the_page(self, run_folder, tmp_path):
        other = copied(run_folder, tmp_path)
        done = CliRunner().invoke(app, ["explain", str(other)])
        assert done.exit_code == 0
        assert "MPI_Waitall would save" in done.stdout
        assert (other / "report.html").exists()

    def test_json(self, run_folder):
        done = CliRunner().invoke(app, ["explain", str(run_folder), "--json"])
        assert json.loads(done.stdout)["schema"] == 1


def test_the_numbers_of_the_machine_have_class_and_source(run_folder):
    numbers = {row[0]: row[1:] for row in apenet.explain(run_folder)["machine"]["numbers"]}
    assert numbers["bus.clock_mhz"] == ["100.0", "published", "PoS(LAT2005)100 section 2: PCI-X at 100 MHz"]
    assert numbers["software.mpi.send_us"][1] == "fitted"


def test_replay_with_a_report(run_folder, tmp_path):
    page_file = tmp_path / "replay.html"
    arguments = ["replay", str(run_folder / "recording.goal"), "--report", str(page_file)]
    done = CliRunner().invoke(app, arguments)
    assert "MPI_Waitall would save" in done.stdout
    assert page_file.exists()


def test_the_cycle_of_a_deadlock(slow, tmp_path):
    out = tmp_path / "run"
    apenet.run([slow, "deadlock"], n=3, out=out, capture=True, check=False)
    content = apenet.explain(out)
    assert content["verdict"]["text"] == "Deadlock: ranks 0 → 1 → 2 → 0 wait for each other."
    assert content["cycle"]["rows"][2] == {
        "rank": 2,
        "waits": "MPI_Recv from rank 0, tag 5",
        "freed_by": "a message from rank 0 to rank 2 with tag 5",
    }


def test_frames(run_folder):
    pytest.importorskip("pandas")
    content = apenet.explain(run_folder)
    found = frames(content)
    assert found["pairs"]["messages"].sum() == 70
    assert found["waits"]["us"].sum() == pytest.approx(sum(map(sum, content["waits"]["ranks"])))
    waits = found["waits"].groupby("cause")["us"].sum()
    assert found["stages"].groupby("cause")["us"].sum()["transfer"] == pytest.approx(waits["transfer"])
    assert "buses" in set(found["ports"]["name"])


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("links", "none", "run.json in it is damaged"),
        ("ports", [{"name": "links"}], "run.json in it is damaged"),
        ("warnings", [5], "run.json in it is damaged"),
        ("ranks", [], "run.json in it has 0 ranks"),
    ],
)
def test_a_damaged_result_is_refused(run_folder, tmp_path, key, value, said):
    folder = tmp_path / "copy"
    shutil.copytree(run_folder, folder)
    content = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**content, key: value}))
    with pytest.raises(InputError, match=said):
        apenet.explain(folder)


@pytest.mark.parametrize("links", [None, [{"utilisation": []}], [{"name": "x", "utilisation": ["much"]}]])
def test_a_damaged_history_of_links_is_refused(run_folder, tmp_path, links):
    folder = tmp_path / "copy"
    shutil.copytree(run_folder, folder)
    (folder / "network.json").write_text(json.dumps({"links": links}))
    with pytest.raises(InputError, match=r"network\.json in it is damaged"):
        apenet.explain(folder)


@pytest.mark.parametrize("machine", ["quong", "ape16"])
def test_a_gain_of_an_inexact_replay_is_said_to_be_one(slow, tmp_path, machine):
    out = tmp_path / "run"
    apenet.run([slow, "ring"], n=4, machine=machine, out=out, record=out / "recording.goal", capture=True)
    content = apenet.explain(out)
    assert content["replay"]["is_exact"] == (machine == "ape16")
    said = "The gain is that of a replay, which is not exactly the run: try it."
    assert content["verdict"]["text"].endswith(said) == (machine == "quong")
