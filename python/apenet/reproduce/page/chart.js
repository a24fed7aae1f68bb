// Charts: Plotly draws what charts.py describes, in the colours of style.css.
function coloured(plot) {
  const style = getComputedStyle(root);
  return JSON.parse(JSON.stringify(plot).replace(/var\((--\w+)\)/g, (_, name) => style.getPropertyValue(name).trim()));
}

// All places first: the size of one depends on how many there are.
const charts = [["charts", data.figures], ["bars", data.tornados]].flatMap(([list, drawn]) => drawn.map((chart) => {
  const place = make("div", { class: "drawing", role: "img", "aria-label": chart.title });
  if (chart.plot.layout.height) place.style.height = `${chart.plot.layout.height}px`; // else that of style.css
  const note = chart.note ? make("p", { class: "note" }, chart.note) : null;
  byId(list).append(make("figure", { class: "chart" },
    make("h3", {}, chart.title), make("p", { class: "source" }, chart.source), place, note));
  return { place, plot: chart.plot };
}));

const CHART_OPTIONS = {
  responsive: true,
  displaylogo: false,
  showSendToCloud: false, // the page sends nothing anywhere
  modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d", "hoverClosestCartesian", "hoverCompareCartesian"]],
};

function drawCharts() {
  for (const { place, plot } of charts) {
    const { data: traces, layout } = coloured(plot);
    layout.dragmode = matchMedia("(pointer: coarse)").matches ? false : "zoom"; // a finger scrolls the page
    Plotly.react(place, traces, layout, CHART_OPTIONS);
  }
}
drawCharts();
document.addEventListener("themed", drawCharts);
