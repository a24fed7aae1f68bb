"""A program that the host does not start: what is missing is named."""

import subprocess

import pytest

import apenet
from apenet import InputError


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"#!/nonexistent/python -u\n", r"whose interpreter the host has: '/nonexistent/python' is not there"),
        (b"#!/tmp\n", r"whose interpreter the host has: '/tmp' is a folder"),
        (b"#! /bin/sh\r\necho\r\n", r"whose interpreter the host has: '/bin/sh\\r' is not there"),
        (b"echo\n", r"a script whose first line names its interpreter, such as #!/bin/sh \(Exec format error\)"),
    ],
    ids=["missing", "folder", "line-ends", "no-interpreter"],
)
def test_a_script_that_cannot_be_started(tmp_path, text, said):
    script = tmp_path / "script"
    script.write_bytes(text)
    script.chmod(0o755)
    with pytest.raises(InputError, match=said):
        apenet.run([script], n=2, machine="ape16")


def test_an_interpreter_that_is_a_script(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_text(f"#!{second}\n", encoding="utf-8")
    second.write_text("#!/nonexistent/python\n", encoding="utf-8")
    for script in (first, second):
        script.chmod(0o755)
    with pytest.raises(InputError, match="whose interpreter the host has: '/nonexistent/python' is not there"):
        apenet.run([first], n=2, machine="ape16")


def test_a_program_without_its_loader(tmp_path):
    source, program = tmp_path / "empty.c", tmp_path / "empty"
    source.write_text("int main(void) { return 0; }\n", encoding="utf-8")
    subprocess.run(["cc", "-Wl,--dynamic-linker=/nonexistent/loader", "-o", program, source], check=True)
    with pytest.raises(InputError, match="whose interpreter the host has: '/nonexistent/loader' is not there"):
        apenet.run([program], n=2, machine="ape16")
