"""Machine files: reading, writing, settings, and error messages."""

import itertools
import tomllib
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import apenet
from apenet.base.errors import ABSENT, ApenetError, InputError, MachineError
from apenet.machine import machine, machine_names
from apenet.machine.check import check
from apenet.machine.published import PublishedPoint
from apenet.machine.quantity import Quantity, Section
from apenet.machine.schema import MachineFile
from apenet.machine.units import UNITS, conversion_hint, split_unit
from apenet.machine.write import to_toml

NAMES = machine_names()
# Keys of a machine file that may hold a published number.
SOURCES = (
    "hep-lat/0409071",
    "PoS(LAT2005)100",
    "BookSim2",
    "CHEP 2016",
    "arXiv 1012.0253",
    "FPT 2013",
    "Boyanov 2011",
    "Sun/Oracle QDR HCA specification",
    "Kujat et al.",
    "ReConFig 2009",
    "EXTOLL R2 user library",
    "Open MPI v1.5.3",
    "Open MPI users list",
    "Linux, include/rdma/ib_pack.h",
    "Linux, drivers/infiniband/sw/rxe",
)


def with_lines(name, *changes):
    """A machine's file with texts replaced."""
    text = machine(name).to_toml()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def test_the_machines_are_listed():
    expected = {"ape128", "ape16", "apenet-2004", "ideal", "iq-router-v1", "iq-router-v2"}
    expected |= {
        "my-cluster",
        "pax",
        "qpace",
        "qpace-8x16x16",
        "torus-slice",
        "extoll-64",
        "extoll-64-2d",
        "bluegene-l",
    }
    assert expected <= set(NAMES)
    assert sorted(NAMES) == NAMES
    assert [found.name for found in apenet.machines()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_files_survive_writing_and_reading(name):
    file = machine(name).file
    assert check(tomllib.loads(to_toml(file)), name) == file


@pytest.mark.parametrize("name", NAMES)
def test_machines_can_be_wired(name):
    machine(name).wire()


@pytest.mark.parametrize("name", NAMES)
def test_every_value_has_class_and_source(name):
    def quantities(section):
        for value in vars(section).values():
            if isinstance(value, Quantity):
                yield value
            elif hasattr(value, "model_fields_set"):
                yield from quantities(value)

    found = list(quantities(machine(name).file))
    assert len(found) > 15
    for quantity in found:
        assert quantity.origin in ("published", "derived", "fitted", "assumed")
        assert len(quantity.source) > 8
        if quantity.origin == "published":
            assert any(name in quantity.source for name in SOURCES)


def test_fitted_results_are_not_predicted():
    """A result that a fitted parameter names as its target must be marked as fitted."""
    results = machine("ape128").file.results
    assert {key for key, result in results.items() if result.role == "fitted"} == {
        "apenet-2005.rtt_min",
        "apenet-2005.half_rtt_min",
        "apenet-2005.oneway_min",
    }
    assert machine("apenet-2004").file.results["apenet-2004.bidir_bw_sat"].role == "fitted"


def test_a_published_number_stands_in_one_place():
    keys = [key for name in machine_names() for key in machine(name).file.results]
    assert len(keys) == len(set(keys))


def test_base_units():
    base = machine("ape16").description().base_units()
    assert base["network.dims"] == [4, 2, 2]
    assert base["bus.clock_mhz"] == 100_000_000
    link = [base[f"network.links[0].{key}"] for key in ("word_bytes", "word_cycles", "clock_mhz")]
    assert link == [16, 3, 115_000_000]
    # 10 cycles of 115 MHz, rounded up to a picosecond.
    assert base["router.latency"] == 86_957
    assert base["host.copy_bandwidth_mib_s"] == 1000 * 2**20
    assert base["software.mpi.send_us"] == 900_000


PARAMETERS = {
    "card.latency_ns": (Fraction(1000), 10**15, "picoseconds"),
    "host.copy_bandwidth_mib_s": (Fraction(2**20), 2**60, None),
    "host.flops_per_second": (Fraction(1), 2**60, "operations"),
    "software.mpi.send_us": (Fraction(10**6), 10**15, "picoseconds"),
}


@given(
    st.sampled_from(sorted(PARAMETERS)),
    st.floats(min_value=1e-9, max_value=1e20) | st.decimals(1, 10**9, places=4).map(float) | st.integers(1, 10**12),
)
def test_base_units_are_those_of_exact_fractions(key, value):
    """The core lowers the decimal digits of a value as fractions do."""
    factor, most, unit = PARAMETERS[key]
    exact = Fraction(str(float(value))) * factor
    whole, is_whole = int(exact), exact.denominator == 1
    try:
        lowered = machine("ideal", [f"{key}={value!r}"]).description().base_units()[key]
    except MachineError as error:
        assert error.key == key
        assert error.value == value
        if unit is not None and not is_whole:
            assert error.expected == f"a whole number of {unit}"
        elif whole > most:
            assert error.expected.startswith("at most ")
        else:
            assert (whole, unit) == (0, None)
    else:
        assert (unit is None or is_whole) and 0 < whole <= most
        assert lowered == whole


def test_a_dimension_can_have_links_of_its_own():
    base = machine("ape16", ["network.link.y.clock_mhz=57.5"]).description().base_units()
    clocks = [base[f"network.links[{dimension}].clock_mhz"] for dimension in range(3)]
    assert clocks == [115_000_000, 57_500_000, 115_000_000]


def test_settings_are_recorded():
    changed = machine("ape16").with_settings("bus.clock_mhz=66", "network.topology=mesh")
    assert changed.file.bus.clock_mhz.value == 66
    assert changed.file.bus.clock_mhz.origin == "set"
    assert changed.settings == ("bus.clock_mhz=66", "network.topology=mesh")
    assert machine("ape16").file.bus.clock_mhz.value == 100


# Each entry: a setting, the key in the error, and a part of the expectation in the error.
BAD_SETTINGS = [
    ("bus.clock_ghz=0.133", "bus.clock_ghz", "clock_mhz = 133"),
    ("bus.clock=133", "bus.clock", '"clock_mhz": keys carry their unit, here MHz'),
    ("software.mpi.send_ms=1", "software.mpi.send_ms", "send_us = 1000"),
    ("host.copy_bandwidth_mb_s=1000", "host.copy_bandwidth_mb_s", "copy_bandwidth_mib_s = 953.674"),
    ("bus.clokc_mhz=133", "bus.clokc_mhz", '"clock_mhz"'),
    ("netwrok.dims=[4]", "netwrok", '"network"'),
    ("network.link.xx.latency_ns=3", "network.link.xx", '"x"'),
    ("bus.clock_mhz=-133", "bus.clock_mhz", "greater than 0 (MHz)"),
    ("bus.clock_mhz=0", "bus.clock_mhz", "greater than 0 (MHz)"),
    ("bus.clock_mhz=fast", "bus.clock_mhz", "number (MHz)"),
    ("bus.clock_mhz=true", "bus.clock_mhz", "number (MHz)"),
    ("bus.clock_mhz=inf", "bus.clock_mhz", "finite number (MHz)"),
    ("bus.clock_mhz=nan", "bus.clock_mhz", "MHz"),
    ("bus.clock_mhz=0.0000001", "bus.clock_mhz", "whole number of hertz"),
    ("bus.read_latency_ns=-1", "bus.read_latency_ns", "at least 0 (ns)"),
    ("bus.read_latency_ns=0.0001", "bus.read_latency_ns", "whole number of picoseconds"),
    ("bus.width_bytes=8.5", "bus.width_bytes", "whole number (bytes)"),
    ("card.ports=0", "card.ports", "at least 1"),
    ("card.kind=myrinet", "card.kind", "'apelink', "),
    ("network.dims=[4,0,2]", "network.dims[1]", "at least 1"),
    ("network.dims=[]", "network.dims", "list of 1 to 6"),
    ("network.dims=[2,2,2,2,2,2,2]", "network.dims", "list of 1 to 6"),
    ("network.dims=16", "network.dims", "list of 1 to 6"),
    ("network.dims=[4,2]\nx=1", "--set", "one TOML value"),
    ("network.topology=ring", "network.topology", "'torus', 'mesh', 'twisted-torus', 'fat-tree', 'crossbar'"),
    ("network.topology=none", "network.topology", "'torus', 'mesh', 'twisted-torus', 'fat-tree', 'crossbar'"),
    ("network.link.w.latency_ns=3", "network.link.w", "3 dimensions"),
]


@pytest.mark.parametrize(("setting", "key", "expected"), BAD_SETTINGS)
def test_bad_settings_are_named(setting, key, expected):
    with pytest.raises((MachineError, InputError)) as caught:
        machine("ape16", [setting])
    error = caught.value
    assert expected in error.expected
    if isinstance(error, MachineError):
        assert error.key == key
        assert "ape16.toml" in error.file
        assert f"--set {setting}" in error.file
    else:
        assert error.name == key


@pytest.mark.parametrize(
    "setting",
    [
        "",
        "bus.clock_mhz",
        "clock_mhz=3",
        "=3",
        "bus..clock_mhz=3",
        "results.x.value=3",
        "bus.clock_mhz.value=3",
        "bus.clock_mhz=",
        "bus.clock_mhz=[",
        "bus.clock_mhz=a b",
    ],
)
def test_invalid_settings_are_refused(setting):
    with pytest.raises(InputError) as caught:
        machine("ape16", [setting])
    assert caught.value.name == "--set"


BAD_FILES = [
    ([("clock_mhz = { value = 100, class", "clock_mhz = { value = 100, clas")], "bus.clock_mhz.clas", '"class"'),
    (
        [('class = "published", source = "PoS(LAT2005)100 section 2: PCI-X', 'source = "PoS')],
        "bus.clock_mhz.class",
        "'published', 'derived'",
    ),
    (
        [('class = "published", source = "PoS(LAT2005)100 section 2: PCI-X', 'class = "guessed", source = "PoS')],
        "bus.clock_mhz.class",
        "'published', 'derived'",
    ),
    ([("[bus]", "[buss]")], "buss", '"bus"'),
    ([('kind = "apelink"\n', "")], "card.kind", "'apelink', "),
    ([('name = "ape16"\n', 'name = ""\n')], "machine.name", "not empty"),
    ([('name = "ape16"\n', "")], "machine.name", "value for this key"),
]

A_RESULT = """
[results."a.b"]
test = "pingpong"
quantity = "time_us"
statistic = "minimum"
value = 5
tolerance_percent = 10
target = "hard"
role = "predicted"
source = "somewhere"
"""

BAD_RESULTS = [
    ('statistic = "minimum"', 'statistic = "minimum"\nsize_bytes = 16', "size_bytes", "at_size"),
    ('statistic = "minimum"', 'statistic = "at_size"', "size_bytes", "at_size"),
    ('statistic = "minimum"', 'statistic = "whole"', "statistic", "not"),
    ("value = 5", "value = [5, 6]", "value", "one for each"),
    ('test = "pingpong"', 'test = "sideways"', "test", "'pingpong'"),
    ('role = "predicted"', 'role = ["predicted", "fitted"]', "role", "one for each of the 1 values"),
    ('role = "predicted"', 'role = "guessed"', "role", "'fitted', 'follows', 'assumed' or 'predicted', or a list"),
    ("value = 5", 'value = "five"', "value", "a finite number, or a list"),
    ('test = "pingpong"', 'tests = "pingpong"', "tests", '"test"'),
    ('quantity = "time_us"', 'quantity = "gain_percent"', "against", "other run"),
    ('quantity = "time_us"', 'quantity = "flat_until_bytes"', "within_us", "flat"),
    ("tolerance_percent = 10\n", "", "tolerance_percent", "bound"),
]


@pytest.mark.parametrize(("old", "new", "key", "expected"), BAD_RESULTS)
def test_bad_results_are_named(tmp_path, old, new, key, expected):
    path = tmp_path / "mine.toml"
    path.write_text(with_lines("ape16") + A_RESULT)
    assert machine(str(path)).file.results["a.b"].points == [PublishedPoint(None, 5, "predicted")]
    assert old in A_RESULT
    path.write_text(with_lines("ape16") + A_RESULT.replace(old, new))
    with pytest.raises(MachineError) as refused:
        machine(str(path))
    assert refused.value.key.endswith(f".{key}")
    assert expected in refused.value.expected


@pytest.mark.parametrize(("changes", "key", "expected"), BAD_FILES)
def test_bad_files_are_named(tmp_path, changes, key, expected):
    path = tmp_path / "mine.toml"
    path.write_text(with_lines("ape16", *changes))
    with pytest.raises(MachineError) as caught:
        machine(path)
    assert caught.value.key == key
    assert expected in caught.value.expected
    assert str(path) in str(caught.value)


def test_values_without_a_source_are_refused(tmp_path):
    path = tmp_path / "bare.toml"
    text = machine("ideal").to_toml()
    line = next(line for line in text.splitlines() if line.startswith("latency_ns"))
    path.write_text(text.replace(line, "latency_ns = 1000"))
    with pytest.raises(MachineError) as caught:
        machine(path)
    assert caught.value.key == "card.latency_ns"
    assert "inline table" in caught.value.expected


def test_missing_sections_are_named():
    table = tomllib.loads(machine("ape16").to_toml())
    del table["router"], table["software"]["mpi"]
    with pytest.raises(MachineError) as caught:
        check(table, "mine")
    assert caught.value.key == "software.mpi"
    assert caught.value.value is ABSENT


def test_all_problems_are_shown_up_to_a_limit():
    many = [f"bus.k{number}_mhz=1" for number in range(12)]
    with pytest.raises(MachineError) as caught:
        machine("ape16", many)
    assert len(caught.value.others) == 11
    assert str(caught.value).splitlines()[-1].endswith("and 4 more")


@pytest.mark.parametrize("content", ["no toml [", "\x00", ""])
def test_a_file_that_is_no_machine_is_refused(tmp_path, content):
    path = tmp_path / "odd.toml"
    path.write_text(content)
    with pytest.raises(ApenetError):
        machine(path)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("ape17", 'did you mean "ape'), ("Ideal", '"ideal"'), ("zzz", "one of"), ("no/such.toml", "a file that exists")],
)
def test_unknown_machines(name, hint):
    with pytest.raises(InputError) as caught:
        machine(name)
    assert hint in caught.value.expected


@pytest.mark.parametrize("name", ["my-cluster", "torus-slice"])
def test_teaching_machines_claim_nothing(name):
    """Every number is assumed, or follows from one that is; there is nothing to reproduce."""
    file = machine(name).file
    text = to_toml(file)
    assert 'class = "published"' not in text
    assert 'class = "fitted"' not in text
    assert not file.results


def test_pax_has_no_published_target():
    assert not machine("pax").file.results


@pytest.mark.parametrize(("children", "parents", "nodes"), [("[16,36]", "[8]", 576), ("[16,18,4]", "[8,4]", 1152)])
def test_pax_grows_beyond_its_nine_chassis(children, parents, nodes):
    grown = machine("pax", [f"network.children={children}", f"network.parents={parents}"])
    grown.wire()
    assert grown.node_count == nodes


def test_wiring_errors_name_their_key():
    with pytest.raises(MachineError) as caught:
        machine("ape16", ["network.dims=[5000,5000]"]).wire()
    assert caught.value.key == "network.dims"


@given(st.sampled_from(sorted(UNITS)), st.sampled_from(["clock", "latency", "copy_bandwidth", "size"]))
def test_units_are_split_off_names(unit, stem):
    assert split_unit(f"{stem}_{unit}") == (stem, unit)


@given(st.integers(1, 10**6))
def test_hints_convert_exactly(value):
    assert conversion_hint("clock_ghz", "clock_mhz", value).endswith(f"clock_mhz = {float(value * 1000):.12g}")


@pytest.fixture(scope="module")
def ape16_text():
    return machine("ape16").to_toml()


@settings(max_examples=40)
@given(data=st.data())
def test_any_table_is_a_machine_or_refused(ape16_text, data):
    """Any replacement of one value in a valid file gives a valid file or a MachineError, nothing else."""
    table = tomllib.loads(ape16_text)
    section = data.draw(st.sampled_from(sorted(set(table) - {"results"})))
    key = data.draw(st.sampled_from(sorted(table[section])))
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=5,
    )
    table[section][key] = data.draw(junk)
    try:
        assert isinstance(check(table, "mine"), MachineFile)
    except MachineError as error:
        assert error.key
        assert error.expected


def parameters(section, path=()):
    """Every parameter of a file that is a number or a list of numbers."""
    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, Quantity) and not isinstance(value.value, str):
            yield ".".join((*path, name)), value.value
        elif isinstance(value, Section):
            yield from parameters(value, (*path, name))


def machines_of_every_parameter():
    """Machines and, of each, the parameters that no machine before it has (a key of a card: no card of its kind)."""
    seen = set()
    for name in NAMES:
        file = machine(name).file
        fresh = {}
        for key, value in parameters(file):
            about = (file.card.kind if key.startswith("card.") else "", key)
            if about not in seen:
                fresh[key] = value
            seen.add(about)
        if fresh:
            yield name, fresh


@pytest.mark.parametrize(("name", "keys"), list(machines_of_every_parameter()))
def test_a_number_beyond_the_range_of_the_core_is_refused_by_key(name, keys, whole):
    numbers = [2**33, 2**64, 1e300] if whole else [2**64]
    for number, (key, value) in itertools.product(numbers, keys.items()):
        given = [number] * len(value) if isinstance(value, list) else number
        try:
            machine(name, [f"{key}={given}"]).description()
        except MachineError as error:
            assert error.key.startswith(key)


@pytest.mark.parametrize("setting", ["host.local_latency_ns=1e20", "router.forward_cycles=10000000000000000"])
def test_times_beyond_a_thousand_seconds_are_refused(setting):
    with pytest.raises(MachineError, match="at most"):
        machine("ape16", [setting]).description()


def test_a_single_text_is_not_taken_as_a_list_of_settings():
    with pytest.raises(InputError, match="expected a list of texts"):
        machine("ape16", "bus.clock_mhz=133")
