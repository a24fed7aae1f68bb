"""Finds the settings of a machine without which a test at the card has the same times, by measuring without each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from apenet.base.errors import ApenetError
from apenet.bench.layer_table import CARD
from apenet.bench.request import MachineRequest, no_progress
from apenet.bench.result import BenchResult
from apenet.machine import Machine
from apenet.run.settings_effect import machines_without


def with_settings_judged(request: MachineRequest[Any], result: BenchResult) -> BenchResult:
    """The result, with a warning for each setting that has no effect on it.

    Without programs a test costs little: it is measured again for each setting, unless it may take hours.
    """
    if request.measured_layer != CARD or request.allow_long or not isinstance(request.machine, Machine):
        return result
    without: dict[str, Any] = {"progress": no_progress, **({"goal": None} if hasattr(request, "goal") else {})}
    found = []
    for setting, machine in machines_without(request.machine):
        try:
            other = replace(request, machine=machine, **without).measure()
        except ApenetError:  # another machine, which cannot do this
            continue
        if other.columns == result.columns:
            found.append(f"--set {setting} had no effect on any time of this test")
    return replace(result, warnings=(*result.warnings, *found))
