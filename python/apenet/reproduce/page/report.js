// What was not asked for has no place in the page.
for (const [section, content] of [["figures", data.figures], ["sensitivity", data.tornados], ["layers", data.layers], ["torus", data.loads]]) {
  if (content.length > 0) continue;
  byId(section).hidden = true;
  document.querySelector(`nav a[href="#${section}"]`).hidden = true;
}

byId("version").textContent = data.version;

for (const [target, title] of [["hard", "hard targets met"], ["soft", "soft targets met"], ["shape", "shapes hold"],
    ["outside", "outside values met"]]) {
  const asked = data.rows.filter((row) => row.target === target);
  const open = asked.filter((row) => row.verdict === "n/a").length;
  const met = asked.filter((row) => row.verdict === "pass").length;
  const mood = asked.length === 0 ? "" : met === asked.length ? " good" : target === "hard" ? " bad" : "";
  byId("tiles").append(make("div", { class: "tile" + mood }, make("b", {}, `${met} of ${asked.length}`),
    make("span", {}, title + (open > 0 ? `, ${open} not measured` : ""))));
}
for (const [name, title] of [["predicted", "predictions right"], ["assumed", "met with assumed numbers"]]) {
  const judged = data.rows.filter((row) => row.class === name && row.verdict !== "n/a");
  const good = judged.filter((row) => row.verdict === "pass").length;
  byId("tiles").append(make("div", { class: "tile" }, make("b", {}, `${good} of ${judged.length}`), make("span", {}, title)));
}

// Filters: one group of buttons for each property, one of each pressed.
const chosen = { target: "all", class: "all", verdict: "all" };
const GROUPS = {
  target: ["all", "hard", "soft", "shape", "outside", "none"],
  class: ["all", "fitted", "follows", "assumed", "predicted"],
  verdict: ["all", "pass", "miss", "n/a"],
};
for (const [property, values] of Object.entries(GROUPS)) {
  const group = make("div", { class: "group", role: "group", "aria-label": property });
  for (const value of values) {
    const label = value === "all" ? `any ${property}` : value === "none" ? "no target" : value;
    group.append(make("button", { type: "button", "aria-pressed": value === "all", onclick: (event) => {
      chosen[property] = value;
      for (const button of group.children) button.setAttribute("aria-pressed", button === event.currentTarget);
      showRows();
    } }, label));
  }
  byId("filters").append(group);
}

// The tolerance as a band around the published value, the simulated one as a mark in it.
function gauge(row) {
  if (row.error_pct === null || row.tolerance_pct === null || row.target === "none") return null;
  const span = Math.max(row.tolerance_pct * 2, 1);
  const at = 50 + Math.max(-1, Math.min(1, row.error_pct / span)) * 48;
  const half = row.tolerance_pct / span * 48;
  const from = row.bound === "upper" ? 0 : 50 - half;
  const to = row.bound === "lower" ? 100 : 50 + half;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "gauge");
  svg.setAttribute("viewBox", "0 0 100 6");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.innerHTML = `<rect x="0" y="2.4" width="100" height="1.2" fill="var(--line)"/>` +
    `<rect x="${from}" y="1.2" width="${to - from}" height="3.6" fill="var(--good)" opacity=".25"/>` +
    `<rect x="49.85" y="0.6" width=".3" height="4.8" fill="var(--quiet)"/>` +
    `<rect x="${at - 0.7}" y="0" width="1.4" height="6" fill="var(--${row.verdict === "pass" ? "good" : "bad"})"/>`;
  return svg;
}

function rowElement(row) {
  const bound = { upper: "< ", lower: "> " }[row.bound] || "";
  const number = typeof row.published === "number";
  const unit = row.unit === "-" ? "" : ` ${row.unit}`;
  const published = number ? `${bound}${digits(row.published)}${unit}` : row.published;
  const error = row.error_pct === null ? null : make("span", {}, "error ", make("b", {}, `${row.error_pct >= 0 ? "+" : ""}${row.error_pct.toFixed(1)} %`));
  const at = row.size_bytes === null ? "" : ` at ${sizeInBytes(row.size_bytes)}`;
  const layer = row.layer ? `, ${row.layer}` : "";
  const holds = data.holds[`${row.key}@${row.size_bytes ?? "None"}`];
  const more = make("details", {}, make("summary", {}, "source"));
  more.append(make("div", {}, row.source));
  if (row.note) more.append(make("div", {}, row.note));
  if (row.reason) more.append(make("div", {}, row.reason));
  return make("article", { class: "row" },
    make("div", { class: "what" }, row.key.replace(/^[^.]*\./, ""), make("br"), make("small", {}, row.test + layer + at)),
    make("div", { class: "verdict " + row.verdict.replace("/", "") }, row.verdict),
    make("div", { class: "numbers" },
      make("span", {}, "published ", make("b", {}, published)),
      row.simulated === null ? make("span", {}, row.reason) : make("span", {}, "simulated ", make("b", {}, `${digits(row.simulated)}${unit}`)),
      error,
      row.class ? make("span", { class: "tag" }, row.class) : null,
      holds === undefined || holds === null ? null : make("span", {}, `passes in ${holds.toFixed(0)} % of plausible machines`),
      make("span", { class: "tag" }, row.target === "none" ? "no target" : row.target)),
    gauge(row), more);
}

function showRows() {
  const fits = data.rows.filter((row) => Object.entries(chosen).every(([name, value]) => value === "all" || row[name] === value));
  byId("count").textContent = `${fits.length} of ${data.rows.length} values`;
  const place = byId("rows");
  place.replaceChildren();
  for (const machine of new Set(fits.map((row) => row.machine))) {
    const title = machine === "-" ? "GASNet" : machine + (data.machines[machine] ? ` – ${data.machines[machine]}` : "");
    place.append(make("div", { class: "machine" }, title));
    place.append(...fits.filter((row) => row.machine === machine).map(rowElement));
  }
}
showRows();

for (const table of data.layers) {
  const head = make("tr", {}, make("th", {}, "layer"));
  for (const bytes of table.sizes_bytes) head.append(make("th", {}, sizeInBytes(bytes)), make("th", {}, "over card"));
  const body = table.rows.map((row) => {
    const line = make("tr", {}, make("th", {}, row.layer));
    row.times_us.forEach((time, i) => line.append(make("td", {}, time === null ? "–" : time.toFixed(3)),
      make("td", {}, row.over_us[i] === null || row.layer === "card" ? "" : row.over_us[i].toFixed(3))));
    return line;
  });
  byId("overheads").append(make("h3", {}, `${table.machine} – ${table.title}`),
    make("div", { class: "wide" }, make("table", {}, make("thead", {}, head), make("tbody", {}, ...body))),
    make("p", { class: "quiet" }, table.published.length === 0 ? "No latency is published as one number." : `Published: ${table.published.join("; ")}.`));
}

for (const [machine, texts] of Object.entries(data.unknown)) {
  byId("open").append(make("dt", {}, machine), make("dd", {}, texts.join("; ")));
}

if (data.loads.length > 0) byId("loads").append(new World(data.loads).element);
