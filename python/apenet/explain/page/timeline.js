// The time line: a row for each rank; zoom with the buttons, the wheel with Ctrl, or + and −; move with the arrow keys.
class TimeLine {
  constructor(line, causes, path) {
    this.line = line;
    this.causes = causes;
    this.path = path;
    this.from = 0;
    this.until = line.time_ns;
    this.byCall = false;
    this.row = Math.max(8, Math.min(22, Math.floor(560 / line.ranks.length)));
    this.left = 46;
    this.canvas = make("canvas", { role: "img", tabindex: "0", "aria-label": "time line of the ranks; plus and minus zoom, arrow keys move" });
    this.canvas.style.height = `${this.row * line.ranks.length + 26}px`;
    this.said = make("p", { class: "quiet", "aria-live": "polite" }, "Point at a slice to read it.");
    const button = (text, label, action) => make("button", { type: "button", "aria-label": label, onclick: action }, text);
    const mode = make("button", { type: "button", "aria-pressed": "false", onclick: () => {
      this.byCall = !this.byCall;
      mode.setAttribute("aria-pressed", this.byCall);
      this.legend();
      this.draw();
    } }, "colour by MPI call");
    this.key = make("div", { class: "legend" });
    const alike = line.alike.some((count) => count > 1) ? " Of ranks that behave alike, one is shown, with their number." : "";
    section("timeline", "Time line", `What each rank does; arrows are the messages that ended the longest waits. The dark line above is the critical path's rank.${alike}`,
      make("div", { class: "panel" },
        make("div", { class: "tools" }, button("+", "zoom in", () => this.zoom(0.5)), button("−", "zoom out", () => this.zoom(2)),
          button("◀", "move left", () => this.move(-0.25)), button("▶", "move right", () => this.move(0.25)), button("all", "show all", () => { this.from = 0; this.until = line.time_ns; this.draw(); }), mode),
        this.canvas, this.key, this.said));
    this.canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.at(event.offsetX));
    }, { passive: false });
    this.canvas.addEventListener("keydown", (event) => {
      const action = { "+": () => this.zoom(0.5), "-": () => this.zoom(2), ArrowLeft: () => this.move(-0.25), ArrowRight: () => this.move(0.25) }[event.key];
      if (action) { event.preventDefault(); action(); }
    });
    this.canvas.addEventListener("pointermove", (event) => this.say(event.offsetX, event.offsetY));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
    document.addEventListener("themed", () => { this.legend(); this.draw(); });
    this.legend();
    this.draw();
  }

  colourOf(cause, call) {
    if (cause < 0) return variable("--computation");
    return this.byCall ? variable(`--c${call % 6}`) : variable(causeColour(this.causes[cause]));
  }

  legend() {
    const used = new Map([["computation", "--computation"], ["software of MPI", "--software"]]);
    for (const row of this.line.slices) {
      for (const [, , cause, call] of row) {
        if (cause < 0) continue;
        if (this.byCall) used.set(`waiting in ${callName(this.line.calls[call])}`, `--c${call % 6}`);
        else used.set(`waiting: ${this.causes[cause]}`, causeColour(this.causes[cause]));
      }
    }
    this.key.replaceChildren(...[...used].map(([name, colour]) => {
      const mark = make("i");
      mark.style.background = `var(${colour})`;
      return make("span", {}, mark, name);
    }));
  }

  at(x) { return this.from + ((x - this.left) / (this.canvas.clientWidth - this.left)) * (this.until - this.from); }
  zoom(factor, centre = (this.from + this.until) / 2) {
    const width = Math.min(this.line.time_ns, Math.max(1, (this.until - this.from) * factor));
    const part = (centre - this.from) / (this.until - this.from);
    this.place(centre - part * width, width);
  }
  move(part) { this.place(this.from + part * (this.until - this.from), this.until - this.from); }
  place(from, width) {
    this.from = Math.max(0, Math.min(this.line.time_ns - width, from));
    this.until = this.from + width;
    this.draw();
  }

  say(x, y) {
    const number = Math.floor((y - 22) / this.row);
    const row = this.line.slices[number];
    if (!row || x < this.left) return;
    const now = this.at(x);
    const slice = row.find(([start, length]) => start <= now && now < start + length);
    const what = !slice ? "software of MPI" : slice[2] < 0 ? "computation" : `waiting in ${callName(this.line.calls[slice[3]])}: ${this.causes[slice[2]]}`;
    this.said.textContent = `rank ${this.line.ranks[number]} at ${time(now / 1e3)}: ${what}${slice ? `, ${time(slice[1] / 1e3)}` : ""}`;
  }

  draw() {
    const width = this.canvas.clientWidth;
    const height = this.canvas.clientHeight;
    if (!width || !this.line.time_ns) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const scale = (width - this.left) / (this.until - this.from);
    const x = (now) => this.left + (now - this.from) * scale;
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = variable("--quiet");
    const steps = width < 500 ? 3 : 6;
    for (let step = 0; step <= steps; step += 1) {
      const now = this.from + ((this.until - this.from) * step) / steps;
      context.textAlign = step === 0 ? "left" : step === steps ? "right" : "center";
      context.fillText(time(now / 1e3), x(now), 11);
    }
    context.textAlign = "left";
    context.save();
    context.beginPath();
    context.rect(this.left, 14, width - this.left, height);
    context.clip();
    this.line.slices.forEach((row, number) => {
      const top = 22 + number * this.row;
      context.fillStyle = variable("--software");
      context.fillRect(x(0), top + 1, this.line.time_ns * scale, this.row - 2);
      for (const [start, length, cause, call] of row) {
        if (start > this.until || start + length < this.from) continue;
        context.fillStyle = this.colourOf(cause, call);
        context.fillRect(x(start), top + 1, Math.max(length * scale, 0.6), this.row - 2);
      }
    });
    this.drawArrows(context, x);
    this.drawPath(context, x);
    context.restore();
    context.fillStyle = variable("--ink");
    this.line.ranks.forEach((rank, number) => {
      if (this.row < 11 && number % 2) return;
      const alike = this.line.alike[number] > 1 ? ` ×${this.line.alike[number]}` : "";
      context.fillText(`${rank}${alike}`, 2, 22 + number * this.row + this.row / 2 + 4);
    });
  }

  middle(rank) { return 22 + this.line.ranks.indexOf(rank) * this.row + this.row / 2; }

  // Those that are in the window, if they are few enough to tell apart.
  drawArrows(context, x) {
    const seen = this.line.arrows.filter(([, posted, , arrived]) => arrived >= this.from && posted <= this.until);
    context.strokeStyle = variable("--ink");
    context.globalAlpha = seen.length > 200 ? 0.15 : 0.55;
    context.lineWidth = 1;
    for (const [sender, posted, receiver, arrived] of seen) {
      context.beginPath();
      context.moveTo(x(posted), this.middle(sender));
      context.lineTo(x(arrived), this.middle(receiver));
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  drawPath(context, x) {
    context.strokeStyle = variable("--ink");
    context.lineWidth = 2.5;
    for (const [, rank, source, start, until] of this.path.parts) {
      if (rank !== source || !this.line.ranks.includes(rank)) continue;
      const top = 22 + this.line.ranks.indexOf(rank) * this.row + 1.5;
      context.beginPath();
      context.moveTo(x(start / 1e3), top);
      context.lineTo(x(until / 1e3), top);
      context.stroke();
    }
  }
}
