// Who sends how much to whom, beside the network: choosing a rank, a node or a link in one marks it in the other.
class Exchange {
  constructor() {
    this.measure = 3;
    this.chosen = [];
    this.marked = null;
    this.said = make("p", { class: "quiet", "aria-live": "polite" }, "Choose a row, a node or a link.");
    const parts = [];
    if (data.pairs && data.pairs.length) parts.push(this.matrix());
    const loads = Exchange.loads();
    if (loads) this.world = new World([loads]);
    else if (data.graph && data.links.length) this.world = new Graph(data.graph, Exchange.busy());
    if (this.world) {
      if (data.link_history) this.world.element.append(this.overTime(loads));
      parts.push(this.world.element);
    } else if (data.links.length) parts.push(make("div", { class: "panel" }, make("h3", {}, "links"), this.hottest()));
    if (!parts.length) return;
    const found = section("exchange", "Who sends to whom, and over which links", "", make("div", { class: "two" }, ...parts));
    if (data.hot_link && data.hot_link.pairs.length) found.append(Exchange.hot());
    if (!this.canvas) found.append(this.said);
    if (!this.world) return;
    this.interact();
    found.append(this.links(), make("details", {}, make("summary", {}, "the busiest links"), this.hottest()));
  }

  // Nodes and links of the picture, by pointer and by key.
  interact() {
    const { canvas } = this.world;
    canvas.tabIndex = 0;
    canvas.setAttribute("aria-label", `${canvas.getAttribute("aria-label")}; left and right choose a node, up and down a link, Escape none`);
    this.world.picked = ({ node, links }) => {
      if (node !== undefined) this.chooseNode(node);
      else if (links) this.chooseCable(links.map((link) => (typeof link === "string" ? link : Exchange.named(link))));
    };
    canvas.addEventListener("keydown", (event) => {
      const node = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const link = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      if (node) this.chooseNode(Exchange.next(this.node, node, this.world.graph ? this.world.graph.nodes.length : this.world.places().length));
      else if (link) this.chooseLink(this.names[Exchange.next(this.names.indexOf(this.link), link, this.names.length)]);
      else if (event.key === "Escape") this.chooseNothing();
      else return;
      event.preventDefault();
    });
  }

  // The place after or before one of `count`, the first or last if there is none.
  static next(at, step, count) {
    return at === undefined || at < 0 ? (step > 0 ? 0 : count - 1) : (at + step + count) % count;
  }

  static hot() {
    const { link, busy, pairs } = data.hot_link;
    return make("p", {}, `Link ${link}, busy for ${percent(busy)} of the time, carries: ${Exchange.pairs(pairs)}.`);
  }

  static pairs(pairs, most = 24) {
    return pairs.slice(0, most).map(([from, to]) => `${from} → ${to}`).join(", ") + (pairs.length > most ? ` and ${pairs.length - most} more` : "");
  }

  // A link of the torus by its name.
  static named(link) {
    return `(${link.slice(0, data.machine.dims.length)})${link[4] > 0 ? "+" : "-"}${"xyz"[link[3]]}`;
  }

  // The busy share of each link, by its name.
  static busy() {
    return new Map(data.links.map(([name, share]) => [name, share]));
  }

  // A list of the links, the busiest first.
  links() {
    const most = 1000;
    this.names = data.links.map(([name, busy]) => [busy, name]).sort(([one], [other]) => other - one).map(([, name]) => name).slice(0, most);
    const busy = Exchange.busy();
    this.choice = make("select", { "aria-label": "link whose users are marked" },
      make("option", { value: "" }, "no link"), ...this.names.map((name) => make("option", { value: name }, `${name}, ${percent(busy.get(name) || 0)} busy`)));
    this.choice.addEventListener("change", () => (this.choice.value ? this.chooseLink(this.choice.value) : this.chooseNothing()));
    return make("div", { class: "tools" }, make("label", {}, "mark the users of ", this.choice));
  }

  // The busier direction of a cable, then its other links.
  chooseCable(names) {
    const busy = Exchange.busy();
    const used = names.filter((name) => busy.has(name)).sort((one, other) => busy.get(other) - busy.get(one));
    if (used.length) this.chooseLink(used[Exchange.next(used.indexOf(this.link), 1, used.length)]);
    else this.say(`link ${names.join(", ")}: no packet crossed it`, { links: names });
  }

  chooseLink(name) {
    const users = (data.link_users || {})[name];
    const share = `link ${name}: ${percent(Exchange.busy().get(name) || 0)} of the time busy`;
    const known = Object.keys(data.link_users || {}).length > 0;
    const carries = users ? `, carries messages of ${Exchange.pairs(users)}` : known ? ", no pair of ranks is routed over it" : ", whose messages it carries is not known";
    this.say(share + carries, { link: name, links: [name], pairs: users, nodes: (users || []).flat().map((rank) => data.nodes[rank]) });
  }

  chooseNode(node) {
    const ranks = data.nodes.flatMap((place, rank) => (place === node ? [rank] : []));
    if (ranks.length) this.choose(ranks);
    else this.say(`node ${node}: no rank is on it`, { nodes: [node] });
    this.node = node;
  }

  chooseNothing() { this.say("Choose a row, a node or a link.", {}); }

  // Says what is chosen, and marks it in both pictures.
  say(text, { ranks = [], pairs = null, nodes = [], links = [], link = "" }) {
    this.said.textContent = text;
    this.chosen = ranks;
    this.marked = pairs;
    this.link = link;
    this.node = nodes.length === 1 ? nodes[0] : undefined;
    if (this.choice) this.choice.value = this.names.includes(link) ? link : "";
    if (this.world) {
      this.world.mark(nodes);
      this.world.markLinks(this.world instanceof Graph ? links : Exchange.placed(links));
    }
    if (this.canvas) this.draw();
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
      const links = loads.links.map((link) => [...link.slice(0, 5), bin < 0 ? link[5] : (history.links[Exchange.named(link)] || [])[bin] || 0]);
      this.world.loads = [{ ...loads, links }];
      this.world.fixed = bin < 0 ? undefined : most;
      this.world.touched = true;
      this.world.choose(0);
    });
    return make("label", { class: "ramp" }, "time", slider, said);
  }

  hottest() {
    const links = [...data.links].sort((one, other) => other[1] - one[1]).slice(0, 12);
    const users = data.link_users || {};
    const button = (name) => (this.world ? make("button", { type: "button", onclick: () => this.chooseLink(name) }, name) : name);
    return table(["link", "busy", "packets", "carries messages of"], links.map(([name, busy, sent, packets]) => [
      button(name), percent(busy), `${plain(packets)}, ${bytes(sent)}`, users[name] ? Exchange.pairs(users[name], 6) : "–"]));
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
    this.canvas = make("canvas", { role: "img", tabindex: "0", "aria-label": "communication matrix: a row for each sender, a column for each receiver; up and down choose a sender, left and right one of its receivers" });
    this.canvas.style.aspectRatio = "1";
    this.said.textContent = "Rows send, columns receive. Choose a row, a field, a node or a link to mark what belongs to it.";
    const at = (place) => Math.floor((place - 18) / this.cell());
    this.canvas.addEventListener("click", (event) => {
      const [from, to] = [at(event.offsetY), at(event.offsetX)];
      const pair = data.pairs.find((one) => one[0] === from && one[1] === to);
      if (pair) this.choosePair(pair);
      else if (from >= 0 && from < data.ranks) this.choose([from]);
    });
    this.canvas.addEventListener("keydown", (event) => {
      const row = { ArrowUp: -1, ArrowDown: 1 }[event.key];
      const column = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const own = data.pairs.filter((pair) => pair[0] === this.chosen[0]);
      if (row) this.choose([Exchange.next(this.chosen[0], row, data.ranks)]);
      else if (column && own.length) this.choosePair(own[Exchange.next(own.indexOf(this.pair), column, own.length)]);
      else if (event.key === "Escape") this.chooseNothing();
      else if (!column) return;
      event.preventDefault();
    });
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    document.addEventListener("themed", () => this.draw());
    return make("div", { class: "panel" }, buttons, this.canvas, this.said);
  }

  cell() { return (this.canvas.clientWidth - 18) / data.ranks; }

  static place(rank) {
    return data.places.length ? `node ${data.nodes[rank]} at ${data.places[rank]}` : `node ${data.nodes[rank]}`;
  }

  // All that these ranks, which are on one node, send.
  choose(ranks) {
    const own = data.pairs ? data.pairs.filter((pair) => ranks.includes(pair[0])) : [];
    const sum = own.reduce((all, pair) => all + pair[3], 0);
    const who = ranks.length === 1 ? `rank ${ranks[0]} on` : `ranks ${ranks.join(", ")} on`;
    const count = new Set(own.map((pair) => pair[1])).size;
    const sent = data.pairs ? ` ${ranks.length === 1 ? "sends" : "send"} ${bytes(sum)} to ${count} ${count === 1 ? "rank" : "ranks"}` : "";
    this.say(`${who} ${Exchange.place(ranks[0])}${sent}`, { ranks, nodes: [data.nodes[ranks[0]]], links: Exchange.crossed((from) => ranks.includes(from)) });
  }

  choosePair(pair) {
    const [from, to, count, sum, links] = pair;
    this.say(`rank ${from} on ${Exchange.place(from)} to rank ${to} on ${Exchange.place(to)}: ${plain(count)} messages, ${bytes(sum)}${links === undefined ? "" : `, ${links} links apart`}`,
      { ranks: [from], pairs: [pair], nodes: [data.nodes[from], data.nodes[to]], links: Exchange.crossed((one, other) => one === from && other === to) });
    this.pair = pair;
  }

  // The links that messages of such pairs of ranks may cross.
  static crossed(isMeant) {
    return Object.entries(data.link_users || {}).filter(([, pairs]) => pairs.some(([from, to]) => isMeant(from, to))).map(([name]) => name);
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
    for (const rank of this.chosen) context.strokeRect(18, 18 + rank * cell, cell * data.ranks, cell);
    context.fillStyle = variable("--quiet");
    context.font = "10px system-ui, sans-serif";
    const step = Math.max(1, Math.ceil(data.ranks / Math.floor(width / 40)));
    for (let rank = 0; rank < data.ranks; rank += step) {
      context.fillText(rank, 18 + rank * cell, 12);
      context.fillText(rank, 0, 18 + rank * cell + Math.max(10, cell / 2 + 4));
    }
  }
}
