"""mpi4py's own tests, unmodified, on the simulated ape16.

`make conformance` runs every module at 1 to 4 ranks. `make test` runs those that together use every part of the
provider. excluded.toml lists the excluded tests with the reasons.
"""

import fnmatch
import re
import tomllib
from pathlib import Path

import pytest

EXCLUDED = tomllib.loads(Path(__file__).with_name("excluded.toml").read_text(encoding="utf-8"))["excluded"]

# Numbers of ranks with which `make test` runs a module. `test_p2p_buf` repeats its few exchanges for every type and
# buffer; with 4 ranks, the matched and the pickled messages show the same. `test_rma` repeats the accesses of
# test_programs.py for every type.
TELLING = {
    "test_p2p_buf": (2,),
    "test_p2p_buf_matched": (2,),
    "test_p2p_buf_part": (2,),
    "test_p2p_obj": (2,),
    "test_p2p_obj_matched": (4,),
    "test_request": (2,),
    "test_cco_buf": (2,),
    "test_cco_obj": (4,),
    "test_cco_obj_inter": (4,),
    "test_cco_nb_vec": (2,),
    "test_comm": (4,),
    "test_comm_topo": (4,),
    "test_win": (2,),
}
MODULE_LIMIT_S = 300


def module_is_excluded(module: str, ranks: int) -> bool:
    return any(entry["tests"] == f"{module}.*" for entry in applying(ranks))


def applying(ranks: int) -> list[dict[str, object]]:
    return [entry for entry in EXCLUDED if ranks in entry.get("ranks", [ranks])]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "module" not in metafunc.fixturenames:
        return
    if metafunc.config.getoption("--whole"):
        suite = metafunc.config.suite_folder()
        chosen = [(path.stem, ranks) for path in sorted(suite.glob("test_*.py")) for ranks in (1, 2, 3, 4)]
    else:
        chosen = [(module, ranks) for module, counts in TELLING.items() for ranks in counts]
    metafunc.parametrize(("module", "ranks"), [pair for pair in chosen if not module_is_excluded(*pair)])


def run_module(apenet, suite, folder, module, ranks, *options):
    excluded = [
        option
        for entry in applying(ranks)
        if fnmatch.fnmatch(f"{module}.", str(entry["tests"]).split(".")[0] + ".")
        for option in ("-x", str(entry["tests"]))
    ]
    done = apenet(
        *("run", "-n", str(ranks), "--machine", "ape16", *options, "--"),
        *("python", suite / "main.py", "--no-builddir", *excluded, module),
        timeout_s=MODULE_LIMIT_S,
        cwd=folder,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-8000:]
    ran = [int(count) for count in re.findall(r"^Ran (\d+) tests?", done.stderr, re.MULTILINE)]
    assert len(ran) == ranks, done.stderr[-4000:]
    assert min(ran) > 0


def test_module(apenet, mpi4py_suite, tmp_path, module, ranks):
    run_module(apenet, mpi4py_suite, tmp_path, module, ranks)


def test_windows_of_ranks_that_share_a_node(apenet, mpi4py_suite, tmp_path):
    run_module(apenet, mpi4py_suite, tmp_path, "test_win", 4, "--ranks-per-node", "4")


def test_every_exclusion_has_its_reason():
    for entry in EXCLUDED:
        assert set(entry) <= {"tests", "ranks", "reason"}
        assert len(entry["reason"]) > 20
