"""The figure of a scheduling study: what each policy costs."""

from __future__ import annotations

from typing import Any

from apenet.queueing.study import QueueResult


def drawn_policies(result: QueueResult, plt: Any) -> Any:  # noqa: ANN401 (matplotlib has no public types)
    """Waiting time, bounded slowdown, node-time and run time, a bar for each policy."""
    names = [one.policy for one in result.policies]
    figure, ((waits, slowdowns), (nodes, runs)) = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    waits.barh(names, [one.mean_wait_s / 60 for one in result.policies], color="C0")
    waits.set_xlabel("mean wait (min)")
    slowdowns.barh(names, [one.mean_bounded_slowdown for one in result.policies], color="C0")
    slowdowns.set_xlabel("mean bounded slowdown")
    left = [0.0] * len(names)
    for label, colour, values in (
        ("at work", "C0", [one.at_work for one in result.policies]),
        ("slowed by the network", "C4", [one.slowed for one in result.policies]),
        ("padded: more than asked for", "C1", [one.padded for one in result.policies]),
        ("lost: free, but no place", "C3", [one.lost for one in result.policies]),
    ):
        nodes.barh(names, [value * 100 for value in values], left=left, label=label, color=colour)
        left = [before + value * 100 for before, value in zip(left, values, strict=True)]
    nodes.set_xlabel("node-time (%)")
    runs.barh(names, [(one.mean_run_factor - 1) * 100 for one in result.policies], color="C0")
    runs.set_xlabel("mean run time beside a compact box alone (%)")
    for axes in (waits, slowdowns, nodes, runs):
        axes.invert_yaxis()
    figure.legend(*nodes.get_legend_handles_labels(), loc="outside lower left", ncols=4, fontsize=8)
    figure.suptitle(f"{result.jobs} jobs of {result.workload} on {result.machine}, queue {result.queue}")
    return figure
