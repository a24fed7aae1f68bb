// The torus in three dimensions: a line for every cable, coloured by how busy its busier direction was.
const RAMPS = {
  light: [[178, 190, 205], [94, 143, 190], [36, 130, 150], [214, 120, 40], [176, 32, 36]],
  dark: [[70, 84, 104], [52, 118, 168], [48, 170, 160], [240, 190, 70], [255, 92, 72]],
};
function colour(part) {
  const ramp = isDark() ? RAMPS.dark : RAMPS.light;
  const at = Math.min(Math.max(part, 0), 1) * (ramp.length - 1);
  const below = Math.min(Math.floor(at), ramp.length - 2);
  return ramp[below].map((value, channel) => Math.round(value + (ramp[below + 1][channel] - value) * (at - below)));
}

// The index of the least distance, if it is within reach.
function nearest(distances, reach) {
  const least = Math.min(...distances);
  return least <= reach ? distances.indexOf(least) : null;
}

// From a point to a line through points.
function distance(points, x, y) {
  return Math.min(...points.slice(1).map(([tox, toy], before) => {
    const [fromx, fromy] = points[before];
    const square = (tox - fromx) ** 2 + (toy - fromy) ** 2;
    const part = square ? Math.max(0, Math.min(1, ((x - fromx) * (tox - fromx) + (y - fromy) * (toy - fromy)) / square)) : 0;
    return Math.hypot(x - fromx - part * (tox - fromx), y - fromy - part * (toy - fromy));
  }));
}

class World {
  constructor(loads) {
    this.loads = loads;
    this.angle = { turn: 0.55, tilt: 0.42 };
    this.held = null;
    this.touched = matchMedia("(prefers-reduced-motion: reduce)").matches;
    this.canvas = make("canvas", { role: "img", "aria-label": "the torus, its links coloured by load" });
    this.text = make("p", { class: "quiet" });
    const buttons = make("div", { class: "group", role: "group", "aria-label": "run" });
    loads.forEach((load, number) => buttons.append(make("button", { type: "button", "aria-pressed": number === 0, onclick: (event) => {
      for (const button of buttons.children) button.setAttribute("aria-pressed", button === event.currentTarget);
      this.choose(number);
    } }, load.title)));
    this.most = make("span");
    this.bar = make("i");
    const ramp = make("div", { class: "ramp" }, make("span", {}, "idle"), this.bar, this.most);
    this.element = make("div", { class: "world" }, buttons, this.canvas, ramp, this.text);
    this.canvas.addEventListener("pointerdown", (event) => {
      this.held = [event.clientX, event.clientY];
      this.pressed = this.held;
      this.touched = true;
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.held) return;
      this.angle.turn += (event.clientX - this.held[0]) * 0.008;
      this.angle.tilt = Math.max(-1.4, Math.min(1.4, this.angle.tilt + (event.clientY - this.held[1]) * 0.008));
      this.held = [event.clientX, event.clientY];
      this.render();
    });
    this.canvas.addEventListener("pointerup", (event) => {
      this.held = null;
      if (this.picked && Math.hypot(event.clientX - this.pressed[0], event.clientY - this.pressed[1]) < 5) this.picked(this.at(event.offsetX, event.offsetY));
    });
    new ResizeObserver(() => this.render()).observe(this.canvas);
    document.addEventListener("themed", () => this.themed());
    this.themed = () => {
      const stops = [0, 0.25, 0.5, 0.75, 1].map((part) => `rgb(${colour(part)})`).join(",");
      this.bar.style.background = `linear-gradient(90deg,${stops})`;
      this.render();
    };
    this.choose(0);
    this.themed();
    const turn = () => {
      if (this.touched) return;
      this.angle.turn += 0.0025;
      this.render();
      requestAnimationFrame(turn);
    };
    requestAnimationFrame(turn);
  }

  // A cable of a dimension from a node upwards; the direction from its other end lies on the same cable.
  static cableOf([x, y, z, dimension, direction], dims) {
    const from = [x, y, z];
    if (direction < 0) from[dimension] = (from[dimension] + dims[dimension] - 1) % dims[dimension];
    return { from, dimension, name: `${from},${dimension}` };
  }

  choose(number) {
    const load = this.loads[number];
    const cables = new Map();
    for (const link of load.links) {
      const found = World.cableOf(link, load.dims);
      const cable = cables.get(found.name) || { ...found, busy: 0, links: [] };
      cable.busy = Math.max(cable.busy, link[5]);
      cable.links.push(link);
      cables.set(cable.name, cable);
    }
    this.load = load;
    this.cables = [...cables.values()];
    const busy = load.links.map((link) => link[5]);
    this.scale = this.fixed ?? Math.max(...this.loads.flatMap((one) => one.links.map((link) => link[5])));
    this.most.textContent = `${(this.scale * 100).toFixed(0)} % of the time busy`;
    const mean = busy.reduce((sum, value) => sum + value, 0) / busy.length;
    this.text.textContent = `${load.machine}, ${load.dims.join("×")} nodes: ${load.time_us.toFixed(1)} us${load.of ?? " an iteration"}; busiest link ` +
      `${(Math.max(...busy) * 100).toFixed(1)} %, mean ${(mean * 100).toFixed(1)} %. Drag to turn.`;
    this.render();
  }

  // Links as in `loads`, drawn with a border.
  markLinks(links) {
    this.markedCables = new Set(links.map((link) => World.cableOf(link, this.load.dims).name));
    this.touched = true;
    this.render();
  }

  // Nodes by their numbers, x fastest.
  mark(nodes) {
    this.marked = new Set(nodes);
    this.touched = true;
    this.render();
  }

  // What is drawn at a place of the picture: a node's number, the links of a cable, or nothing.
  at(x, y) {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const nodes = this.places().map((point) => this.project(point, width, height));
    const node = nearest(nodes.map((place) => Math.hypot(place[0] - x, place[1] - y)), 10);
    if (node !== null) return { node };
    const lines = this.cables.map((cable) => this.cablePoints(cable).map((point) => this.project(point, width, height)));
    const cable = nearest(lines.map((points) => distance(points, x, y)), 8);
    return cable === null ? {} : { links: this.cables[cable].links };
  }

  // The nodes in the order of their numbers.
  places() {
    const middle = this.load.dims.map((extent) => (extent - 1) / 2);
    const points = [];
    for (let z = 0; z < this.load.dims[2]; z += 1) {
      for (let y = 0; y < this.load.dims[1]; y += 1) {
        for (let x = 0; x < this.load.dims[0]; x += 1) points.push([x - middle[0], y - middle[1], z - middle[2]]);
      }
    }
    return points;
  }

  project(point, width, height) {
    const [turn, tilt] = [this.angle.turn, this.angle.tilt];
    const x = point[0] * Math.cos(turn) + point[2] * Math.sin(turn);
    const depth = -point[0] * Math.sin(turn) + point[2] * Math.cos(turn);
    const y = point[1] * Math.cos(tilt) - depth * Math.sin(tilt);
    const z = point[1] * Math.sin(tilt) + depth * Math.cos(tilt);
    const reach = this.reach();
    const scale = Math.min(width, height * 1.45) / 2 / reach * (6 / (6 + z / reach));
    return [width / 2 + x * scale, height / 2 - y * scale, z];
  }

  // From the middle to the outermost cable.
  reach() {
    return Math.hypot(...this.load.dims.map((extent) => (extent - 1) / 2)) + 0.5;
  }

  // Cables that close the ring bow outwards.
  cablePoints(cable) {
    const middle = this.load.dims.map((extent) => (extent - 1) / 2);
    const from = cable.from.map((value, dimension) => value - middle[dimension]);
    const to = [...from];
    const wraps = cable.from[cable.dimension] + 1 === this.load.dims[cable.dimension];
    if (!wraps) {
      to[cable.dimension] += 1;
      return [from, to];
    }
    to[cable.dimension] -= this.load.dims[cable.dimension] - 1;
    const side = (cable.dimension + 1) % 3;
    const points = [];
    for (let step = 0; step <= 12; step += 1) {
      const part = step / 12;
      const point = from.map((value, dimension) => value + (to[dimension] - value) * part);
      const bow = Math.sin(Math.PI * part);
      point[side] += bow * 0.42;
      point[cable.dimension] += (part < 0.5 ? 1 : -1) * Math.sin(2 * Math.PI * part) * (part < 0.5 ? 0.3 : -0.3);
      points.push(point);
    }
    return points;
  }

  render() {
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const reach = this.reach();
    const lines = this.cables.map((cable) => {
      const points = this.cablePoints(cable).map((point) => this.project(point, width, height));
      return { cable, points, depth: points.reduce((sum, point) => sum + point[2], 0) / points.length };
    });
    lines.sort((one, other) => other.depth - one.depth);
    for (const { cable, points, depth } of lines) {
      const part = cable.busy / this.scale;
      const near = 1 - (depth / reach + 1) / 2;
      const trace = () => {
        context.beginPath();
        points.forEach((point, at) => (at ? context.lineTo(point[0], point[1]) : context.moveTo(point[0], point[1])));
        context.stroke();
      };
      if (this.markedCables && this.markedCables.has(cable.name)) {
        context.strokeStyle = getComputedStyle(root).getPropertyValue("--ink");
        context.lineWidth = 8;
        trace();
      }
      context.strokeStyle = `rgba(${colour(part)},${0.28 + 0.72 * Math.max(0, Math.min(1, near + 0.25))})`;
      context.lineWidth = (points.length > 2 ? 0.8 : 1.6) + 2.4 * part * (points.length > 2 ? 0.6 : 1);
      trace();
    }
    context.fillStyle = getComputedStyle(root).getPropertyValue("--ink");
    this.places().forEach((point, node) => {
      const [at, up] = this.project(point, width, height);
      context.beginPath();
      context.arc(at, up, this.marked && this.marked.has(node) ? 7 : 2, 0, 7);
      context.fill();
    });
  }
}
