"""GOAL traces, replayed from Python and from the command line."""

import json
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apenet as package
from apenet import _core
from apenet.base.errors import InputError

PING_PONG = """num_ranks 2
rank 0 {
l1: send 8b to 1 tag 0
l2: recv 8b from 1 tag 0
l2 requires l1
}
rank 1 {
l1: recv 8b from 0 tag 0
l2: send 8b to 0 tag 0
l2 requires l1
}
"""


@pytest.fixture
def trace(tmp_path):
    path = tmp_path / "pingpong.goal"
    path.write_text(PING_PONG)
    return path


def test_a_ping_pong_on_the_teaching_machine(trace):
    result = package.replay(trace, machine="ideal")
    # 1 us each way; 32 bytes on the wire and 8 copied, at 1000 MiB/s.
    assert result.virtual_time_us == pytest.approx(2 * (1 + 40 / 1048.576), abs=1e-3)
    assert result.finish_us.shape == result.waiting_us.shape == result.compute_us.shape == (2,)
    assert result.finish_us[0] == result.virtual_time_us > result.finish_us[1]
    assert result.sends.tolist() == [1, 1]
    assert result.sent_bytes.tolist() == [8, 8]
    assert (result.operations, result.messages, result.bytes) == (4, 2, 64)
    assert result.busiest_link is None


def test_the_placement_of_ranks_changes_the_time(trace):
    near = package.replay(trace, machine="ape128")
    far = package.replay(trace, machine="ape128", map=[0, 4 + 2 * 8 + 2 * 32])
    assert far.virtual_time_us > near.virtual_time_us
    assert near.busiest_link.name == "(0,0,0)+x"


def test_the_report_names_the_partition(apenet, trace):
    done = apenet("replay", "--machine", "ape128", "--partition", "1x4x4@3,0,0", trace)
    assert done.stdout.startswith(f"{trace} on ape128, partition 1x4x4@3,0,0, 2 ranks: ")
    said = json.loads(apenet("replay", "--json", "--machine", "ape128", "--partition", "1x4x4", trace).stdout)
    assert (said["machine"], said["partition"]) == ("ape128", "1x4x4@0,0,0")
    assert "partition" not in json.loads(apenet("replay", "--json", "--machine", "ape128", trace).stdout)


def test_a_trace_without_operations_is_a_warning(apenet, tmp_path):
    """A recording of a program that never communicates is such a trace. It is no error, and no measurement."""
    path = tmp_path / "nothing.goal"
    path.write_text("num_ranks 2\nrank 0 {\n}\nrank 1 {\n}\n")
    warning = "the trace has no operations: nothing was simulated"
    assert package.replay(path, machine="ideal").warnings == (warning,)
    done = apenet("replay", path, "--machine", "ideal")
    assert done.returncode == 0
    assert f"\nwarning: {warning}\n" in done.stdout
    path.write_text("num_ranks 2\nrank 0 {\n}\nrank 1 {\ncalc 1\n}\n")
    assert package.replay(path, machine="ideal").warnings == ()


def test_compute_is_nanoseconds(tmp_path):
    path = tmp_path / "t.goal"
    path.write_text("num_ranks 1\nrank 0 {\ncalc 1500\n}\n")
    result = package.replay(path, machine="ideal")
    assert result.virtual_time_us == 1.5
    assert result.compute_us.tolist() == [1.5]


def test_the_command_line_prints_what_python_returns(apenet, trace, tmp_path):
    done = apenet("replay", trace, "--machine", "ape16", "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    result = package.replay(trace, machine="ape16")
    assert content == json.loads(json.dumps(result.to_json()))
    assert content["finish_us"]["max"] == content["virtual_time_us"]
    assert json.loads((tmp_path / "out" / "run.json").read_text()) == content
    assert json.loads((tmp_path / "out" / "command.json").read_text())["nodes"] == [0, 1]
    assert "bus" in (tmp_path / "out" / "machine.toml").read_text()
    text = apenet("replay", trace).stdout
    assert "2 ranks" in text
    assert "4 operations, 2 messages" in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (PING_PONG[:37], 't.goal:3 = "the end of the file": expected'),
        (PING_PONG.replace("to 1", "to 2"), 't.goal:3 = "2": expected a rank, a whole number from 0 to 1'),
        (PING_PONG.replace("l2 requires l1", "l1 requires l1"), "expected operations that do not wait for each other"),
        (PING_PONG.replace("send 8b to 0", "recv 8b from 0"), "rank 0 waits for ever in line 4: recv 8b from 1 tag 0"),
    ],
)
def test_a_broken_trace_is_bad_input(apenet, tmp_path, text, said):
    path = tmp_path / "t.goal"
    path.write_text(text)
    done = apenet("replay", path)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


# 2^40 bytes are 2^32 packets of 256 bytes.
def test_a_trace_of_hours_is_refused_at_once_unless_it_is_allowed(apenet, tmp_path, monkeypatch):
    path = tmp_path / "t.goal"
    path.write_text(PING_PONG.replace("8b", "1099511627776b"))
    with pytest.raises(InputError, match=r"packet-hops.*not 1.7e\+10.*--allow-long") as refused:
        package.replay(path, machine="ape16", map=[0, 5])
    assert refused.value.name == "trace"
    done = apenet("replay", path, "--machine", "ape128", "--map", "random:2")
    assert (done.returncode, done.stdout) == (2, "")
    monkeypatch.setattr(sys.modules["apenet.run.long_runs"], "MOST_PACKET_HOPS", 1)
    path.write_text(PING_PONG)
    with pytest.raises(InputError, match="trace"):
        package.replay(path, machine="ape16")
    assert package.replay(path, machine="ape16", allow_long=True).messages == 2


# A byte a second: 2^23 bytes take 97 days, and twice as many end after the simulator's clocks do.
def test_messages_beyond_the_end_of_virtual_time_are_bad_input(tmp_path):
    slow = package.machine("ideal", [f"card.bandwidth_mib_s={2**-20}"])
    path = tmp_path / "t.goal"
    path.write_text(PING_PONG.replace("8b", f"{2**24}b"))
    with pytest.raises(InputError, match=r"trace = .*t\.goal: expected messages that end within 104 days"):
        package.replay(path, machine=slow)
    path.write_text(PING_PONG.replace("8b", f"{2**16}b"))
    assert package.replay(path, machine=slow).virtual_time_us > 2 * 65536e6


def test_invalid_replays_are_refused(trace, tmp_path):
    with pytest.raises(InputError, match="trace = "):
        package.replay(tmp_path / "none.goal")
    with pytest.raises(InputError, match="ranks = 2"):
        package.replay(trace, machine=package.machine("ape16", ["network.dims=[1,1,1]"]))
    with pytest.raises(InputError, match="engine"):
        package.replay(trace, engine="fast")


WORDS = [
    "num_ranks",
    "rank",
    "{",
    "}",
    "send",
    "recv",
    "calc",
    "l1",
    ":",
    "requires",
    "8b",
    "to",
    "from",
    "tag",
    "0",
    "1",
]


@given(st.lists(st.sampled_from([*WORDS, "\n", "//", "/*", "*/", "-1", "99999999999999999999"]), max_size=40))
@settings(max_examples=300)
def test_any_words_are_a_trace_or_an_error_that_names_the_line(words):
    try:
        with tempfile.NamedTemporaryFile() as file:
            file.write(" ".join(["num_ranks 2", *words]).encode())
            file.flush()
            schedule = _core.read_goal(file.name, "t.goal")
    except ValueError as error:
        assert str(error).startswith("t.goal:")
        assert ": expected " in str(error)
    else:
        assert schedule.rank_count == 2


def test_results_do_not_share_arrays(trace):
    result = package.replay(trace)
    result.finish_us[0] = -1
    result.sends[0] = 7
    assert np.array_equal(package.replay(trace).sends, [1, 1])


def test_a_large_file_is_read_in_parts(tmp_path):
    small, large = tmp_path / "small.goal", tmp_path / "large.goal"
    calc = "calc 1 // " + "why " * 2000 + "\n"
    for trace, count in ((small, 1), (large, 8000)):  # 64 MB of comments
        trace.write_text("num_ranks 1\nrank 0 {\n" + calc * count + "}\n")
    script = (
        "import sys; from apenet import _core; from apenet.perf.request import peak_memory_bytes; "
        "_core.read_goal(sys.argv[1], sys.argv[1]); print(peak_memory_bytes())"
    )

    def peak_bytes(trace):
        return int(subprocess.run([sys.executable, "-c", script, trace], check=True, capture_output=True).stdout)

    assert peak_bytes(large) - peak_bytes(small) < 16 << 20


def test_computation_beyond_the_end_of_virtual_time_is_bad_input(tmp_path):
    trace = tmp_path / "long.goal"
    lines = [f"l{i}: calc 1000000000000000" for i in range(10)]
    trace.write_text("\n".join(["num_ranks 1", "rank 0 {", *lines, "}\n"]))
    with pytest.raises(InputError, match="104 days"):
        package.replay(trace)
