"""apenet gate: equal, better and worse runs, and everything that must not pass as one of them."""

import json
import os
import re
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from apenet.base.errors import InputError
from apenet.compare.base_file import read_base
from apenet.compare.gate import judge
from apenet.compare.gate_file import GateRun
from apenet.compare.metrics import METRICS, Change, parse_limit, parse_metrics, show_ps

RING = Path(__file__).resolve().parents[3] / "examples" / "08_gate"
BASE = "base.json"


@pytest.fixture(scope="module")
def programs(build):
    return {"slow": build(RING / "halo.c"), "fast": build(RING / "halo_fast.c")}


@pytest.fixture(scope="module")
def accepted(apenet, programs, tmp_path_factory):
    """The accepted values of the fast version on 4 ranks."""
    folder = tmp_path_factory.mktemp("accepted")
    (folder / "halo").symlink_to(programs["fast"])
    done = apenet("gate", "--update", "--against", BASE, "--", *run_words(), cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return (folder / BASE).read_bytes()


@pytest.fixture
def place(accepted, programs, tmp_path):
    """A folder with the base and the fast program."""
    (tmp_path / BASE).write_bytes(accepted)
    (tmp_path / "halo").symlink_to(programs["fast"])
    return tmp_path


def run_words(*options, ranks=4):
    return ["run", "-n", str(ranks), *options, "--", "./halo"]


def gate(apenet, folder, *options, words=None):
    return apenet("gate", "--against", BASE, *options, "--", *(words or run_words()), cwd=folder)


def put(folder, program):
    (folder / "halo").unlink(missing_ok=True)
    (folder / "halo").symlink_to(program)


def rewrite(folder, change):
    content = json.loads((folder / BASE).read_text())
    change(content)
    (folder / BASE).write_text(json.dumps(content))


def table(text):
    """The rows by their metric: accepted, now, change, limit, verdict."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    return {row[1]: row[2:] for row in rows[1:]}


def test_the_same_program_is_equal_in_every_event(apenet, place):
    done = gate(apenet, place)
    assert done.returncode == 0, done.stderr
    assert "1 run equal, in every event" in done.stdout
    assert {row[-1] for row in table(done.stdout).values()} == {"equal"}
    assert done.stdout == gate(apenet, place).stdout


def test_a_slower_program_is_worse_and_a_faster_one_better(apenet, place, programs):
    put(place, programs["slow"])
    done = gate(apenet, place, "--max", "+50%")
    assert done.returncode == 1
    assert table(done.stdout)["time"][-2:] == ["+50 %", "**worse**"]
    assert table(done.stdout)["messages"][-3:] == ["0", "", "equal"]
    assert gate(apenet, place, "--metric", "messages,bytes").returncode == 0
    assert apenet("gate", "--update", "--against", BASE, "--", *run_words(), cwd=place).returncode == 0
    put(place, programs["fast"])
    done = gate(apenet, place)
    assert done.returncode == 0
    assert table(done.stdout)["time"][-1] == "better"
    assert "--update keeps" in done.stdout


def test_a_picosecond_more_is_worse(apenet, place):
    def shorten(content):
        content["runs"]["run"]["values"]["time"] -= 1

    rewrite(place, shorten)
    done = gate(apenet, place)
    assert done.returncode == 1
    assert table(done.stdout)["time"][2].startswith("+1 ps")
    assert gate(apenet, place, "--max", "0.000001%").returncode == 0


def test_limits_are_exact():
    time = METRICS["time"]
    limit = parse_limit("max", "+0.5%")
    assert limit == Fraction(1, 2)
    assert not Change(time, 1000, 1005, limit).is_worse
    assert Change(time, 1000, 1006, limit).is_worse
    assert Change(time, 0, 1, limit).is_worse
    assert not Change(time, 0, 0, parse_limit("max", "0%")).is_worse
    assert Change(METRICS["bytes"], 2**60, 2**60 + 1, parse_limit("max", "0%")).is_worse


@pytest.mark.parametrize(
    ("picoseconds", "shown"),
    [(0, "0 ps"), (999, "999 ps"), (1000, "1 ns"), (811502260, "811.50226 us"), (5 * 10**12 + 1, "5.000000000001 s")],
)
def test_times_are_shown_to_the_picosecond(picoseconds, shown):
    assert show_ps(picoseconds) == shown


@pytest.mark.parametrize("given", ["", "-1%", "0.5", "five%", "1e9%", "10001%", "+٣%"])
def test_limits_that_are_none_are_refused(given):
    with pytest.raises(InputError, match=r"\+0\.5%"):
        parse_limit("max", given)


@pytest.mark.parametrize("given", ["", "speed", "time,,bytes", "time,time"])
def test_unknown_metrics_are_refused(given):
    with pytest.raises(InputError, match="metric = "):
        parse_metrics("metric", given)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--set", "network.link.clock_mhz=60"], r"run: ape16: network\.link\.clock_mhz = 60: expected 115 as in"),
        (["--machine", "ape128"], r"run: ape16: .* as in base\.json"),
        (["--machine", "ape128"], r"\(\d+ more: "),
        (["--map", "random:3"], r'run: mapping = "random:3": expected "linear" as in'),
        (["--seed", "2"], "run: seed = 2: expected 1 as in"),
        (["--engine", "flit"], 'run: engine = "flit": expected "packet"'),
        (["--fault", "link (0,0,0)+x down @1us"], "run: faults = "),
        (["--compute", "measured"], 'run: --compute = "measured": expected none or a profile'),
        (["--json"], "a run without --json"),
        (["--out", "there"], "a run without --out"),
        (["--speed", "1"], r"options of apenet run \(No such option: --speed"),
    ],
)
def test_another_run_is_refused_before_it_runs(apenet, place, options, said):
    done = gate(apenet, place, words=run_words(*options))
    assert done.returncode == 2
    assert done.stdout == ""
    assert re.search(said, done.stderr), done.stderr
    assert "virtual time" not in done.stderr


def test_the_machine_is_compared_by_its_parameters(apenet, place):
    shown = apenet("machine", "show", "ape16", cwd=place)
    assert shown.returncode == 0, shown.stderr
    (place / "own.toml").write_text(shown.stdout)
    assert gate(apenet, place, words=run_words("--machine", "own.toml")).returncode == 0
    (place / "own.toml").write_text(shown.stdout.replace("value = 115,", "value = 116,", 1))
    done = gate(apenet, place, words=run_words("--machine", "own.toml"))
    assert done.returncode == 2
    assert "= 116: expected 115 as in base.json" in done.stderr


def test_other_ranks_and_arguments_are_refused(apenet, place):
    assert "run: n = 8: expected 4 as in base.json" in gate(apenet, place, words=run_words(ranks=8)).stderr
    assert "run: arguments = " in gate(apenet, place, words=[*run_words(), "100"]).stderr


def test_another_library_is_refused(apenet, place):
    rewrite(place, lambda content: content["runs"]["run"]["served"].update(libraries=["MPICH Version: 4.3.0"]))
    done = gate(apenet, place)
    assert done.returncode == 2
    assert "1 of 1 run not compared" in done.stdout
    assert "run: libraries" in done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"", "no complete JSON"),
        (b"<<<<<<< HEAD\n", "no complete JSON"),
        (b"[" * 200_000, "brackets are too deep"),
        (b"[]", 'form = "apenet gate 1"'),
        (b'{"trace_hash": "0", "virtual_time_us": 1.0}', "apenet explain"),
        (b'{"form": "apenet gate 1", "version": "0.0.1", "runs": {}, "machines": {}}', 'version = "0.0.1": expected "'),
    ],
)
def test_a_base_that_is_none_is_refused(apenet, place, content, said):
    (place / BASE).unlink()
    if content is not None:
        (place / BASE).write_bytes(content)
    done = gate(apenet, place)
    assert done.returncode == 2
    assert said in done.stderr
    assert "virtual time" not in done.stderr


def test_a_half_written_base_is_refused_wherever_it_ends(apenet, place, accepted):
    for end in (1, 2, 3):
        (place / BASE).write_bytes(accepted[: len(accepted) * end // 4])
        done = gate(apenet, place)
        assert done.returncode == 2, end
        assert "no complete JSON" in done.stderr


@pytest.mark.parametrize("lost", ["values", "request", "served", "machine", "trace_hash"])
def test_a_base_without_a_part_is_refused(apenet, place, lost):
    rewrite(place, lambda content: content["runs"]["run"].pop(lost))
    done = gate(apenet, place)
    assert done.returncode == 2
    assert f"a part of it is missing ('{lost}')" in done.stderr


def test_a_base_without_the_metric_is_refused(apenet, place):
    rewrite(place, lambda content: content["runs"]["run"]["values"].pop("max_link"))
    done = gate(apenet, place, "--metric", "time,max_link")
    assert done.returncode == 2
    assert 'metric = "max_link": expected one of time, messages, bytes' in done.stderr


def test_a_base_without_the_run_is_refused(apenet, place):
    rewrite(place, lambda content: content["runs"].update(other=content["runs"].pop("run")))
    done = gate(apenet, place)
    assert done.returncode == 2
    assert 'base.json = "run": expected a run with accepted values (other); --update' in done.stderr
    update = apenet("gate", "--update", "--against", BASE, "--", *run_words(), cwd=place)
    assert update.returncode == 2
    assert "a file of one run: this one has other" in update.stderr


def test_a_failed_run_is_never_fast_and_never_accepted(apenet, place, accepted):
    (place / "halo").unlink()
    (place / "halo").write_text("#!/bin/sh\nexit 3\n")
    (place / "halo").chmod(0o755)
    done = gate(apenet, place)
    assert done.returncode == 2
    assert "**was not compared**: `the run failed: failed, exit status 3" in done.stdout
    update = apenet("gate", "--update", "--against", BASE, "--", *run_words(), cwd=place)
    assert update.returncode == 2
    assert "base.json is as it was" in update.stderr
    assert (place / BASE).read_bytes() == accepted


def test_a_program_without_mpi_has_no_time(apenet, place):
    (place / "halo").unlink()
    (place / "halo").symlink_to("/bin/true")
    done = gate(apenet, place)
    assert done.returncode == 2
    assert "no virtual time: its program makes no MPI call" in done.stdout


def test_a_program_that_is_not_there_is_not_compared(apenet, place):
    (place / "halo").unlink()
    done = gate(apenet, place)
    assert done.returncode == 2
    assert "**was not compared**" in done.stdout


@pytest.mark.parametrize(
    "warning",
    [
        "several threads called MPI in rank 0: the host determines their order, so this run may not repeat exactly",
        "3 requests were posted by a thread while another one of its process waited: their times are not exact",
        "rank 1 slept in real time, waiting for a file: the times of this run may not repeat",
        "rank 0: started sh: it saw the clocks of the host",
    ],
)
def test_times_that_may_not_repeat_are_not_compared(apenet, place, warning):
    assert apenet(*run_words("--out", "seen"), cwd=place).returncode == 0
    result = json.loads((place / "seen" / "run.json").read_text())
    (place / "seen" / "run.json").write_text(json.dumps(result | {"warnings": [warning]}))

    def judged(**options):
        run = GateRun("run", ("run",), Fraction(0), **options)
        return judge(run, read_base(place / BASE), {"compute": "none"}, ("ape16", {}), place / "seen")

    refused = judged(metrics=("time",), allow_noise=False)
    assert warning in refused.problem
    assert refused.accepted is None
    for options in ({"metrics": ("time",), "allow_noise": True}, {"metrics": ("bytes",), "allow_noise": False}):
        compared = judged(**options)
        assert compared.problem == ""
        assert warning in compared.notes


def test_a_summary_is_written_whole_or_refused_before_the_run(apenet, place):
    done = gate(apenet, place, "--summary", "gate.md")
    assert done.returncode == 0
    assert (place / "gate.md").read_text() == done.stdout
    assert gate(apenet, place, "--summary", "gate.md").returncode == 0
    (place / "folder").mkdir()
    (place / "own.md").write_text("# mine\n")
    for name, said in (
        ("folder", "not a folder"),
        ("own.md", "is kept"),
        (BASE, "another file than"),
        ("no/x", "exists"),
    ):
        refused = gate(apenet, place, "--summary", name)
        assert refused.returncode == 2
        assert said in refused.stderr
        assert "virtual time" not in refused.stderr
    assert (place / "own.md").read_text() == "# mine\n"


def test_names_are_no_markdown(apenet, place, programs):
    (place / "<b>|x`").symlink_to(programs["fast"])
    (place / "apenet.toml").write_text("[gate.runs]\nodd = \"run -n 2 -- './<b>|x`-gone'\"\n")
    assert apenet("gate", "--update", cwd=place).returncode == 2
    (place / "apenet.toml").write_text("[gate.runs]\nodd = \"run -n 2 -- './<b>|x`'\"\n")
    assert apenet("gate", "--update", cwd=place).returncode == 0
    (place / "<b>|x`").unlink()
    done = apenet("gate", cwd=place)
    assert done.returncode == 2
    said = next(line for line in done.stdout.splitlines() if "was not compared" in line)
    assert "<b>\\|x'" in said
    assert said.count("`") == 4


def test_a_list_of_runs(apenet, place, programs):
    (place / "apenet.toml").write_text(
        '[gate]\nbase = "runs.json"\nmax = "+1%"\n'
        '[gate.runs]\nring = "run -n 4 -- ./halo"\n'
        'pair = { run = "run -n 2 -- ./halo", max = "+1000%", metric = "time,bytes" }\n'
    )
    assert apenet("gate", "--update", cwd=place).returncode == 0
    assert list(json.loads((place / "runs.json").read_text())["runs"]) == ["ring", "pair"]
    done = apenet("gate", cwd=place)
    assert done.returncode == 0
    assert "2 runs equal, in every event" in done.stdout
    put(place, programs["slow"])
    done = apenet("gate", cwd=place)
    assert done.returncode == 1
    assert "1 of 2 runs worse" in done.stdout
    with (place / "apenet.toml").open("a") as file:
        file.write('new = "run -n 3 -- ./halo"\n')
    done = apenet("gate", cwd=place)
    assert done.returncode == 2
    assert "a run with accepted values (ring, pair); --update" in done.stderr


def test_one_run_that_fails_does_not_hide_the_others(apenet, place):
    (place / "apenet.toml").write_text('[gate.runs]\na = "run -n 2 -- ./halo"\nb = "run -n 2 -- ./other"\n')
    (place / "other").symlink_to(place / "halo")
    assert apenet("gate", "--update", cwd=place).returncode == 0
    (place / "other").unlink()
    done = apenet("gate", cwd=place)
    assert done.returncode == 2
    assert "1 of 2 runs not compared" in done.stdout
    assert "| `a` | time |" in done.stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "gate is missing: expected a table [gate]"),
        ("[gate]\n", "gate.runs"),
        ("[gate\n", "a list of runs in TOML"),
        ('[gate]\nmaks = "1%"\n[gate.runs]\na = "run -n 2 -- ./halo"\n', "gate.maks"),
        ('[gate]\nmax = 1\n[gate.runs]\na = "run -n 2 -- ./halo"\n', "gate.max = 1: expected a text"),
        (
            '[gate]\nmax = "1"\n[gate.runs]\na = "run -n 2 -- ./halo"\n',
            'apenet.toml: gate.max = "1": expected a percentage',
        ),
        ('[gate.runs]\na = "mpirun -n 2 ./halo"\n', "apenet's command run or replay"),
        ("[gate.runs]\na = 3\n", "gate.runs.a = 3: expected a text"),
        ('[gate.runs]\n"a b" = "run -n 2 -- ./halo"\n', "a name of letters"),
        ('[gate.runs]\na = "run -n 2 -- \'./halo"\n', "No closing quotation"),
        ('[gate.runs]\na = { run = "run -n 2 -- ./halo", allow_noise = 1 }\n', "true or false"),
    ],
)
def test_a_list_that_is_none_is_refused(apenet, place, content, said):
    (place / "apenet.toml").write_text(content)
    done = apenet("gate", "--update", cwd=place)
    assert done.returncode == 2
    assert said in done.stderr, done.stderr
    assert not (place / "apenet-gate.json").exists()


def test_without_a_list_and_without_a_run_there_is_nothing_to_do(apenet, tmp_path):
    assert "a file that lists runs, in this folder, or a run after --" in apenet("gate", cwd=tmp_path).stderr
    assert '--against = "": expected a file' in apenet("gate", "--", *run_words(), cwd=tmp_path).stderr


def test_replays_are_gated_too(apenet, place):
    assert apenet(*run_words("--record", "halo.goal"), cwd=place).returncode == 0
    words = ["replay", "halo.goal", "--machine", "ape16"]
    assert apenet("gate", "--update", "--against", "goal.json", "--", *words, cwd=place).returncode == 0
    done = apenet("gate", "--against", "goal.json", "--", *words, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "equal, in every event" in done.stdout


def test_both_engines_have_a_time_each(apenet, place):
    words = run_words("--engine", "both", ranks=2)
    assert apenet("gate", "--update", "--against", "both.json", "--", *words, cwd=place).returncode == 0
    done = apenet("gate", "--against", "both.json", "--metric", "flit_time", "--", *words, cwd=place)
    assert done.returncode == 0, done.stderr
    assert table(done.stdout)["flit_time"][-1] == "equal"
    refused = gate(apenet, place, "--metric", "flit_time")
    assert refused.returncode == 2


def test_the_plugin_judges_times(place, programs):
    (place / "test_own.py").write_text(
        "import apenet, math, pytest\n"
        "def test_fast(apenet_run):\n"
        '    assert 100e-6 < apenet_run("./halo", n=4, machine="ape16").time < 1e-3\n'
        "def test_slow(apenet_run):\n"
        '    assert apenet_run("./halo", n=4, machine="ape16").time < 1e-6\n'
        "def test_failed(apenet_run):\n"
        "    with pytest.raises(apenet.RunError):\n"
        '        apenet_run("false", n=1)\n'
        '    failed = apenet_run("false", n=1, check=False)\n'
        "    assert math.isnan(failed.time) and not failed.time < 1\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py"]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_own.py::test_slow" in done.stdout


def test_a_signal_ends_the_gate_and_keeps_the_base(start_apenet, place, accepted, build):
    source = place / "endless.c"
    source.write_text(
        "#include <mpi.h>\n#include <stdio.h>\n"
        'int main(int c, char **v) { MPI_Init(&c, &v); puts("endless"); fflush(stdout); for (;;) MPI_Wtime(); }\n'
    )
    put(place, build(source))
    (place / "apenet.toml").write_text(
        '[gate]\nbase = "base.json"\n[gate.runs]\nendless = "run -n 1 -- ./halo"\nnext = "run -n 1 -- true"\n'
    )
    started = start_apenet("gate", "--update", cwd=place)
    # The program's output goes to standard error, so that the summary stands alone.
    while (line := started.process.stderr.readline()) != "endless\n":
        assert line
    started.process.send_signal(signal.SIGINT)
    done = started.finish()
    assert done.returncode == 130
    assert "gate: next" not in done.stderr
    assert (place / BASE).read_bytes() == accepted
