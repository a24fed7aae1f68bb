"""A plugin for pytest: the fixture `apenet_run`, by which tests judge the virtual time of a program.

A separate package, so that test suites that do not use it do not import the simulator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from apenet import RunResult


@pytest.fixture(scope="session")
def apenet_run() -> Callable[..., RunResult]:
    """Runs a program: `apenet_run("./halo", "100", n=64, machine="ape128").time < 120e-6`.

    The program and its arguments come first, then the options of `apenet.run`. A program that fails is an error,
    `apenet.RunError`; with `check=False` its `time` is no number, so that no comparison with it holds.
    """
    from apenet import run  # noqa: PLC0415 (half a second)

    def simulate(program: str, *arguments: object, **options: Any) -> RunResult:  # noqa: ANN401 (those of apenet.run)
        return run([program, *map(str, arguments)], **options)

    return simulate
