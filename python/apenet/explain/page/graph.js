// A network that is no torus: switches in levels or in a ring, a line for all cables between two of them, coloured by
// how busy their busiest direction was. data.graph has places of switches and nodes, and cables with their links.
class Graph {
  constructor(graph, busy) {
    this.graph = graph;
    this.canvas = make("canvas", { role: "img", "aria-label": "switches, nodes and cables, coloured by load" });
    this.text = make("p", { class: "quiet" });
    this.most = make("span");
    this.bar = make("i");
    this.element = make("div", { class: "world" }, this.canvas, make("div", { class: "ramp" }, make("span", {}, "idle"), this.bar, this.most), this.text);
    const points = [...graph.routers, ...graph.nodes];
    this.low = [0, 1].map((axis) => Math.min(...points.map((point) => point[axis])));
    this.high = [0, 1].map((axis) => Math.max(...points.map((point) => point[axis])));
    this.marked = new Set();
    this.canvas.addEventListener("click", (event) => this.picked && this.picked(this.at(event.offsetX, event.offsetY)));
    this.markedLinks = new Set();
    new ResizeObserver(() => this.render()).observe(this.canvas);
    this.themed = () => {
      this.bar.style.background = `linear-gradient(90deg,${[0, 0.25, 0.5, 0.75, 1].map((part) => `rgb(${colour(part)})`).join(",")})`;
      this.render();
    };
    document.addEventListener("themed", this.themed);
    this.show(busy);
    this.themed();
  }

  // busy: the share of the time by link; most: the share of the ramp's end, if it is not the largest.
  show(busy, most) {
    this.busy = busy;
    const all = [...busy.values()];
    const largest = Math.max(...all, 0);
    this.scale = most ?? (largest || 1);
    this.most.textContent = `${(this.scale * 100).toFixed(0)} % of the time busy`;
    const mean = all.reduce((sum, value) => sum + value, 0) / Math.max(all.length, 1);
    this.text.textContent = `${data.machine.name}, ${data.machine.shape}: busiest link ${(largest * 100).toFixed(1)} %, mean ${(mean * 100).toFixed(1)} %.`;
    this.render();
  }

  mark(nodes) {
    this.marked = new Set(nodes);
    this.render();
  }

  // What is drawn at a place of the picture: a node's number, the names of a cable's links, or nothing.
  at(x, y) {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const [nodes, routers] = [this.graph.nodes, this.graph.routers].map((points) => points.map((point) => this.place(point, width, height)));
    const node = nearest(nodes.map((place) => Math.hypot(place[0] - x, place[1] - y)), 8);
    if (node !== null) return { node };
    const cable = nearest(this.graph.cables.map(([from, to]) => distance([routers[from], routers[to]], x, y)), 8);
    return cable === null ? {} : { links: this.graph.cables[cable][2] };
  }

  markLinks(names) {
    this.markedLinks = new Set(names);
    this.render();
  }

  place([x, y], width, height) {
    const part = (value, axis) => (this.high[axis] > this.low[axis] ? (value - this.low[axis]) / (this.high[axis] - this.low[axis]) : 0.5);
    return [14 + part(x, 0) * (width - 28), height - 14 - part(y, 1) * (height - 28)];
  }

  render() {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!width || !this.busy) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const ink = getComputedStyle(root).getPropertyValue("--ink");
    const line = (from, to, style, thickness) => {
      context.strokeStyle = style;
      context.lineWidth = thickness;
      context.beginPath();
      context.moveTo(...from);
      context.lineTo(...to);
      context.stroke();
    };
    const routers = this.graph.routers.map((point) => this.place(point, width, height));
    const nodes = this.graph.nodes.map((point) => this.place(point, width, height));
    nodes.forEach((place, node) => line(place, routers[this.graph.nodes[node][2]], `rgba(${colour(0)},0.5)`, 0.6));
    const shares = this.graph.cables.map(([, , names]) => Math.max(...names.map((name) => this.busy.get(name) || 0)) / this.scale);
    const order = shares.map((_, cable) => cable).sort((one, other) => shares[one] - shares[other]);
    for (const cable of order) {
      const [from, to, names] = this.graph.cables[cable];
      if (names.some((name) => this.markedLinks.has(name))) line(routers[from], routers[to], ink, 8);
      line(routers[from], routers[to], `rgb(${colour(shares[cable])})`, 0.8 + 2.6 * shares[cable]);
    }
    context.fillStyle = ink;
    const dot = ([x, y], radius) => {
      context.beginPath();
      context.arc(x, y, radius, 0, 7);
      context.fill();
    };
    nodes.forEach((place, node) => dot(place, this.marked.has(node) ? 7 : 1.5));
    routers.forEach(([x, y]) => context.fillRect(x - 3, y - 3, 6, 6));
  }
}
