"""`apenet doctor -- PROGRAM`: what the loader binds, what a run does with it, and what does not work."""

import json
import subprocess
from pathlib import Path

import pytest

from apenet.run.doctor import Diagnosis
from apenet.run.doctor_program import examine_program

MAIN = "int main(void) { return 0; }"


def compile_to(target: Path, text: str, *options: str | Path) -> Path:
    source = target.with_suffix(".c")
    source.write_text(text, encoding="utf-8")
    subprocess.run(["cc", source, "-o", target, *options], check=True)
    return target


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    for name in ("LD_LIBRARY_PATH", "LD_PRELOAD", "I_MPI_ROOT"):
        monkeypatch.delenv(name, raising=False)


def details(diagnosis: Diagnosis, subject: str, verdict: str) -> str:
    found = [each for each in diagnosis.findings if (each.subject, each.verdict) == (subject, verdict)]
    assert found, diagnosis.findings
    return found[0].detail


def test_a_program_of_this_environments_mpich(build):
    source = Path(__file__).parents[2] / "conformance" / "c" / "requests.c"
    diagnosis = examine_program([str(build(source)), "-x"])
    assert diagnosis.healthy
    assert "MPICH Version: " in details(diagnosis, "MPI library", "ok")
    assert "libfabric.so" in details(diagnosis, "network", "ok")
    assert "--mpi mpich" in details(diagnosis, "apenet run", "ok")
    assert "dynamic" in details(diagnosis, "kind", "ok")


def test_debians_name_of_mpich_gets_this_environments(tmp_path):
    folder = tmp_path / "lib"
    folder.mkdir()
    options = ("-shared", "-fPIC", "-Wl,-soname,libmpich.so.12")
    library = compile_to(folder / "libmpich.so.12", "int MPI_Initialized(int *flag) { return *flag; }", *options)
    text = "int MPI_Initialized(int *flag); int main(void) { int flag; return MPI_Initialized(&flag); }"
    program = compile_to(tmp_path / "program", text, library)
    diagnosis = examine_program([str(program)])
    assert diagnosis.healthy
    assert "in the place of libmpich.so.12" in details(diagnosis, "apenet run", "note")


@pytest.mark.parametrize(
    ("options", "subject", "word"),
    [
        (("-static",), "kind", "linked statically"),
        (("-Wl,--dynamic-linker,/lib/ld-musl-x86_64.so.1",), "kind", "loader /lib/ld-musl-x86_64.so.1"),
    ],
)
def test_what_cannot_be_preloaded(tmp_path, options, subject, word):
    diagnosis = examine_program([str(compile_to(tmp_path / "program", MAIN, *options))])
    assert not diagnosis.healthy
    assert word in details(diagnosis, subject, "bad")


def test_missing_libraries_and_other_files_are_named(tmp_path):
    gone = compile_to(tmp_path / "libgone.so", "int gone;", "-shared", "-fPIC", "-Wl,-soname,libgone.so")
    needs = compile_to(tmp_path / "needs", MAIN, "-Wl,--no-as-needed", gone)
    assert "libgone.so" in details(examine_program([str(needs)]), "libraries", "bad")
    go = compile_to(tmp_path / "go", 'const char *id = "Go build ID: x"; int main(void) { return id == 0; }')
    assert "Go: " in details(examine_program([str(go)]), "language", "bad")
    script = tmp_path / "script"
    script.write_text("#!/no/such/interpreter\n", encoding="utf-8")
    script.chmod(0o755)
    assert "nor a script" in details(examine_program([str(script)]), "kind", "bad")
    assert "drop mpirun" in details(examine_program(["mpirun", "-n", "4"]), "program", "bad")


def test_the_interpreter_and_its_mpi4py(apenet):
    shown = apenet("doctor", "--json", "--", "python", "program.py")
    assert shown.returncode == 0, shown.stderr
    report = json.loads(shown.stdout)
    assert report["healthy"]
    assert any(finding["subject"] == "mpi4py" for finding in report["findings"])


def test_text_fits_80_columns_and_escapes_names(apenet, tmp_path):
    program = compile_to(tmp_path / "a\x1b[31mb", MAIN)
    shown = apenet("doctor", "--", program)
    assert shown.returncode == 0, shown.stderr
    assert "\x1b" not in shown.stdout
    words = [line for line in shown.stdout.splitlines() if len(line.split()) > 3]
    assert words and all(len(line) <= 80 for line in words), shown.stdout
