// What the pages of runs and of measurements have in common: numbers for people, parts, bars, tables.
const time = (us) => {
  if (us === null || us === undefined) return "–";
  if (us < 1e3) return `${Number(us.toPrecision(4))} us`;
  if (us < 1e6) return `${Number((us / 1e3).toPrecision(4))} ms`;
  return `${Number((us / 1e6).toPrecision(4))} s`;
};
const percent = (share) => `${Math.abs(share) >= 0.1 ? (100 * share).toFixed(0) : (100 * share).toFixed(1)} %`;
const plain = (count) => count.toLocaleString("en").replaceAll(",", " ");
const bytes = (count) => {
  for (const [unit, factor] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]]) {
    if (count >= factor) return `${Number((count / factor).toPrecision(4))} ${unit}`;
  }
  return `${count} B`;
};

function section(id, title, text, ...children) {
  byId("nav").append(make("a", { href: `#${id}` }, title));
  const element = make("section", { id }, make("h2", {}, title), text ? make("p", { class: "quiet" }, text) : null, ...children);
  byId("main").append(element);
  return element;
}

// Rows of label, bar and value; `of` is the value of a full bar.
function bars(rows, of) {
  return make("div", { class: "bars" }, ...rows.map(({ label, value, text, colour, kind, title }) => {
    const bar = make("i");
    bar.style.width = `${Math.max(0, Math.min(100, (100 * value) / of))}%`;
    if (colour) bar.style.background = `var(${colour})`;
    return make("div", { class: `line ${kind || ""}`, title }, make("span", {}, label), make("div", { class: "track" }, bar), make("b", {}, text));
  }));
}

function table(head, rows) {
  return make("div", { class: "wide" }, make("table", { class: "plain" },
    make("thead", {}, make("tr", {}, ...head.map((cell) => make("th", { scope: "col" }, cell)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell instanceof Node ? cell : String(cell))))))));
}

function shape(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
