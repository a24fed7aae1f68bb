"""Which room may include and link what: design by import rule, executed."""

import ast
import graphlib
import re
from pathlib import Path

import pytest
from project import ROOT, cxx_files, files, name, text

# Rooms, and the rooms whose headers each may include in addition to its own. A single header is a value type in the
# interface of a lower room.
INTERFACE = ("description", "network", "network_trace", "packet")
NETWORK = [f"network/{header}.hpp" for header in INTERFACE]
FAULTS = ["network/faults/halting_network.hpp", "network/faults/bit_errors.hpp"]
RULES = {
    "kernel": [],
    "schema": ["kernel"],
    "message": ["kernel"],
    "network": ["kernel", "schema"],
    "network/topology": ["kernel", "schema", "network/packet.hpp"],
    "network/routing": ["kernel", *NETWORK, "network/topology"],
    "network/faults": ["kernel", *NETWORK, "network/topology", "network/routing"],
    "network/flit": ["kernel", *NETWORK, "network/topology", "network/routing", *FAULTS],
    "network/packet": ["kernel", *NETWORK, "network/topology", "network/routing", *FAULTS, "network/flit/timing.hpp"],
    "host": ["kernel", "schema"],
    "nic": ["kernel", "schema", "network", "host"],
    "machine": ["kernel", "schema", "network", "host", "nic", "message/requests.hpp"],
    "runtime/ipc": ["message/requests.hpp"],
    "runtime/shim": ["runtime/ipc"],
    "runtime/observe": ["kernel", "machine", "nic/messages.hpp", "network/network_trace.hpp"],
    "runtime/scripted": ["kernel", "message", "machine", "runtime/observe", "nic/nic.hpp", "network/packet.hpp"],
    "runtime/perf": ["kernel", "machine", "network", "runtime/scripted", "nic/card_set.hpp"],
    "runtime/scheduler": [
        "kernel",
        "machine",
        "message/wire.hpp",
        "runtime/ipc",
        "runtime/observe",
        "nic/nic.hpp",
        "network/packet.hpp",
    ],
    "runtime/recording": ["runtime/ipc"],
    "runtime/traffic": ["kernel", "network"],
    "runtime/launch": [
        "kernel",
        "machine",
        "runtime/ipc",
        "runtime/observe",
        "runtime/scheduler",
        "runtime/supervisor/notice.hpp",
    ],
    "runtime/supervisor": ["runtime/ipc/descriptor_path.hpp"],
    "runtime": ["kernel", "machine", "runtime/ipc", "runtime/observe", "runtime/scheduler", "runtime/launch"],
    "api/libfabric": ["message", "runtime/ipc", "api/gpu/apenet_gpu.h"],
    "api/apelib": ["kernel", "message", "runtime/ipc", "api/native"],
    "api/gpu": [],
    "api/qmp": ["api/apelib/apelib.h", "api/native/schedules.hpp"],
    "api/native": ["kernel", "message/requests.hpp", "runtime/ipc"],
    "api/rdma": ["api/native", "runtime/ipc", "api/gpu/apenet_gpu.h", "kernel"],
    "api/tnw": ["api/native", "runtime/ipc"],
    "api/extoll": ["api/native", "kernel", "message/requests.hpp", "runtime/ipc"],
    "api/udp": ["api/native", "runtime/ipc"],
    "api/gasnet": ["api/extoll", "api/native", "api/rdma", "api/udp", "kernel", "runtime/ipc"],
    "api/compute": ["runtime/ipc"],
}

# The rooms that each CMake room may link; linking a room includes its INTERFACE headers.
LINKS = {
    "kernel": set(),
    "message": {"kernel"},
    "schema": {"kernel"},
    "topology": {"kernel", "schema"},
    "routing": {"kernel", "topology"},
    "flit_timing": {"kernel", "topology"},
    "faults": {"kernel", "topology", "routing"},
    "flit": {"kernel", "topology", "routing", "faults", "flit_timing"},
    "packet": {"kernel", "topology", "routing", "faults", "flit_timing"},
    "network": {"kernel", "schema", "topology", "routing", "faults", "flit_timing", "flit", "packet"},
    "host": {"kernel", "schema"},
    "nic": {"kernel", "schema", "network", "host"},
    "machine": {"kernel", "schema", "network", "host", "nic"},
    "ipc": set(),
    "observe": {"kernel", "machine"},
    "scheduler": {"ipc", "kernel", "machine", "observe"},
    "recording": {"ipc"},
    "launch": {"ipc", "kernel", "machine", "observe", "scheduler"},
    "scripted": {"kernel", "message", "machine", "observe"},
    "perf": {"kernel", "machine", "network", "scripted"},
    "traffic": {"kernel", "network"},
    "runtime": {"ipc", "kernel", "machine", "observe", "scheduler", "recording", "launch"},
    "native": {"ipc", "kernel", "message"},
    "rdma": {"native"},
    "tnw": {"native"},
    "apelib": {"native"},
    "extoll": {"native"},
    "udp": {"native"},
    "gasnet": {"extoll", "rdma", "udp"},
    "qmp": set(),
}


def room_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").parts
    for length in (2, 1):
        room = "/".join(parts[:length])
        if room in RULES:
            return room
    pytest.fail(f"{name(path)} is in no room of src/")


def may_include(room: str, header: str) -> bool:
    allowed = [room, *RULES[room]]
    if room == "runtime":
        allowed = [*RULES[room], "runtime/session.hpp"]
    return any(header == entry or header.startswith(f"{entry}/") for entry in allowed)


def test_includes_follow_the_layers():
    wrong = []
    for path in cxx_files("src"):
        room = room_of(path)
        for header in re.findall(r'^\s*#\s*include\s+"([^"]+)"', text(path), flags=re.MULTILINE):
            local = (path.parent / header).exists() and "/" not in header
            if not local and not may_include(room, header):
                wrong.append(f"{name(path)} includes {header}: not allowed in {room}")
    assert wrong == []


def test_links_follow_the_layers():
    seen = set()
    for path in files("src"):
        if path.name != "CMakeLists.txt":
            continue
        for room, imports in re.findall(r"apenet_room\((\w+)[^)]*?(?:IMPORTS ([^)]*))?\)", text(path)):
            seen.add(room)
            assert room in LINKS, f"{name(path)}: room {room} has no rule"
            assert set(imports.split()) <= LINKS[room], f"{name(path)}: {room} imports {imports}"
    assert seen == set(LINKS)


def test_nobody_includes_upwards_out_of_a_room():
    for path in cxx_files("src"):
        assert not re.search(r'#\s*include\s+"\.\./', text(path)), f"{name(path)} includes by a relative path"


# The rooms that each room of python/apenet may import; the package's __init__.py, its interface, may import all.
PYTHON_RULES = {
    "base": [],
    "apelib": [],
    "machine": ["base"],
    "host": ["base"],
    "compute": ["base", "machine"],
    "run": ["base", "machine", "host", "compute"],
    "bench": ["base", "machine", "host", "run"],
    "fit": ["base", "machine", "bench"],
    "perf": ["base", "machine", "host", "compute", "run"],
    "placing": ["base", "machine", "run"],
    "reproduce": ["base", "machine", "host", "run", "bench", "fit"],
    "cli": ["base", "machine", "host", "compute", "run", "bench", "fit", "perf", "placing", "reproduce"],
}
PACKAGE = ROOT / "python" / "apenet"


def python_modules() -> dict[str, Path]:
    """The package's modules by their names."""
    paths = (path for path in files("python/apenet") if path.suffix == ".py")
    parts = ((path.relative_to(PACKAGE.parent).with_suffix("").parts, path) for path in paths)
    return {".".join(part for part in names if part != "__init__"): path for names, path in parts}


def imported(path: Path, modules: dict[str, Path]) -> set[str]:
    """The modules of this package that a file imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text(path))):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            names = {f"{node.module}.{alias.name}" for alias in node.names} - {"apenet._core"}
            found |= {name if name in modules else node.module for name in names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & modules.keys()


def test_python_rooms_follow_the_layers():
    modules = python_modules()
    wrong = []
    for module, path in modules.items():
        if module == "apenet":
            continue
        room = module.split(".")[1]
        assert room in PYTHON_RULES, f"{name(path)} is in no room of python/apenet"
        for other in imported(path, modules):
            if other == "apenet" or other.split(".")[1] not in (room, *PYTHON_RULES[room]):
                wrong.append(f"{name(path)} imports {other}: not allowed in {room}")
    assert wrong == []


def test_python_modules_import_in_no_circle():
    modules = python_modules()
    graph = {module: imported(path, modules) - {module} for module, path in modules.items()}
    graphlib.TopologicalSorter(graph).prepare()
