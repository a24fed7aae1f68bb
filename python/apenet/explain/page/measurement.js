// The page of a measurement: a figure for each value over what was varied, and all numbers in a table.
const UNITS = { time_us: "time (us)", virtual_time_us: "virtual time (us)", bandwidth_mib_s: "bandwidth (MiB/s)", rate_per_s: "messages per second", size_bytes: "size (B)", offered: "offered load (flits per node and flit time)", accepted: "accepted load (flits per node and flit time)", packet_latency_cycles: "latency of packets (cycles)", network_latency_cycles: "latency in the network (cycles)" };
const titleOf = (name) => UNITS[name] || name;
const columnOf = (name) => data.columns.indexOf(name);
const valueOf = (row, name) => data.rows[row] && data.rows[row][columnOf(name)];
const shownValue = (name, value) => {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return name === "size_bytes" ? sizeInBytes(value) : digits(value);
};

// A scale is logarithmic if its values are positive and span more than a factor of 20.
function scale(values, begin, end) {
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const isLog = least > 0 && most / least > 20;
  const low = isLog ? Math.log2(least) : Math.min(0, least);
  const high = isLog ? Math.log2(most) : most;
  const place = (value) => begin + ((end - begin) * ((isLog ? Math.log2(value) : value) - low)) / (high - low || 1);
  const ticks = [];
  if (isLog) {
    const step = Math.max(1, Math.ceil((high - low) / 4));
    for (let power = Math.ceil(low - 1e-9); power <= high + 1e-9; power += step) ticks.push(2 ** power);
  } else {
    const raw = (high - low || 1) / 4;
    const unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((factor) => factor * unit).find((one) => one >= raw);
    for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) ticks.push(Number(at.toPrecision(6)));
  }
  return { place, ticks };
}

function figure(name) {
  const [left, right, top, bottom] = [58, 350, 12, 214];
  const curves = data.curves.map((curve) => ({ ...curve, points: curve.rows
    .map((row) => [valueOf(row, data.over), valueOf(row, name)]).filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y)).sort((a, b) => a[0] - b[0]) }))
    .filter((curve) => curve.points.length);
  if (!curves.length) return null;
  const all = curves.flatMap((curve) => curve.points);
  const across = scale(all.map(([x]) => x), left, right);
  const up = scale(all.map(([, y]) => y), bottom, top);
  const drawing = shape("svg", { viewBox: "0 0 360 260", class: "curves", role: "img", "aria-label": `${titleOf(name)} over ${titleOf(data.over)}; the numbers are in the table below` });
  for (const tick of up.ticks) {
    drawing.append(shape("line", { x1: left, x2: right, y1: up.place(tick), y2: up.place(tick), class: "grid" }));
    drawing.append(shape("text", { x: left - 5, y: up.place(tick) + 4, class: "end" }, shownValue(name, tick)));
  }
  for (const tick of across.ticks) {
    drawing.append(shape("line", { x1: across.place(tick), x2: across.place(tick), y1: top, y2: bottom, class: "grid" }));
    drawing.append(shape("text", { x: across.place(tick), y: bottom + 16, class: "middle" }, data.over === "size_bytes" ? size(tick) : digits(tick)));
  }
  drawing.append(shape("text", { x: (left + right) / 2, y: 252, class: "middle" }, titleOf(data.over)));
  curves.forEach((curve, number) => {
    const colour = `color: var(--c${number % 6})`;
    const dashes = number < 6 ? "none" : "5 3";
    const places = curve.points.map(([x, y]) => `${across.place(x).toFixed(1)},${up.place(y).toFixed(1)}`);
    drawing.append(shape("polyline", { points: places.join(" "), style: colour, class: "curve", "stroke-dasharray": dashes }));
    curve.points.forEach(([x, y], point) => {
      const [cx, cy] = places[point].split(",");
      drawing.append(shape("circle", { cx, cy, r: 2.6, style: colour, class: "mark" }, shape("title", {}, `${curve.name ? `${curve.name}: ` : ""}${shownValue(name, y)} at ${shownValue(data.over, x)}`)));
    });
  });
  return make("div", { class: "panel" }, make("h3", {}, titleOf(name)), drawing);
}

byId("version").textContent = data.version;
byId("subject").textContent = data.command || data.title;
byId("verdict").textContent = data.verdict.text;
byId("basis").textContent = data.missing;
if (data.warnings.length) byId("basis").after(make("ul", { class: "quiet warnings" }, ...data.warnings.map((text) => make("li", { class: "word" }, text))));
const figures = data.figures.map(figure).filter((one) => one !== null);
if (figures.length) {
  const named = data.curves.filter((curve) => curve.name);
  const legend = make("div", { class: "legend" }, ...named.map((curve) => {
    const mark = make("i");
    mark.style.background = `var(--c${data.curves.indexOf(curve) % 6})`;
    return make("span", {}, mark, data.curves.indexOf(curve) < 6 ? curve.name : `${curve.name} (dashed)`);
  }), data.curves_left_out ? make("span", {}, `${data.curves_left_out} more in the table`) : null);
  section("curves", "Curves", `Over ${titleOf(data.over)}. Axes are logarithmic where the values span more than a factor of 20.`, named.length ? legend : null, make("div", { class: "two" }, ...figures));
}
section("numbers", "All numbers", data.rows_left_out ? `The first ${data.rows.length}; ${data.rows_left_out} more are in the file.` : "",
  table(data.columns.map(titleOf), data.rows.map((row) => row.map((value, column) => shownValue(data.columns[column], value)))));
{
  const rows = Object.entries(data.conditions);
  if (data.command) rows.unshift(["command", data.command]);
  section("repeat", "To repeat it", "", make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", { class: "word" }, String(value))])));
}
