"""Runs whose programs use the sockets of the simulated nodes."""

import re

import apenet


def run(command, machine="ape16", settings=(), n=2, **options):
    """`apenet run --ip` of a command on a machine with changed settings."""
    changed = apenet.machine(machine).with_settings(*settings)
    return apenet.run(command, n=n, machine=changed, ip=True, capture=True, **options)


def number(pattern, result):
    """The number that the pattern's group matches in the output of a run."""
    return float(re.search(pattern, result.stdout.decode())[1])
