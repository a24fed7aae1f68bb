"""The figures as PNG files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from apenet.reproduce.figures import AXES, NO_DATA, Figure


def write_pictures(figures: Sequence[Figure], folder: Path) -> None:
    """One file a figure, by its name."""
    import matplotlib as mpl  # noqa: PLC0415 (slow to load, and needed here only)

    mpl.use("Agg")
    folder.mkdir(parents=True, exist_ok=True)
    for figure in figures:
        _write(figure, folder / f"{figure.spec.name}.png")


def _write(figure: Figure, path: Path) -> None:
    from matplotlib import pyplot as plt  # noqa: PLC0415

    spec = figure.spec
    drawing, axes = plt.subplots(figsize=(7, 4.6), layout="constrained")
    for series in figure.series:
        axes.plot(series.x, series.y, marker="o", markersize=3, label=series.label)
    for mark in figure.marks:
        if mark.x is None:
            axes.axhline(mark.y, color="black", linestyle="--", linewidth=1)
            axes.annotate(
                f"{mark.label} ({mark.role})",
                (1, mark.y),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                xytext=(-4, 3),
                ha="right",
                fontsize=8,
            )
        else:
            inside = "black" if mark.is_measured else "none"
            axes.scatter(
                [mark.x],
                [mark.y],
                marker="D" if mark.is_measured else "o",
                facecolors=inside,
                edgecolors="black",
                zorder=3,
            )
            if mark.is_measured:
                axes.annotate(
                    f"{mark.label} ({mark.role})",
                    (mark.x, mark.y),
                    textcoords="offset points",
                    xytext=(-8, 6),
                    ha="right",
                    fontsize=8,
                )
    axes.set_xscale("log", base=2)
    if spec.is_logarithmic:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set(
        title="\n".join([spec.title, spec.source] + ([] if figure.marks else [NO_DATA])),
        xlabel="nodes" if spec.axis == "node_mib_s" else "message size (bytes)",
        ylabel=AXES[spec.axis],
    )
    axes.title.set_fontsize(9)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    drawing.savefig(path, dpi=120)
    plt.close(drawing)
