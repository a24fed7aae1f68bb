// Charts: sizes along x in powers of two, our curves as lines, published values as marks.
const SVG = "http://www.w3.org/2000/svg";
function draw(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function niceStep(span, count) {
  const rough = span / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => step >= rough);
}

class Chart {
  constructor(figure) {
    this.figure = figure;
    this.hidden = new Set();
    this.element = make("figure", { class: "chart", style: "margin:0" });
    this.holder = make("div");
    this.readout = make("p", { class: "readout" });
    this.element.append(make("h3", {}, figure.title), make("p", { class: "source" }, figure.source));
    this.element.append(this.holder, this.readout, this.legend());
    if (figure.note) this.element.append(make("p", { class: "note" }, figure.note));
    new ResizeObserver(() => this.render()).observe(this.holder);
  }

  legend() {
    const legend = make("div", { class: "legend" });
    this.figure.series.forEach((series, number) => {
      legend.append(make("button", { type: "button", "aria-pressed": "true", onclick: (event) => {
        if (!this.hidden.delete(number)) this.hidden.add(number);
        event.currentTarget.setAttribute("aria-pressed", !this.hidden.has(number));
        this.render();
      } }, make("i", { style: `background:var(--c${number})` }), series.label));
    });
    return legend;
  }

  // Ranges of the axes, from curves and marks.
  ranges() {
    const { series, marks, log_y: isLog } = this.figure;
    const xs = series.flatMap((one) => one.x).concat(marks.filter((mark) => mark.x !== null).map((mark) => mark.x));
    const ys = series.flatMap((one) => one.y).concat(marks.map((mark) => mark.y));
    const top = Math.max(...ys);
    return { x0: Math.min(...xs), x1: Math.max(...xs), y0: isLog ? Math.min(...ys) * 0.8 : 0, y1: top * (isLog ? 1.25 : 1.08) };
  }

  render() {
    const width = Math.max(this.holder.clientWidth, 240);
    const height = Math.round(Math.min(width * 0.68, 320));
    const pad = { left: 50, right: 12, top: 20, bottom: 38 };
    const range = this.ranges();
    const isLog = this.figure.log_y;
    const scaleY = isLog ? Math.log10 : (value) => value;
    const px = (x) => pad.left + (Math.log2(x) - Math.log2(range.x0)) / (Math.log2(range.x1) - Math.log2(range.x0) || 1) * (width - pad.left - pad.right);
    const py = (y) => height - pad.bottom - (scaleY(y) - scaleY(range.y0)) / (scaleY(range.y1) - scaleY(range.y0)) * (height - pad.top - pad.bottom);
    const svg = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": this.figure.title });
    this.axes(svg, { width, height, pad, range, px, py });
    this.figure.series.forEach((series, number) => {
      if (this.hidden.has(number)) return;
      const path = series.x.map((x, at) => `${at ? "L" : "M"}${px(x).toFixed(1)} ${py(series.y[at]).toFixed(1)}`).join("");
      svg.append(draw("path", { class: "curve", d: path, stroke: `var(--c${number})` }));
      series.x.forEach((x, at) => svg.append(draw("circle", { cx: px(x), cy: py(series.y[at]), r: 2.4, fill: `var(--c${number})` })));
    });
    this.marks(svg, { width, pad, px, py });
    if (this.figure.no_data) svg.append(draw("text", { class: "nodata", x: pad.left + 6, y: pad.top + 12 }, this.figure.no_data));
    svg.addEventListener("pointermove", (event) => this.point(event, svg, { width, height, pad, px }));
    this.cross = draw("line", { class: "cross", y1: pad.top, y2: height - pad.bottom, visibility: "hidden" });
    svg.append(this.cross);
    this.holder.replaceChildren(svg);
  }

  axes(svg, { width, height, pad, range, px, py }) {
    const ticks = [];
    if (this.figure.log_y) {
      for (let power = Math.floor(Math.log10(range.y0)); power <= Math.log10(range.y1); power += 1) {
        for (const factor of range.y1 / range.y0 > 300 ? [1] : range.y1 / range.y0 > 20 ? [1, 3] : [1, 2, 5]) ticks.push(factor * 10 ** power);
      }
    } else {
      const step = niceStep(range.y1, 5);
      for (let value = 0; value <= range.y1; value += step) ticks.push(value);
    }
    for (const value of ticks.filter((tick) => tick >= range.y0 && tick <= range.y1)) {
      svg.append(draw("line", { class: "grid", x1: pad.left, x2: width - pad.right, y1: py(value), y2: py(value) }));
      svg.append(draw("text", { class: "axis", x: pad.left - 6, y: py(value) + 4, "text-anchor": "end" }, digits(value)));
    }
    const octaves = Math.log2(range.x1 / range.x0);
    const every = Math.max(1, Math.ceil(octaves / Math.max(3, Math.floor((width - pad.left) / 52))));
    for (let power = Math.ceil(Math.log2(range.x0)); power <= Math.log2(range.x1); power += every) {
      svg.append(draw("text", { class: "axis", x: px(2 ** power), y: height - pad.bottom + 15, "text-anchor": "middle" }, size(2 ** power)));
    }
    svg.append(draw("text", { class: "axis", x: width - pad.right, y: height - 4, "text-anchor": "end" }, this.figure.x_label));
    svg.append(draw("text", { class: "axis", x: 2, y: 11 }, this.figure.y_label));
  }

  // On a phone, the value is enough.
  markLabel(mark, width) {
    return `${width < 430 ? mark.label.replace(/^.*: /, "") : mark.label} (${mark.role})`;
  }

  marks(svg, { width, pad, px, py }) {
    const taken = [];
    // From the top down: a label that finds its place taken goes below its line.
    for (const mark of [...this.figure.marks].sort((one, other) => other.y - one.y)) {
      const y = py(mark.y);
      if (mark.x === null) {
        svg.append(draw("line", { class: "markline", x1: pad.left, x2: width - pad.right, y1: y, y2: y }));
        let labelY = y - 4;
        while (taken.some((other) => Math.abs(other - labelY) < 12)) labelY += 13;
        taken.push(labelY);
        svg.append(draw("text", { class: "marktext", x: width - pad.right - 2, y: labelY, "text-anchor": "end" }, this.markLabel(mark, width)));
      } else if (mark.is_measured) {
        const x = px(mark.x);
        svg.append(draw("path", { class: "markpoint", d: `M${x} ${y - 7}L${x + 7} ${y}L${x} ${y + 7}L${x - 7} ${y}Z` }));
        svg.append(draw("text", { class: "marktext", x: x - 10, y: y - 9, "text-anchor": "end" }, this.markLabel(mark, width)));
      } else {
        const element = draw("circle", { class: "markopen", cx: px(mark.x), cy: y, r: 5 });
        element.append(draw("title", {}, mark.label));
        svg.append(element);
      }
    }
  }

  point(event, svg, { width, px }) {
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * width;
    const xs = [...new Set(this.figure.series.flatMap((one) => one.x))];
    const nearest = xs.reduce((best, x) => (Math.abs(px(x) - at) < Math.abs(px(best) - at) ? x : best), xs[0]);
    this.cross.setAttribute("x1", px(nearest));
    this.cross.setAttribute("x2", px(nearest));
    this.cross.setAttribute("visibility", "visible");
    const values = this.figure.series.flatMap((one, number) => {
      const place = one.x.indexOf(nearest);
      return place < 0 || this.hidden.has(number) ? [] : [`${one.label} ${digits(one.y[place])}`];
    });
    this.readout.textContent = `${size(nearest)}: ${values.join(" · ")}`;
  }
}

for (const figure of data.figures) byId("charts").append(new Chart(figure).element);
