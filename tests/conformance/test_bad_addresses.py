"""A call that names memory which is not there fails with EFAULT, and the program goes on."""

from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("bad_addresses.c")


@pytest.mark.parametrize("options", [(), ("--ip",)])
@pytest.mark.parametrize("time", ["virtual", "host"])
def test_a_call_with_a_bad_address_fails_as_on_linux(apenet, build, options, time):
    done = apenet("run", "-n", "2", "--machine", "ape16", *options, "--", build(PROGRAM), time)
    assert (done.returncode, done.stdout) == (0, "60 calls\n" * 2), done.stderr
