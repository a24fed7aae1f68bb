"""Draws docs/models/flit-engine.png: latency over load of the flit engine and of BookSim2.

    python docs/models/plot_flit.py

Takes seconds; the reference is tests/validation/booksim.csv. Prints the largest deviations below 80 % of saturation.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt

import apenet
from apenet.run.traffic import TrafficPoint

HERE = Path(__file__).parent
REFERENCE = HERE.parents[1] / "tests" / "validation" / "booksim.csv"
MOST_LATENCY_CYCLES = 120
Row = dict[str, str]


def reference_rows() -> dict[str, list[Row]]:
    """The measured points of each machine, by load."""
    lines = [line for line in REFERENCE.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    curves: dict[str, list[Row]] = {}
    for row in csv.DictReader(lines):
        curves.setdefault(row["machine"], []).append(row)
    return curves


def saturation(rows: list[Row]) -> float:
    return max(float(row["accepted"]) for row in rows)


def compare(machine: str, rows: list[Row], points: tuple[TrafficPoint, ...]) -> None:
    theirs = saturation(rows)
    ours = max(point.accepted for point in points)
    pairs = [
        (float(row["offered"]), point.packet_latency_cycles / float(row["packet_latency_cycles"]) - 1)
        for row, point in zip(rows, points, strict=True)
        if float(row["offered"]) < 0.8 * theirs
    ]
    load, worst = max(pairs, key=lambda pair: abs(pair[1]))
    print(f"{machine}: latency at most {worst:+.2%} (load {load}), saturation {ours / theirs - 1:+.2%}")


def main() -> None:
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for colour, (machine, rows) in zip(("tab:blue", "tab:orange"), reference_rows().items(), strict=True):
        loads = [float(row["offered"]) for row in rows]
        result = apenet.traffic(
            machine, pattern="uniform", loads=loads, packet_flits=int(rows[0]["packet_flits"]), engine="flit"
        )
        compare(machine, rows, result.points)
        ours = [point.packet_latency_cycles for point in result.points]
        theirs = [float(row["packet_latency_cycles"] or "inf") for row in rows]
        axes.plot(loads, ours, "-", color=colour, label=f"{machine}, flit engine")
        axes.plot(loads, theirs, "o", color=colour, fillstyle="none", label=f"{machine}, BookSim2")
        axes.axvline(saturation(rows), color=colour, linestyle=":", linewidth=1)
    axes.set_ylim(0, MOST_LATENCY_CYCLES)
    axes.set_xlim(0, 1)
    axes.set_xlabel("offered load [flits per node and cycle]")
    axes.set_ylabel("packet latency [cycles]")
    axes.set_title("4x4x4 torus, uniform traffic; dotted: BookSim2's saturation throughput", fontsize=10)
    axes.legend(frameon=False)
    figure.savefig(HERE / "flit-engine.png", dpi=110)


if __name__ == "__main__":
    main()
