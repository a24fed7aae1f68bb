"""No global mutable state in the core: two simulations in one process must not know of each other."""

import re

import pytest
from project import code, cxx_files, name

# What must be global, and why.
ALLOWED = {
    ("src/api/libfabric/provider.cpp", "provider"): "libfabric's entry point returns a pointer to it",
    ("src/runtime/ipc/client.cpp", "value"): "which rank this process is, and whether it is a fork of one: its facts",
    ("src/runtime/ipc/client.cpp", "created"): "a process becomes a rank once",
    ("src/api/libfabric/port.cpp", "mutex"): "libfabric gives a provider no place of its own in the process",
    ("src/api/libfabric/port.cpp", "ports"): "libfabric gives a provider no place of its own in the process",
}

NAMED = r"(?P<name>\w+)\s*(?:\[[^\]]*\])*\s*(?:=[^;]*|\{[^;]*\})?;"
STATIC = re.compile(
    rf"^\s*(?:inline\s+)?(?:static|thread_local)\s+(?P<type>[^;(){{}}=]*?[\w>&*\]]\s*)\b{NAMED}", re.MULTILINE
)
# At the left margin, a declaration without parentheses is a variable of a namespace.
NAMESPACE = re.compile(
    rf"^(?!using|return|struct|class|enum|union|namespace|template|typedef|friend|extern|public|private|protected)"
    rf"(?P<type>[A-Za-z_][\w:<>,*& ]*[\w>&*]\s+){NAMED}",
    re.MULTILINE,
)


def is_constant(declared: str) -> bool:
    return re.search(r"\b(const|constexpr|constinit const)\b", declared) is not None


@pytest.mark.parametrize("path", cxx_files("src"), ids=name)
def test_no_mutable_state_outside_objects(path):
    for pattern in (STATIC, NAMESPACE):
        for match in pattern.finditer(code(path)):
            allowed = is_constant(match["type"]) or (name(path), match["name"]) in ALLOWED
            assert allowed, f"{name(path)}: {match[0].strip()} is global and can change"


@pytest.mark.parametrize("path", cxx_files("src"), ids=name)
def test_results_depend_on_no_hash_order(path):
    """An unordered container is for look-ups; a loop over one would bring addresses into results."""
    source = code(path)
    for container in re.findall(r"unordered_(?:map|set)<[^;]*?>\s+(\w+)\s*[;{=]", source):
        assert not re.search(rf":\s*{container}\)", source), f"{name(path)} iterates over {container}"


@pytest.mark.parametrize("room", ["kernel", "network", "host", "nic", "machine", "runtime/scripted"])
def test_the_model_reads_no_clock_and_no_entropy(room):
    forbidden = r"std::chrono|clock_gettime|gettimeofday|std::random_device|\brand\(|std::mt19937|std::this_thread"
    for path in cxx_files(f"src/{room}"):
        found = re.search(forbidden, code(path))
        assert found is None, f"{name(path)} uses {found and found[0]}"


def test_the_check_finds_what_it_looks_for(tmp_path):
    source = tmp_path / "bad.cpp"
    source.write_text("int counter = 0;\nvoid f() {\n  static bool seen = false;\n}\nconst int fine = 1'000;\n")
    found = [
        match["name"]
        for pattern in (STATIC, NAMESPACE)
        for match in pattern.finditer(code(source))
        if not is_constant(match["type"])
    ]
    assert sorted(found) == ["counter", "seen"]
