"""Workloads of `apenet bench` as jobs: the messages of one of its tests, from ranks without processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from apenet import _core
from apenet.base.errors import ABSENT, InputError
from apenet.bench import WORKLOADS, make_request
from apenet.bench.workload_plan import require_soon, schedule_of
from apenet.bench.workloads import Workload
from apenet.machine import Machine

_OPTIONS = ("sizes", "iterations", "n", "nodes", "algorithm", "lattice", "site_bytes")
"""Those that say which messages are sent. The others say how a test is measured, or are keys of the jobs' file."""


def plan_workload(
    workload: Mapping[str, object], machine: Machine, engine: str, seed: int, *, allow_long: bool
) -> tuple[_core.GoalSchedule, list[int]]:
    """What the ranks of a workload do, and their nodes. Raises InputError as `apenet bench`."""
    options: dict[str, Any] = dict(workload)
    test = options.pop("test", ABSENT)
    if test not in WORKLOADS:
        raise InputError("workload.test", test, "one of " + ", ".join(WORKLOADS))
    for name, value in options.items():
        if name not in _OPTIONS:
            raise InputError(f"workload.{name}", value, "one of test, " + ", ".join(_OPTIONS))
    try:
        request = make_request(str(test), machine, engine=engine, seed=seed, allow_long=allow_long, **options)
        if not isinstance(request, Workload):
            raise TypeError(test)
        if len(request.sizes_bytes) != 1:
            raise InputError("sizes", options.get("sizes", ABSENT), "one size, such as 64K")
        plan = request.plan()
        require_soon([plan])
        return schedule_of(plan, f"workload {test}"), list(plan.options.nodes)
    except InputError as error:
        raise InputError(f"workload.{error.name}", error.value, error.expected) from error
