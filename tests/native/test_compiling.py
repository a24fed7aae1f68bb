"""The pkg-config files of the libraries, which say the same as `apenet cc`."""

import os
from pathlib import Path

import pytest

from apenet.host.compiling import flags, libraries


def asked(folder: Path, package: str) -> dict[str, list[str]]:
    """What pkg-config answers from a file: its fields, with the variables replaced."""
    lines = (folder / f"{package}.pc").read_text(encoding="utf-8").splitlines()
    variables = {"pcfiledir": str(folder)}
    fields = {}
    for line in lines:
        for name, value in variables.items():
            line = line.replace(f"${{{name}}}", value)  # noqa: PLW2901
        if ": " in line:
            name, _, value = line.partition(": ")
            fields[name] = value.split()
        elif "=" in line:
            name, _, value = line.partition("=")
            variables[name] = value
    return fields


def resolved(options: list[str]) -> list[str]:
    return [
        prefix + os.path.realpath(option.removeprefix(prefix)) if (prefix := path_prefix(option)) else option
        for option in options
    ]


def path_prefix(option: str) -> str:
    return next((prefix for prefix in ("-I", "-L", "-Wl,-rpath,") if option.startswith(prefix)), "")


LIBRARIES = ("am", "apelib", "extoll", "gasnet-par", "gasnet-parsync", "gasnet-seq", "qmp", "rdma", "tnw", "udp")


def test_each_installed_library_is_an_option(apenet):
    assert tuple(libraries()) == LIBRARIES
    shown = apenet("cc", "--help").stdout
    assert all(f"  --{library} " in shown for library in LIBRARIES)
    assert libraries()["gasnet-par"].definitions == ("-DGASNET_PAR",)


@pytest.mark.parametrize("library", LIBRARIES)
def test_pkg_config_says_what_the_compiler_gets(apenet, library):
    folder = Path(apenet("cc", "--pkg-config-path").stdout.strip())
    compiling, linking = flags([library])
    package = asked(folder, libraries()[library].package)
    assert resolved(package["Cflags"]) == resolved(compiling)
    assert resolved(package["Libs"]) == resolved(linking)
