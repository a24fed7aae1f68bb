"""Torque's submit filter: partitions of the machine in the directives of job scripts."""

import subprocess
import sys

import pytest

from apenet.base.errors import InputError
from apenet.machine import machine
from apenet.machine.submit_filter import filtered

PLANE = "nodes=ape128-3-0-0{0}+ape128-3-1-0{0}+ape128-3-0-1{0}+ape128-3-1-1{0}"


@pytest.mark.parametrize(
    ("script", "changed"),
    [
        ("#PBS -l partition=1x2x2@3,0,0\n", f"#PBS -l {PLANE.format('')}\n"),
        (
            "#!/bin/sh\n#PBS -N x\n#PBS -l walltime=1:00:00,partition=1x2x2@3,0,0:ppn=2\n\n#PBS -q all\nmpiexec ./a\n",
            f"#!/bin/sh\n#PBS -N x\n#PBS -l walltime=1:00:00,{PLANE.format(':ppn=2')}\n\n#PBS -q all\nmpiexec ./a\n",
        ),
        ("#PBS -N a -l partition=1x1x1@0,0,0 -j oe\r\n", "#PBS -N a -l nodes=ape128-0-0-0 -j oe\r\n"),
        ("#PBS -l partition=1x1x1@0,0,0 -l walltime=60\n", "#PBS -l nodes=ape128-0-0-0 -l walltime=60\n"),
        # Not a directive, since a command stands before it.
        ("true\n#PBS -l partition=none\n", "true\n#PBS -l partition=none\n"),
        ("#PBS -lnodes=4:ppn=2,walltime=60\n", "#PBS -lnodes=4:ppn=2,walltime=60\n"),
        ("", ""),
        ("echo 1", "echo 1"),
    ],
)
def test_a_partition_becomes_its_nodes(script, changed):
    assert filtered(script, machine("ape128")) == changed


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("#!/bin/sh\n#PBS -l partition=9x9x9@0,0,0\n", 'line 2: partition = "9x9x9@0,0,0"'),
        ("#PBS -l partition=upper\n", 'line 1: partition = "upper"'),
        ("#PBS -l partition=\n", "line 1: partition"),
        ("#PBS -l nodes=2\n#PBS -l partition=1x1x1@0,0,0\n", "line 1 asks for them, too"),
        ("#PBS -l partition=1x1x1@0,0,0\n#PBS -l procs=2\n", "line 1 asks for them, too"),
        ("#PBS -l partition=1x1x1@0,0,0,walltime=60\n", "line 1: partition"),
        ("#PBS -l nodes=2,partition=1x1x1@0,0,0\n", "nodes once"),
        ("#PBS -l nodes=2 -l partition=1x1x1@0,0,0\n", "nodes once"),
        ("#PBS -l partition=1x1x1@0,0,0:ppn=0\n", "line 1: -l"),
    ],
)
def test_what_is_no_partition_is_refused(script, said):
    with pytest.raises(InputError) as refused:
        filtered(script, machine("ape128"))
    assert said in str(refused.value)


def test_the_command_passes_every_byte_of_a_script():
    script = b"#!/bin/sh\n#PBS -l partition=1x1x1@3,0,0\necho \xe4\xff\n"
    command = [sys.executable, "-m", "apenet", "partition", "filter", "-m", "ape16"]
    done = subprocess.run(command, input=script, capture_output=True, check=True)
    assert done.stdout == b"#!/bin/sh\n#PBS -l nodes=ape16-3-0-0\necho \xe4\xff\n"
