"""The core has no global mutable state: two simulations in one process are independent."""

import re

from project import ROOT, code, cxx_files, name, text

# Allowed global variables, and the reasons.
ALLOWED = {
    ("src/api/libfabric/provider.cpp", "provider"): "libfabric's entry point returns a pointer to it",
    ("src/api/rdma/rdma.cpp", "port"): "a process has one port of its card",
    ("src/api/tnw/tnw.cpp", "links"): "the functions of tnw.h take no handle: a process has one TNW",
    ("src/api/apelib/process.cpp", "process"): "the functions of apelib.h take no handle: a process has one library",
    ("src/api/apelib/process.cpp", "text"): "apelib keeps the last error of each thread",
    ("src/api/gasnet/extoll-conduit/gasnet_core.c", "gasnetc_handler"): "GASNet enters the handlers of a process here",
    ("src/api/gasnet/library.cpp", "state"): "GASNet's rules about handlers and locks are those of a thread",
    ("src/api/extoll/device.cpp", "process_device"): "velo2_open and rma2_open take no handle: a process has one card",
    ("src/api/extoll/device.cpp", "making"): "a process makes its device once",
    ("src/api/qmp/session.cpp", "session"): "the functions of qmp.h take no handle: a process has one job",
    ("src/api/sockets/random_numbers.cpp", "drawn"): "the C library's random numbers take no handle: a thread's own",
    ("src/api/gpu/cuda/cuda.cpp", "last_error"): "CUDA keeps the last error of each thread",
    ("src/kernel/interruption.cpp", "value"): "a signal is for the process, and says nothing to a simulation's results",
    ("src/runtime/ipc/client_mapping.cpp", "value"): "which rank the process is, and whether it is a fork: its own",
    ("src/runtime/ipc/client.hpp", "attached_"): "the client of this process, if a library has asked for it",
    ("src/runtime/ipc/client_mapping.cpp", "has_tried"): "a process searches once for its entry in a rank's order",
    ("src/runtime/ipc/client_mapping.cpp", "created"): "a process becomes a rank once",
    ("src/runtime/ipc/client_mapping.cpp", "creating"): "a thread on its way into its own first call",
    ("src/runtime/shim/affinity.cpp", "settings"): "which cores the program has set for the threads of the process",
    ("src/runtime/shim/mpi.cpp", "is_finalising"): "a thread's own",
    ("src/runtime/shim/call_notes.cpp", "shared_note"): "the threads of the process beyond those with a note",
    ("src/runtime/shim/mpi.cpp", "inside"): "a library's functions may call each other, in each thread",
    ("src/runtime/shim/mpi.cpp", "mutex"): "a process begins virtual time once",
    ("src/runtime/shim/mpi_world.cpp", "mutex"): "a process tells its library once",
    ("src/runtime/shim/mpi_world.cpp", "has_told"): "a process tells its library once",
    ("src/runtime/shim/connections.cpp", "give_up_ns"): "a process is patient once, in the host's time",
    ("src/runtime/shim/program_starts.cpp", "real_functions"): "the C library's functions, as the process has them",
    ("src/runtime/shim/process_images.cpp", "records"): "where the process has its record: its fact",
    ("src/runtime/shim/process_images.cpp", "faults_at_begin"): "what the image of the process has begun with",
    (
        "src/runtime/shim/process_images.cpp",
        "own_process",
    ): "which process has the record: a child of vfork has its memory",
    ("src/runtime/shim/process_images.cpp", "records_alarm"): "what the process has written into its record: its fact",
    ("src/runtime/shim/process_images.cpp", "apenet_has_started"): "whether the process has started another: its fact",
    ("src/runtime/shim/run_environment.cpp", "known_variables"): "the variables with which the process has begun",
    ("src/runtime/shim/run_environment.cpp", "own_environment"): "the C library has one environment for a process",
    ("src/runtime/shim/run_environment.cpp", "spare"): "a thread's own",
    ("src/runtime/shim/large_counts.cpp", "mutex"): "MPI gives a wrapper library no storage of its own",
    ("src/runtime/shim/large_counts.cpp", "kept"): "MPI gives a wrapper library no storage of its own",
    ("src/runtime/shim/segments.cpp", "count"): "names of the host that differ, and are removed at once",
    ("src/runtime/shim/lifeline.cpp", "value"): "the descriptor whose end ends the process: its own",
    ("src/runtime/shim/gpu.cpp", "heap"): "the device memory of the process: its own",
    ("src/runtime/shim/virtual_timers.cpp", "timers"): "a process has one set of timers",
    ("src/runtime/shim/virtual_timers.cpp", "is_paced"): "a thread is in a wait of the host",
    ("src/runtime/shim/virtual_timers.cpp", "own_pace"): "which wait that is: its fact",
    ("src/runtime/shim/wait_interrupter.cpp", "value"): "a process has one handler of a signal",
    ("src/runtime/shim/library_process_ids.cpp", "rank_process"): "which process is the rank: its fact",
    ("src/runtime/shim/signal_gate.cpp", "first_thread_lets_in"): "a process has one first thread",
    ("src/runtime/shim/held_signals.cpp", "value"): "a process has one handler of a signal",
    ("src/runtime/shim/cycle_counter.cpp", "trap"): "a process has one handler of SIGSEGV",
    ("src/runtime/shim/direct_calls.cpp", "apenet_has_loaded"): "a thread's own",
    ("src/runtime/shim/answer_stack.cpp", "apenet_answer_stack"): "a thread's own",
    ("src/runtime/shim/answer_stack.cpp", "apenet_catches_calls"): "a thread's own",
    ("src/runtime/shim/answer_stack.cpp", "apenet_catches_on"): "a thread's own",
    ("src/runtime/shim/real.cpp", "real_calls"): "a thread's own",
    ("src/runtime/shim/direct_calls.cpp", "uncaught_call"): "how the simulator calls the host past what it catches",
    ("src/runtime/shim/direct_calls.cpp", "uncaught_calls"): "what the process has got past the shim",
    ("src/runtime/shim/direct_calls.cpp", "catching"): "a process has one handler of SIGSYS, and one C library",
    ("src/runtime/shim/direct_code.cpp", "code_objects"): "the loader has one list of a process's objects",
    ("src/api/libfabric/transport.cpp", "mutex"): "libfabric gives a provider no place of its own in the process",
    ("src/api/libfabric/transport.cpp", "transports"): "libfabric gives a provider no place of its own in the process",
    ("src/runtime/shim/call_notes.cpp", "value"): "the MPI library of the process, and what it has made: its own",
    ("src/runtime/shim/call_notes.cpp", "mutex"): "MPI gives a wrapper library no storage of its own",
    ("src/runtime/shim/call_notes.cpp", "beyond"): "MPI gives a wrapper library no storage of its own",
    ("src/runtime/shim/call_notes.cpp", "end"): "a thread's own",
    ("src/runtime/shim/call_notes.cpp", "own_note"): "a thread's own",
    ("src/runtime/shim/shared_windows.cpp", "value"): "MPI gives a wrapper library no storage of its own",
    ("src/runtime/shim/real.cpp", "host_calls"): "a thread's own",
    ("src/runtime/shim/clocks.cpp", "reads_clock_free"): "a thread's own",
    ("src/runtime/shim/system_calls.cpp", "uses"): "which thread of the process used a word last: its own",
    ("src/runtime/shim/thread_meetings.cpp", "in_progress"): "what the process initialises at present: its own",
    ("src/runtime/shim/child_processes.cpp", "vfork_start"): "a thread's own",
    ("src/runtime/shim/shells.cpp", "value"): "the streams of popen() that the process has open: its own",
    ("src/runtime/shim/ordered_threads.cpp", "is_prepared"): "a process prepares its order once",
    ("src/runtime/shim/ordered_threads.cpp", "order"): "the threads of the process: its own",
    ("src/runtime/shim/thread_locks.cpp", "host_condition_waits"): "waits of the process: its own",
    ("src/runtime/shim/ordered_threads.cpp", "is_unordered"): "a thread's own",
    ("src/runtime/shim/ordered_threads.cpp", "checks"): "a thread's own",
    ("src/runtime/shim/ordered_threads.cpp", "checked_at_ps"): "a thread's own",
    ("src/runtime/shim/clocks.cpp", "is_leaving"): "a thread's own",
    ("src/runtime/shim/clocks.cpp", "is_in_direct_call"): "a thread's own",
    ("src/runtime/shim/outside_waits.cpp", "outside_checks"): "a thread's own",
    ("src/runtime/shim/own_files.cpp", "value"): "the descriptors that a process has made: its own",
    ("src/runtime/shim/shared_objects.cpp", "value"): "where a process has found objects that it shares: its own",
    ("src/runtime/shim/own_files.cpp", "known_set"): "a thread's own",
    ("src/runtime/shim/threads.cpp", "value"): "the threads of a process that serve its libraries: its own",
    ("src/runtime/shim/threads.cpp", "rounds_left"): "a thread's own",
    ("src/runtime/shim/threads.cpp", "is_creating"): "a thread's own",
    ("src/runtime/shim/socket_limits.cpp", "value"): "whether sockets of the process have time limits: its own",
    ("src/runtime/shim/outside_waits.cpp", "value"): "the real time that a process has waited for something outside",
    (
        "src/runtime/shim/computation.cpp",
        "value",
    ): "the regions of the process, which the C library's functions observe",
    ("src/runtime/shim/computation.cpp", "own_thread"): "a thread's own",
    ("src/runtime/shim/computation.cpp", "beginning"): "a process begins to observe once",
    ("src/runtime/shim/computation.cpp", "computation_observed"): "whether the run asks for computation",
    ("src/runtime/shim/heap.cpp", "memory"): "the heap of the process is one",
    ("src/api/sockets/names.cpp", "entry"): "gethostbyname() returns a pointer to it, as the C library's does",
    ("src/api/sockets/known_sockets.cpp", "value"): "the descriptors of the process: its own",
    ("src/api/sockets/signals.cpp", "value"): "the handlers of the process: its own",
    ("src/api/sockets/simulated_socket.cpp", "value"): "a process has one way to the simulator",
    ("src/api/sockets/waits.cpp", "value"): "the epoll sets of the process: its own",
    ("src/api/sockets/library_checks.hpp", "value"): "what a thread has checked, and from where: its own",
    ("src/runtime/shim/heap.cpp", "real"): "the C library's function",
    ("src/runtime/shim/held_signals.cpp", "find_code_object"): "the C library's function",
    ("src/runtime/shim/host_caller.cpp", "value"): "where the process has loaded a driver: its own",
    (
        "src/runtime/shim/memory_watchers.cpp",
        "value",
    ): "where the process has loaded libraries that watch its memory: its own",
}

NAMED = r"(?P<name>\w+)\s*(?:\[[^\]]*\])*\s*(?:=[^;]*|\{[^;]*\})?;"
STATIC = re.compile(
    rf"^\s*(?:inline\s+)?(?:static|thread_local)\s+(?P<type>[^;(){{}}=]*?[\w>&*\]]\s*)\b{NAMED}", re.MULTILINE
)
# A declaration without parentheses at the left margin is a namespace-scope variable.
NAMESPACE = re.compile(
    rf"^(?!using|return|struct|class|enum|union|namespace|template|typedef|friend|extern|concept|public|private|protected)"
    rf"(?P<type>[A-Za-z_][\w:<>,*& ]*[\w>&*]\s+){NAMED}",
    re.MULTILINE,
)


def is_constant(declared: str) -> bool:
    return re.search(r"\b(const|constexpr|constinit const)\b", declared) is not None


def test_no_mutable_state_outside_objects():
    wrong = []
    for path in cxx_files("src"):
        for pattern in (STATIC, NAMESPACE):
            for match in pattern.finditer(code(path)):
                if not is_constant(match["type"]) and (name(path), match["name"]) not in ALLOWED:
                    wrong.append(f"{name(path)}: {match[0].strip()} is global and can change")
    assert wrong == []


def test_results_depend_on_no_hash_order():
    """Unordered containers are for look-ups only: a loop over one would make results depend on addresses."""
    wrong = []
    for path in cxx_files("src"):
        source = code(path)
        for container in re.findall(r"unordered_(?:map|set)<[^;]*?>\s+(\w+)\s*[;{=]", source):
            if re.search(rf":\s*{container}\)", source):
                wrong.append(f"{name(path)} iterates over {container}")
    assert wrong == []


def test_the_model_reads_no_clock_and_no_entropy():
    forbidden = r"std::chrono|clock_gettime|gettimeofday|std::random_device|\brand\(|std::mt19937|std::this_thread"
    wrong = []
    for folder in ("kernel", "network", "host", "nic", "machine", "ip", "runtime/scripted"):
        paths = cxx_files(f"src/{folder}")
        assert paths, f"src/{folder} has no files"
        found = ((path, re.search(forbidden, code(path))) for path in paths)
        wrong += [f"{name(path)} uses {match[0]}" for path, match in found if match]
    assert wrong == []


# Folders whose classes keep what changes in State, Counters and Memo; and where a number outside of them may change.
COMPONENTS = ("network/packet", "network/flit", "network/faults", "nic", "host")
NUMBER = re.compile(
    r"^  (?P<type>std::u?int\d+_t|unsigned|bool|std::size_t|Time|FlitCycle|EventSource|QueuePool<[^;]*>::Queue)\s+"
    r"(?P<name>\w+_)(?:\s*=[^;]*|\{[^;]*\})?;",
    re.MULTILINE,
)
NUMBERS_ALLOWED = {
    "src/network/flit/allocators.hpp": "of the requests of one cycle",
    "src/network/flit/router_bank.hpp": "of the block and the cycle that tick works on",
    "src/network/flit/fabric.hpp": "the word into which a class packs its fields",
    "src/network/flit/route_unit.hpp": "tables, made anew for each routing",
    "src/network/packet/serialisation.hpp": "made once from a rate",
    "src/network/packet/accuracy_envelope.hpp": "made once from a description",
    "src/network/packet/wormhole.hpp": "made once from a description",
    "src/network/faults/fault_schedule.hpp": "which links are alive follows from the changes applied",
}


def test_what_changes_in_a_component_is_in_its_structs():
    """A copy of a component's State would lack anything else, and a comparison of states would not see it."""
    wrong = []
    for folder in COMPONENTS:
        paths = [path for path in cxx_files(f"src/{folder}") if path.suffix == ".hpp"]
        assert paths, f"src/{folder} has no headers"
        wrong += [
            f"{name(path)}: {match[0].strip()} belongs into State, Counters or Memo, or is const"
            for path in paths
            for match in NUMBER.finditer(code(path))
            if name(path) not in NUMBERS_ALLOWED and match["name"] not in {"state_", "counters_", "memo_", "spec_"}
        ]
    assert wrong == []


STATE_TEST = ROOT / "tests" / "machine" / "state_test.cpp"
NOT_CHANGED = {
    "GpuKind": "a pool: what is under way is in the queues of GpuMemory::State",
    "tnw::Cards": "pools: what is under way is in the queues of the parts of a card",
    "Machine::Parts": "how many events each process has had, which only orders them",
}
STATE_OWNER = re.compile(r"^( *)(?:struct|class)(?: alignas\([^)]*\))? ((?:\w+::)*\w+)[^;{]*\{", re.MULTILINE)


def owners_of_states(source: str) -> list[str]:
    """What each `struct State {` is in, from the file's namespace below apenet on."""
    spaces = re.findall(r"^namespace apenet::(\w+) \{", source, re.MULTILINE)[:1]
    around: list[tuple[int, str]] = []
    found = []
    for indent, named in STATE_OWNER.findall(source):
        around = [outer for outer in around if outer[0] < len(indent)]
        if named == "State":
            found.append("::".join([*spaces, *(outer for _, outer in around)]))
        around.append((len(indent), named))
    return found


def test_each_state_is_changed_field_by_field():
    """state_test.cpp changes each field of the states that it lists: none may be missing in its list."""
    listed = set(re.findall(r"\b((?:\w+::)*\w+)(?:<\w+>)?::State\b", text(STATE_TEST)))
    missing = []
    for folder in ("kernel", "machine", *COMPONENTS, "network/routing"):
        for path in cxx_files(f"src/{folder}"):
            missing += [owner for owner in owners_of_states(code(path)) if owner not in listed | set(NOT_CHANGED)]
    assert missing == []


def test_the_search_for_states_finds_them():
    bus = "class alignas(64) Bus final : private Handler {\n  struct Lane {\n  };\n  struct State {\n  };\n};\n"
    parts = "struct Machine::Parts {\n  struct State {\n  };\n};\n"
    assert owners_of_states(f"namespace apenet::nic {{\n{bus}}}\n") == ["nic::Bus"]
    assert owners_of_states(f"namespace apenet {{\n{parts}}}\n") == ["Machine::Parts"]


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


def test_the_check_of_components_finds_what_it_looks_for():
    source = "class Part {\n  Time free_at_;\n  const bool fine_;\n  unsigned turn_ = 0;\n  State state_;\n};\n"
    assert [match["name"] for match in NUMBER.finditer(source)] == ["free_at_", "turn_"]
