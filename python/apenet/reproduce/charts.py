"""The figures as Plotly charts for the page. A colour is a variable of style.css, which the page resolves."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from apenet.reproduce.figures import AXES, NO_DATA, Figure, Mark

if TYPE_CHECKING:
    from plotly import graph_objects as go

_INK, _QUIET, _LINE, _CARD = (f"var(--{name})" for name in ("ink", "quiet", "line", "card"))
_CURVES = 6  # colours of style.css for curves, --c0 to --c5
_MOST_TICKS = 8
_FEW_DECADES = 2


def chart(figure: Figure) -> dict[str, Any]:
    """The texts around a chart, and `plot`: Plotly's data and layout."""
    spec = figure.spec
    plot = _plot(figure).to_plotly_json()
    return {"title": spec.title, "source": spec.source, "note": figure.note, "plot": plot}


def _plot(figure: Figure) -> go.Figure:
    from plotly import graph_objects as go  # noqa: PLC0415 (slow import)

    spec = figure.spec
    unit = AXES[spec.axis].rpartition("(")[2].rstrip(")")
    plot = go.Figure(layout=_layout(figure))
    for number, series in enumerate(figure.series):
        plot.add_scatter(
            name=series.label,
            x=series.x,
            y=series.y,
            mode="lines+markers",
            line={"color": f"var(--c{number % _CURVES})", "width": 2},
            marker={"size": 5},
            customdata=[_size(x) for x in series.x],
            hovertemplate=f"<b>{series.label}</b><br>%{{customdata}}: %{{y:.4~g}} {unit}, simulated<extra></extra>",
        )
    for mark in figure.marks:
        _add_mark(plot, mark, is_logarithmic=spec.is_logarithmic)
    if not figure.marks:
        plot.add_annotation(
            text=f"<i>{NO_DATA}</i>", xref="paper", yref="paper", x=0, y=1, yanchor="bottom", showarrow=False
        )
    return plot


def chart_layout() -> dict[str, Any]:
    """Colours, fonts and margins of every chart of the page."""
    lines = {"gridcolor": _LINE, "linecolor": _LINE, "zeroline": False}
    return {
        "template": {},
        "paper_bgcolor": _CARD,
        "plot_bgcolor": _CARD,
        "font": {"color": _QUIET, "size": 11, "family": "system-ui, sans-serif"},
        "margin": {"l": 8, "r": 12, "t": 26, "b": 8},
        "legend": {"orientation": "h", "y": -0.2, "font": {"color": _INK}},
        "hovermode": "closest",
        "hoverlabel": {"bgcolor": _CARD, "bordercolor": _LINE, "font": {"color": _INK}, "align": "left"},
        "uirevision": "kept",  # zoom and hidden curves survive a change between light and dark
        "xaxis": lines,
        "yaxis": lines,
    }


def _layout(figure: Figure) -> dict[str, Any]:
    spec = figure.spec
    xs = [x for series in figure.series for x in series.x]
    first, last = math.ceil(math.log2(min(xs))), math.floor(math.log2(max(xs)))
    ticks = [2**power for power in range(first, last + 1, (last - first) // _MOST_TICKS + 1)]
    common = chart_layout()
    return {
        **common,
        "xaxis": {
            **common["xaxis"],
            "type": "log",
            "title": {"text": spec.x_label, "standoff": 6},
            "tickvals": ticks,
            "ticktext": [_size(tick) for tick in ticks],
            "showgrid": False,
            "automargin": True,
        },
        "yaxis": {
            **common["yaxis"],
            "type": "log" if spec.is_logarithmic else "linear",
            "title": {"text": AXES[spec.axis]},
            "rangemode": "tozero",
            "exponentformat": "none",
            "automargin": True,
            **({"tickvals": _decades(figure)} if spec.is_logarithmic else {}),
        },
    }


def _decades(figure: Figure) -> list[float]:
    """The ticks of a logarithmic axis: the fewer decades it spans, the denser they are."""
    ys = [y for series in figure.series for y in series.y] + [mark.y for mark in figure.marks]
    low, high = math.log10(min(ys)), math.log10(max(ys))
    factors = (1, 2, 5) if high - low < _FEW_DECADES else (1,)
    return [factor * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for factor in factors]


def _add_mark(plot: go.Figure, mark: Mark, *, is_logarithmic: bool) -> None:
    """A point with its tolerance as a bar, or a line across the chart with its tolerance as a band."""
    low, high = mark.tolerance
    text = f"{mark.label} ({mark.role})"
    remarks = ["published" if mark.is_measured else "derived from what is published", mark.role]
    if mark.tolerance_percent is not None:
        remarks.append(f"tolerance {mark.tolerance_percent:g} %")
    hover = "<br>".join([f"<b>{mark.label}</b>", ", ".join(remarks), *textwrap.wrap(mark.source, 46)])
    if mark.x is None:
        plot.add_hline(mark.y, line={"color": _INK, "width": 1.3, "dash": "dash"}, opacity=0.75)
        if low + high > 0:
            plot.add_hrect(mark.y - low, mark.y + high, fillcolor=_INK, opacity=0.07, line_width=0, layer="below")
    else:
        plot.add_scatter(
            x=[mark.x],
            y=[mark.y],
            mode="markers",
            showlegend=False,
            marker={"symbol": "diamond" if mark.is_measured else "circle-open", "size": 10, "color": _INK},
            error_y={
                "visible": low + high > 0,
                "array": [high],
                "arrayminus": [low],
                "color": _QUIET,
                "thickness": 1,
                "width": 4,
            },
            hovertemplate=hover + "<extra></extra>",
        )
    if mark.is_measured:
        plot.add_annotation(
            text=text,
            hovertext=hover,
            xref="paper" if mark.x is None else "x",
            x=1 if mark.x is None else math.log10(mark.x),
            y=math.log10(mark.y) if is_logarithmic else mark.y,
            xanchor="right",
            yanchor="bottom",
            showarrow=False,
            xshift=0 if mark.x is None else -6,
            yshift=0 if mark.x is None else 4,
            font={"color": _INK, "shadow": f"0 0 3px {_CARD}, 0 0 3px {_CARD}, 0 0 3px {_CARD}"},
        )


def _size(value: float) -> str:
    for unit, factor in (("M", 2**20), ("K", 2**10)):
        if value >= factor:
            return f"{value / factor:g}{unit}"
    return f"{value:g}"
