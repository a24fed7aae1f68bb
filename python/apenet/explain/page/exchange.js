// Who sends how much to whom, beside the network: choosing a rank in one marks it in the other.
class Exchange {
  constructor() {
    this.measure = 3;
    this.chosen = null;
    this.marked = null;
    const parts = [];
    if (data.pairs && data.pairs.length) parts.push(this.matrix());
    const loads = Exchange.loads();
    if (loads) this.world = new World([loads]);
    else if (data.graph && data.links.length) this.world = new Graph(data.graph, Exchange.busy());
    if (this.world) {
      if (data.link_history) this.world.element.append(this.overTime(loads));
      parts.push(this.world.element);
    } else if (data.links.length) parts.push(make("div", { class: "panel" }, make("h3", {}, "links"), Exchange.hottest()));
    if (!parts.length) return;
    const found = section("exchange", "Who sends to whom, and over which links", "", make("div", { class: "two" }, ...parts));
    if (data.hot_link && data.hot_link.pairs.length) found.append(Exchange.hot());
    if (data.pairs && Object.keys(data.link_users || {}).length) found.append(this.users());
    if (this.world && data.links.length) found.append(make("details", {}, make("summary", {}, "the busiest links"), Exchange.hottest()));
  }

  static hot() {
    const { link, busy, pairs } = data.hot_link;
    return make("p", {}, `Link ${link}, busy for ${percent(busy)} of the time, carries: ${Exchange.pairs(pairs)}.`);
  }

  static pairs(pairs) {
    return pairs.slice(0, 24).map(([from, to]) => `${from} → ${to}`).join(", ") + (pairs.length > 24 ? ` and ${pairs.length - 24} more` : "");
  }

  // The busy share of each link, by its name.
  static busy() {
    return new Map(data.links.map(([name, share]) => [name, share]));
  }

  markLinks(names) {
    if (this.world) this.world.markLinks(this.world instanceof Graph ? names : Exchange.placed(names));
  }

  // Choosing a link marks the pairs whose messages cross it.
  users() {
    const busy = Exchange.busy();
    const names = Object.keys(data.link_users).sort((one, other) => (busy.get(other) || 0) - (busy.get(one) || 0));
    const said = make("p", { class: "quiet", "aria-live": "polite" });
    const choice = make("select", { "aria-label": "link whose users are marked" },
      make("option", { value: "" }, "no link"), ...names.map((name) => make("option", { value: name }, `${name}, ${percent(busy.get(name) || 0)} busy`)));
    choice.addEventListener("change", () => {
      this.marked = data.link_users[choice.value] || null;
      said.textContent = this.marked ? `Link ${choice.value} carries messages of ${Exchange.pairs(this.marked)}.` : "";
      this.markLinks(this.marked ? [choice.value] : []);
      this.draw();
    });
    return make("div", { class: "tools" }, make("label", {}, "mark the users of ", choice), said);
  }

  // Links by name: node, dimension, direction and busy share. Fewer dimensions make a plane or a line.
  static placed(names) {
    const busy = Exchange.busy();
    const links = [];
    for (const name of names) {
      const found = /^\(([0-9]+(?:,[0-9]+){0,2})\)([+-])([xyz])$/.exec(name);
      if (!found) continue;
      const [x, y = 0, z = 0] = found[1].split(",").map(Number);
      links.push([x, y, z, "xyz".indexOf(found[3]), found[2] === "+" ? 1 : -1, busy.get(name) || 0]);
    }
    return links;
  }

  static loads() {
    const { dims } = data.machine;
    if (dims.length < 1 || dims.length > 3) return null;
    const links = Exchange.placed(data.links.map(([name]) => name));
    if (!links.length) return null;
    return { title: "links by busy share", machine: data.machine.name, dims: [...dims, 1, 1].slice(0, 3), time_us: data.time_us, of: "", links };
  }

  // The loads of one bin of the time, or of the whole run.
  overTime(loads) {
    const history = data.link_history;
    const bins = Math.max(...Object.values(history.links).map((link) => link.length));
    const whole = this.world.scale;
    const most = Math.max(...Object.values(history.links).flat(), whole);
    const said = make("span", {}, "whole run");
    const slider = make("input", { type: "range", min: -1, max: bins - 1, value: -1, "aria-label": "time of the link loads" });
    slider.addEventListener("input", () => {
      const bin = Number(slider.value);
      said.textContent = bin < 0 ? "whole run" : `${time(bin * history.bin_us)} to ${time((bin + 1) * history.bin_us)}`;
      if (!loads) {
        const then = Object.entries(history.links).map(([name, shares]) => [name, shares[bin] || 0]);
        this.world.show(bin < 0 ? Exchange.busy() : new Map(then), bin < 0 ? undefined : most);
        return;
      }
      const name = (link) => `(${link.slice(0, data.machine.dims.length)})${link[4] > 0 ? "+" : "-"}${"xyz"[link[3]]}`;
      const links = loads.links.map((link) => [...link.slice(0, 5), bin < 0 ? link[5] : (history.links[name(link)] || [])[bin] || 0]);
      this.world.loads = [{ ...loads, links }];
      this.world.fixed = bin < 0 ? undefined : most;
      this.world.touched = true;
      this.world.choose(0);
    });
    return make("label", { class: "ramp" }, "time", slider, said);
  }

  static hottest() {
    const links = [...data.links].sort((one, other) => other[1] - one[1]).slice(0, 12);
    return bars(links.map(([name, busy, sent, packets]) => ({ label: name, value: busy, text: percent(busy), title: `${bytes(sent)} in ${plain(packets)} packets` })), 1);
  }

  matrix() {
    const measures = [["bytes", 3], ["messages", 2], ["hops", 4]].filter(([, at]) => data.pairs[0].length > at);
    const buttons = make("div", { class: "group", role: "group", "aria-label": "measure" });
    for (const [name, at] of measures) {
      buttons.append(make("button", { type: "button", "aria-pressed": at === this.measure, onclick: (event) => {
        for (const button of buttons.children) button.setAttribute("aria-pressed", button === event.currentTarget);
        this.measure = at;
        this.draw();
      } }, name));
    }
    this.canvas = make("canvas", { role: "img", tabindex: "0", "aria-label": "communication matrix: a row for each sender, a column for each receiver; arrow keys choose a sender" });
    this.canvas.style.aspectRatio = "1";
    this.said = make("p", { class: "quiet", "aria-live": "polite" }, "Rows send, columns receive. Choose a row to mark its node and the links that its messages cross.");
    this.canvas.addEventListener("pointermove", (event) => this.say(event));
    this.canvas.addEventListener("click", (event) => this.choose(Math.floor((event.offsetY - 18) / this.cell())));
    this.canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.choose(((this.chosen ?? -step) + step + data.ranks) % data.ranks);
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    document.addEventListener("themed", () => this.draw());
    return make("div", { class: "panel" }, buttons, this.canvas, this.said);
  }

  cell() { return (this.canvas.clientWidth - 18) / data.ranks; }

  static place(rank) {
    return data.places.length ? `node ${data.nodes[rank]} at ${data.places[rank]}` : `node ${data.nodes[rank]}`;
  }

  choose(rank) {
    if (rank < 0 || rank >= data.ranks) return;
    this.chosen = rank;
    const own = data.pairs.filter((pair) => pair[0] === rank);
    const sum = own.reduce((all, pair) => all + pair[3], 0);
    this.said.textContent = `rank ${rank} on ${Exchange.place(rank)} sends ${bytes(sum)} to ${own.length} ranks`;
    if (this.world) {
      this.world.mark(data.nodes[rank]);
      const crossed = Object.entries(data.link_users || {}).filter(([, pairs]) => pairs.some(([from]) => from === rank));
      this.markLinks(crossed.map(([name]) => name));
    }
    this.draw();
  }

  say(event) {
    const [from, to] = [event.offsetY, event.offsetX].map((at) => Math.floor((at - 18) / this.cell()));
    const pair = data.pairs.find((one) => one[0] === from && one[1] === to);
    if (pair) this.said.textContent = `rank ${from} on ${Exchange.place(from)} to rank ${to} on ${Exchange.place(to)}: ${plain(pair[2])} messages, ${bytes(pair[3])}${pair.length > 4 ? `, ${pair[4]} links apart` : ""}`;
  }

  draw() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = width * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const cell = this.cell();
    const most = Math.max(...data.pairs.map((pair) => pair[this.measure]), 1);
    context.fillStyle = variable("--soft");
    context.fillRect(18, 18, cell * data.ranks, cell * data.ranks);
    for (const pair of data.pairs) {
      context.fillStyle = `rgb(${colour(pair[this.measure] / most)})`;
      context.fillRect(18 + pair[1] * cell, 18 + pair[0] * cell, Math.max(cell - (cell > 6 ? 1 : 0), 0.7), Math.max(cell - (cell > 6 ? 1 : 0), 0.7));
    }
    context.strokeStyle = variable("--ink");
    for (const [from, to] of this.marked || []) context.strokeRect(18 + to * cell, 18 + from * cell, cell, cell);
    if (this.chosen !== null) {
      context.strokeStyle = variable("--ink");
      context.strokeRect(18, 18 + this.chosen * cell, cell * data.ranks, cell);
    }
    context.fillStyle = variable("--quiet");
    context.font = "10px system-ui, sans-serif";
    const step = Math.max(1, Math.ceil(data.ranks / Math.floor(width / 40)));
    for (let rank = 0; rank < data.ranks; rank += step) {
      context.fillText(rank, 18 + rank * cell, 12);
      context.fillText(rank, 0, 18 + rank * cell + Math.max(10, cell / 2 + 4));
    }
  }
}
