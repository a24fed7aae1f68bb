"""Torque's submit filter for partitions: a job script that asks for a partition gets its nodes.

Torque passes the script of qsub through the filter, on standard input and output, and refuses the job if the filter
fails (qsub(1), "submit filter").
"""

from __future__ import annotations

import re

from apenet.base.errors import InputError
from apenet.machine import Machine

_DIRECTIVE = re.compile(r"#PBS\s")
_RESOURCES = re.compile(r"(?<=\s)(-l\s*)(\S+)")
# The box of a partition has commas, as the list of resources has: a partition is the last of them.
_PARTITION = re.compile(
    r"(?P<others>.*,|)partition=(?P<partition>nodes:[^:]*|[^:]*)(?::ppn=(?P<ranks>[1-9][0-9]{0,4}))?"
)
_ASKED = re.compile(r"(?:^|,)(?:nodes|procs|partition)=")


def filtered(script: str, machine: Machine) -> str:
    """The job script with `-l nodes=` in place of `-l partition=`.

    `#PBS -l partition=1x4x4@3,0,0:ppn=2` becomes `#PBS -l nodes=NAME:ppn=2+NAME:ppn=2...` with the names of the
    partition's nodes. As for Torque, directives end with the first command. Raises InputError, which names the line,
    for what is no partition of the machine, and for a script that asks for nodes or for partitions twice.
    """
    lines = script.splitlines(keepends=True)
    asked: list[int] = []
    for place, line in enumerate(lines):
        if line.strip() and not line.startswith("#"):
            break
        if _DIRECTIVE.match(line) is None:
            continue
        for _, resources in _RESOURCES.findall(line):
            asked += [place] * len(_ASKED.findall(resources))
        if len(asked) > 1:
            raise InputError(f"line {place + 1}", line.strip(), f"nodes once: line {asked[0] + 1} asks for them, too")
        try:
            lines[place] = _RESOURCES.sub(lambda found: found[1] + _with_nodes(found[2], machine), line)
        except InputError as error:
            raise InputError(f"line {place + 1}: {error.name}", error.value, error.expected) from error
    return "".join(lines)


def _with_nodes(resources: str, machine: Machine) -> str:
    """The list of resources with nodes in place of a partition."""
    found = _PARTITION.fullmatch(resources)
    if found is None:
        if "partition=" in resources:
            raise InputError("-l", resources, "partition=NAME or a box, with :ppn=RANKS behind it or nothing")
        return resources
    ranks = f":ppn={found['ranks']}" if found["ranks"] else ""
    nodes = "+".join(name + ranks for name in _names(machine, found["partition"]))
    return f"{found['others']}nodes={nodes}"


def _names(machine: Machine, text: str) -> list[str]:
    partition = machine.with_partition(text).partition
    assert partition is not None  # noqa: S101 (of a text)
    description = machine.description()
    return [description.node_name(node) for node in partition.nodes]
