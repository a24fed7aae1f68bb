"""The figures as PNG files."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence

from apenet.reproduce.figures import AXES, NO_DATA, Figure, FigureSpec

MARK = b"Software\0apenet"
"""The mark in pictures that this package wrote."""
_TITLE_CHARACTERS = 90
"""The length of a line as wide as a picture."""


def file_name(spec: FigureSpec) -> str:
    """The file name of a figure."""
    return f"{spec.name}.png"


def pictures(figures: Sequence[Figure]) -> dict[str, bytes]:
    """The content of each figure's file."""
    import matplotlib as mpl  # noqa: PLC0415 (slow import)

    mpl.use("Agg")
    return {file_name(figure.spec): _drawn(figure) for figure in figures}


def _drawn(figure: Figure) -> bytes:
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
    source = textwrap.wrap(spec.source, _TITLE_CHARACTERS)
    axes.set(
        title="\n".join([spec.title, *source, *figure.steps] + ([] if figure.marks else [NO_DATA])),
        xlabel=spec.x_label,
        ylabel=AXES[spec.axis],
    )
    axes.title.set_fontsize(9)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    drawn = io.BytesIO()
    drawing.savefig(drawn, format="png", dpi=120, metadata={"Software": "apenet"})
    plt.close(drawing)
    return drawn.getvalue()
