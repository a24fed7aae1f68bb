"""Tornado charts: how far a simulated value moves when one assumed number goes to an end of its range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from apenet.reproduce.charts import chart_layout
from apenet.reproduce.rows import Row

_MOST_BARS = 10
_LINE_PIXELS = 26
_FRAME_PIXELS = 110


def tornado(row: Row, sensitivity: dict[str, Any]) -> dict[str, Any] | None:
    """The chart of a row, as `charts.chart` makes those of the figures; None where no assumption moves the value.

    `sensitivity` is the row's entry in the shipped file.
    """
    from plotly import graph_objects as go  # noqa: PLC0415 (slow import)

    swings = sensitivity["swings"][:_MOST_BARS]
    if not swings or row.simulated is None or isinstance(row.published, str):
        return None
    at = "" if row.size_bytes is None else f" at {row.size_bytes} B"
    unit = "" if row.unit == "-" else f" ({row.unit})"
    plot = go.Figure(layout=chart_layout())
    for end, colour in (("low", "var(--c0)"), ("high", "var(--c1)")):
        known = [swing for swing in swings if swing[f"at_{end}"] is not None]
        plot.add_bar(
            name=f"{end} end of the range",
            orientation="h",
            y=[_name(swing) for swing in known],
            x=[swing[f"at_{end}"] - row.simulated for swing in known],
            base=row.simulated,
            marker={"color": colour},
            customdata=[[f"{swing[end]:g}", f"{swing[f'at_{end}']:.4g}"] for swing in known],
            hovertemplate="%{y} = %{customdata[0]}: %{customdata[1]} " + row.unit + "<extra></extra>",
        )
    plot.update_layout(
        barmode="overlay",
        legend={"y": 1, "yanchor": "bottom"},  # a share of a short chart below it would be on the axis
        height=_FRAME_PIXELS + _LINE_PIXELS * len(swings),
        xaxis={"title": {"text": f"simulated{unit}"}, "automargin": True},
        yaxis={"categoryarray": [_name(swing) for swing in reversed(swings)], "automargin": True},
    )
    plot.add_vline(row.simulated, line={"color": "var(--ink)", "width": 1})
    plot.add_vline(row.published, line={"color": "var(--ink)", "width": 1.3, "dash": "dash"})
    low, high = _allowed(row)
    if low < high:
        plot.add_vrect(low, high, fillcolor="var(--ink)", opacity=0.07, line_width=0, layer="below")
    return {
        "title": f"{row.key}{at}",
        "source": f"class: {sensitivity['found']}; passes in {sensitivity['holds_percent']:g} % of plausible machines",
        "note": "",
        "plot": plot.to_plotly_json(),
    }


def tornados(rows: Sequence[Row], shipped: dict[str, Any]) -> list[dict[str, Any]]:
    """A chart for each hard row that no parameter was fitted to."""
    entries = {(entry["key"], entry["size_bytes"]): entry for entry in shipped["rows"]}
    hard = [row for row in rows if row.target == "hard" and row.role not in ("fitted", None)]
    charts = [tornado(row, entries[row.key, row.size_bytes]) for row in hard if (row.key, row.size_bytes) in entries]
    return [chart for chart in charts if chart is not None]


def _name(swing: dict[str, Any]) -> str:
    return f"{swing['key']} (another verdict)" if swing["breaks"] else str(swing["key"])


def _allowed(row: Row) -> tuple[float, float]:
    """The values with verdict `pass`, as far as there are two ends."""
    assert not isinstance(row.published, str)  # noqa: S101 (the caller has checked)
    slack = (row.tolerance_percent or 0) / 100 * row.published
    low = row.published if row.bound == "upper" else row.published - slack
    high = row.published if row.bound == "lower" else row.published + slack
    return low, high
