"""Unknown options are answered: by the option that was meant, or by the machine's parameter of that name."""

import pytest

import apenet as package
from apenet.base.errors import InputError
from apenet.machine.near import near_keys


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "-np", "2", "--", "true"], '-np = "2": expected -n 2: the number of ranks'),
        (["run", "--ranks=2", "--", "true"], '--ranks = "2": expected -n 2: the number of ranks'),
        (["run", "-N", "2", "true"], '-N = "2": expected -n 2: the number of ranks'),
        (["run", "-n", "2", "--ppn", "4", "true"], "expected --ranks-per-node 4: the ranks that share a node"),
        (["bench", "halo", "--ranks", "4"], '--ranks = "4": expected -n 4: the number of ranks'),
        (["run", "-n", "2", "--bandwidth=10GB/s", "--", "true"], "--set KEY=VALUE for a parameter of the machine"),
        (["run", "-n", "2", "--bandwidth=10GB/s", "--", "true"], "host.copy_bandwidth_mib_s or network.link.clock_mhz"),
        (["bench", "pingpong", "-m", "pax", "--clock-mhz", "3"], "where KEY is "),
        (["run", "-n", "2", "--set", "link.clock=50", "--", "true"], "did you mean network.link.clock_mhz?"),
        (
            ["run", "-n", "2", "--set", "bus.clock_mhz=66MHz", "--", "true"],
            "expected 66 without a unit, which",
        ),
        (["replay", "--mapping", "random:1", "t.goal"], '--mapping = "random:1": expected --map random:1'),
    ],
)
def test_what_was_meant(apenet, arguments, said):
    done = apenet(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["run", "-n", "1", "-m", "ideal", "true", "--ranks", "3"], 0),  # the program's own
        (["run", "-n", "1", "-m", "ideal", "--", "true", "-np", "3"], 0),
        (["run", "-n", "1", "--set", "nothing.like_it=1", "true"], 2),
        (["run", "-n", "1", "--machin", "ideal", "true"], 2),
    ],
)
def test_what_has_no_such_answer_is_left_as_it_is(apenet, arguments, status):
    done = apenet(*arguments)
    assert done.returncode == status, done.stderr
    assert "expected -n" not in done.stderr
    assert "KEY is" not in done.stderr


@pytest.mark.parametrize("command", [[], ["run"], ["bench"], ["bench", "halo"], ["machine", "show"]])
def test_h_is_help(apenet, command):
    short, long = (apenet(*command, flag) for flag in ("-h", "--help"))
    assert short.returncode == 0
    assert short.stdout == long.stdout
    assert "-h, --help" in short.stdout


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("link.clock", ["network.link.clock_mhz"]),
        ("link.clock_mhz", ["network.link.clock_mhz"]),
        ("bus.clock", ["bus.clock_mhz"]),
        ("clok_mhz", ["bus.clock_mhz", "card.clock_mhz", "router.clock_mhz", "network.link.clock_mhz"]),
        ("colour", []),
        ("title", []),  # not of the machine's description of itself
        ("..", []),
    ],
)
def test_near_keys(text, keys):
    assert sorted(near_keys(text, package.machine("ape16").table)) == sorted(keys)


def test_every_near_key_can_be_set():
    ape16 = package.machine("ape16")
    for key in near_keys("clock", ape16.table):
        assert ape16.with_settings(f"{key}=50")
    with pytest.raises(InputError, match="did you mean"):
        ape16.with_settings("clock=50")


def test_a_compilers_options_are_none_of_the_command(apenet):
    """Each has an h in it, which once asked for the help."""
    options = ["-march=native", "-lpthread", "-fhosted", "-Wshadow"]
    done = apenet("cc", "--show", "--mpi", "a.c", *options)
    assert done.returncode == 0
    assert all(option in done.stdout.split() for option in options), done.stdout


def test_a_compilation_without_a_library_that_fails_names_the_libraries(apenet, tmp_path):
    source = tmp_path / "program.c"
    source.write_text("#include <apelib.h>\nint main(void) { return ape_init(); }\n")
    words = [str(source), "-o", str(tmp_path / "program")]
    done = apenet("cc", *words)
    assert done.returncode != 0
    assert "\napenet cc: no library was asked for: --mpi for MPI, or --am, --apelib, " in done.stderr
    assert apenet("cc", "--apelib", *words).returncode == 0
    source.write_text("int main(void) { return wrong; }\n")
    assert "no library" not in apenet("cc", "--apelib", *words).stderr
