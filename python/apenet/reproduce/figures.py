"""The sweeps of a reproduction as a picture."""

from __future__ import annotations

from pathlib import Path

from apenet.bench.result import TESTS, BenchResult
from apenet.reproduce import Reproduction


def plot(reproduction: Reproduction, path: Path) -> None:
    """One row a machine: time and bandwidth over size, with the published values as lines."""
    import matplotlib as mpl  # noqa: PLC0415 (slow to load, and needed here only)

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    names = list(dict.fromkeys(sweep.machine for sweep in reproduction.measured))
    figure, rows = plt.subplots(len(names), 2, figsize=(12, 1 + 3.6 * len(names)), layout="constrained", squeeze=False)
    colours = {test: f"C{number}" for number, test in enumerate(TESTS)}
    for name, (times, bandwidths) in zip(names, rows, strict=True):
        for sweep, result in reproduction.measured.items():
            if sweep.machine == name:
                style = {"color": colours[sweep.test], "marker": "o", "markersize": 3}
                times.loglog(result.sizes_bytes, result.times_us, label=_label(result), **style)
                bandwidths.semilogx(result.sizes_bytes, result.bandwidths_mib_s, **style)
        for row in reproduction.rows:
            if row.machine == name and row.quantity in ("time_us", "bandwidth_mib_s") and row.size_bytes is None:
                axes = times if row.quantity == "time_us" else bandwidths
                line = {"fitted": "--", "predicted": ":", None: "-."}[row.role]
                axes.axhline(float(row.published), color=colours[row.test], linestyle=line, linewidth=1.2)
        times.set(title=name, xlabel="message size (bytes)", ylabel="virtual time (us)")
        bandwidths.set(title=name, xlabel="message size (bytes)", ylabel="bandwidth (MiB/s)", ylim=(0, None))
        times.legend(fontsize=8)
    figure.suptitle("simulated: dots; published: lines (dashed: fitted, dotted: predicted)")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _label(result: BenchResult) -> str:
    return f"{result.test} ({result.layer})"
