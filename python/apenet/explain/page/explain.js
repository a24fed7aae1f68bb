// The parts of the page, in the order in which a reader asks. A part without data does not appear.
const variable = (name) => getComputedStyle(root).getPropertyValue(name).trim();
const causeColour = (cause) => `--${cause.replaceAll(" ", "-")}`;
const callName = (name, place) => (name ? name + (place ? ` (${place})` : "") : "call not recorded");

// "51 us: MPI_Send number 3 of rank 0 to MPI_Recv number 3 of rank 1": of the rank's calls of this function.
const longest = ({ us, calls }) => `${time(us)}: ${calls.map(({ rank, call, number }) => (call ? `${call}${number ? ` number ${number}` : ""} of rank ${rank}` : `rank ${rank}`)).join(" to ")}`;

const deviation = (part) => (Math.abs(part) < 5e-5 ? "less than 0.01 % from" : `${Math.abs(100 * part).toFixed(2)} % ${part > 0 ? "more than" : "less than"}`);

// Who waits for whom in a deadlock; of a long circle every rank is a point, and some have their number.
function circle({ ranks }) {
  const at = (number, radius) => {
    const turn = (2 * Math.PI * number) / ranks.length - Math.PI / 2;
    return [160 + radius * Math.cos(turn), 160 + radius * Math.sin(turn)];
  };
  const drawing = shape("svg", { viewBox: "0 0 320 320", class: "circle", role: "img", "aria-label": `ranks ${ranks.join(", ")} wait for each other in a cycle` });
  drawing.append(shape("defs", {}, shape("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, shape("path", { d: "M0 0L8 4L0 8z" }))));
  const room = Math.min(17, 320 / ranks.length);
  ranks.forEach((rank, number) => {
    const [[x, y], [tox, toy]] = [at(number, 120), at(number + 1, 120)];
    const length = Math.hypot(tox - x, toy - y) || 1;
    const [dx, dy] = [(tox - x) / length, (toy - y) / length];
    drawing.append(shape("line", { x1: x + dx * room, y1: y + dy * room, x2: tox - dx * room, y2: toy - dy * room, "marker-end": "url(#head)" }));
  });
  const step = Math.ceil(ranks.length / 24);
  ranks.forEach((rank, number) => {
    const [x, y] = at(number, 120);
    drawing.append(shape("circle", { cx: x, cy: y, r: Math.max(2, room - 2) }));
    if (number % step === 0) drawing.append(shape("text", { x: room > 12 ? x : at(number, 145)[0], y: (room > 12 ? y : at(number, 145)[1]) + 4 }, String(rank)));
  });
  return drawing;
}

byId("version").textContent = data.version;
byId("subject").textContent = `${data.command.join(" ")} · ${data.ranks} ranks on ${data.machine.name}`;
byId("verdict").textContent = data.verdict.text;
const tile = (value, text, mood) => byId("tiles").append(make("div", { class: `tile ${mood || ""}` }, make("b", {}, value), make("span", {}, text)));
tile(time(data.time_us), data.outcome === "completed" ? "virtual time" : `of virtual time, then ${data.outcome}`, data.outcome === "completed" ? "" : "bad");
if (data.verdict.gain !== null) tile(percent(data.verdict.gain), "less with the advice, measured by a replay", "good");
tile(plain(data.messages), "messages");
tile(bytes(data.bytes), "payload and protocol");
if (data.replay) {
  byId("basis").textContent = data.replay.is_exact
    ? "Resources and links are of the run; all else below is of a replay of the recorded operations, which repeats the run exactly: the same events at the same times."
    : `Resources and links are of the run; all else below is of a replay of the recorded operations, which takes ${time(data.replay.time_us)}`
      + (data.replay.deviation === null ? "." : `, ${deviation(data.replay.deviation)} the run: polls and decisions that depend on time are not in it.`);
}

if (data.warnings.length) byId("basis").after(make("ul", { class: "quiet warnings" }, ...data.warnings.map((text) => make("li", { class: "word" }, text))));
if (data.message) {
  section("end", "How it ended", "", data.cycle ? make("div", { class: "two" }, circle(data.cycle),
    table(["rank", "waits in", "freed by"], data.cycle.rows.map((one) => [one.rank, one.waits || "–", one.freed_by || "–"]))) : null,
  make("pre", {}, data.message));
}

if (data.efficiencies && data.efficiencies.length) {
  section("efficiency", "Efficiencies", "As the POP project defines them; each is the product of those below it. Serialisation and transfer come from a replay on a network without latency, with infinite bandwidth and software that costs nothing.",
    bars(data.efficiencies.map((one) => ({ label: one.name, value: one.value, text: percent(one.value), title: one.meaning })), 1),
    make("details", {}, make("summary", {}, "what they mean"), make("dl", {}, ...data.efficiencies.flatMap((one) => [make("dt", {}, one.name), make("dd", {}, one.meaning)]))));
} else if (data.replay) {
  section("efficiency", "Efficiencies", "The run charged no computation, so the efficiencies are not defined: --compute measured charges it.");
}

if (data.alternatives && data.alternatives.length) {
  const own = data.replay.time_us;
  const rows = [{ label: "as it is", value: own, text: time(own) }, ...data.alternatives.map((one) => ({
    label: one.kind === "placement" ? `placement: ${one.name}` : one.name, value: one.time_us,
    text: Math.abs(one.gain) < 5e-4 ? "no change" : `${one.gain > 0 ? "−" : "+"}${percent(Math.abs(one.gain))}`,
    kind: one.advice && one.gain > 0 ? "advice" : "", title: `${time(one.time_us)}${one.settings.length ? `: --set ${one.settings.join(" --set ")}` : ""}`,
  }))];
  const found = data.alternatives.find((one) => one.name === "found");
  section("whatif", "What if", "The run's time with one thing changed, each measured by a replay of the same operations. Green: what a user can do; a program that is changed is replayed with its operations in the other order.",
    bars(rows, Math.max(...rows.map((row) => row.value))),
    found ? make("details", {}, make("summary", {}, "the placement that was found, a line for each rank"), make("pre", {}, found.nodes.join("\n"))) : null);
}

if (data.path) {
  const whole = data.path.composition.reduce((sum, one) => sum + one.us, 0);
  const colours = { computation: "--computation", software: "--other", "eager message": "--transfer", "ready to send": "--handshake", "clear to send": "--handshake", payload: "--transfer", message: "--other" };
  section("path", "Critical path", `The chain that made the run as long as it is: its parts sum to ${time(whole)}. A shorter part shortens the run until another chain is the longest.`,
    bars(data.path.composition.map((one) => ({ label: one.kind, value: one.us, text: percent(one.us / whole), colour: colours[one.kind], title: time(one.us) })), whole),
    data.path.stages.length ? make("div", {}, make("h3", {}, "what its messages did"),
      bars(data.path.stages.map((one) => ({ label: one.stage, value: one.us, text: percent(one.us / whole), colour: "--transfer", title: `${one.meaning}: ${time(one.us)}` })), whole)) : null,
    make("details", {}, make("summary", {}, "the largest contributors"),
      table(["what", "times", "time", "the longest of them"], data.path.contributors.map((one) => [one.what, plain(one.count), time(one.us), longest(one.longest)]))));
}

if (data.waits) {
  const whole = data.replay.ranks_us || 1;
  const stages = data.waits.stages;
  const calls = data.waits.calls.filter((one) => one.us >= whole / 1000).slice(0, 20);
  section("waits", "Waits", "Share of all ranks' time. A wait is cut where the message that ended it was posted: before that, its sender is late.",
    data.waits.causes.length === 0 ? make("p", {}, "No rank waits.") : make("div", { class: "two" },
      make("div", {}, make("h3", {}, "by cause"), bars(data.waits.causes.map((one) => ({ label: one.cause, value: one.us, text: percent(one.us / whole), colour: causeColour(one.cause), title: one.meaning })), whole)),
      make("div", {}, make("h3", {}, "by MPI call"), bars(calls.map((one) => ({ label: `${callName(one.call, one.place)}, ${one.cause}`, value: one.us, text: percent(one.us / whole), colour: causeColour(one.cause) })), whole))),
    stages.length ? make("div", {}, make("h3", {}, "what the awaited messages did"),
      bars(stages.filter((one) => one.us >= whole / 1000).map((one) => ({ label: one.cause === "transfer" ? one.stage : `${one.cause}: ${one.stage}`, value: one.us, text: percent(one.us / whole), colour: causeColour(one.cause), title: `${one.meaning}: ${time(one.us)}` })), whole)) : null,
    make("details", {}, make("summary", {}, "what the causes mean"), make("dl", {}, ...[...data.waits.causes.map((one) => [one.cause, one.meaning]),
      ...new Map(stages.map((one) => [one.stage, one.meaning]))].flatMap(([name, meaning]) => [make("dt", {}, name), make("dd", {}, meaning)]))));
}

{
  const cpu = Object.entries(data.cpu);
  const whole = cpu.reduce((sum, [, us]) => sum + us, 0) || 1;
  const colours = { computation: "--computation", software: "--other", waiting: "--transfer" };
  const share = (us) => (data.time_us ? percent(us / data.time_us) : "–");
  section("resources", "Resources", "Processors: all ranks together, of the run. Below, what messages share: the busy share of the busiest one and of all that were used on average, and how long work was there and waited for it.",
    bars(cpu.map(([name, us]) => ({ label: name === "software" ? "software of MPI, copies" : name, value: us, text: percent(us / whole), colour: colours[name] })), whole),
    data.ports.length ? table(["", "used", "busiest", "mean", "waited for"], data.ports.map((one) => [one.name, `${plain(one.used)} of ${plain(one.count)}`, share(one.busiest_us), share(one.busy_us / one.used), one.waited_us === null ? "not counted" : time(one.waited_us)])) : null);
}
if (data.timeline && data.timeline.ranks.length) new TimeLine(data.timeline, data.waits.columns, data.path);
if (data.pairs && data.pairs.length) new Exchange();
else if (data.links.length) new Exchange();

if (data.sizes && data.sizes.length) {
  const most = Math.max(...data.sizes.map((row) => row[1]));
  section("sizes", "Message sizes", "Sends of the program, by powers of two.",
    bars(data.sizes.map(([least, count, sum]) => ({ label: least === 0 ? "0 B" : `${bytes(least)} and more`, value: count, text: plain(count), title: bytes(sum) })), most));
}
if (data.calls && data.calls.length && data.replay.has_calls) {
  const whole = data.calls.reduce((sum, one) => sum + one.waiting_us + one.software_us, 0) || 1;
  section("calls", "MPI calls", "All ranks together: time in each call, of which waiting; the rest is software of the library. Operations are sends and receives that the call has begun.",
    table(["call", "operations", "time", "of which waiting", "share"], data.calls.map((one) => [callName(one.call, one.place), plain(one.operations), time(one.waiting_us + one.software_us), time(one.waiting_us), percent((one.waiting_us + one.software_us) / whole)])));
}
{
  const counts = new Map();
  for (const [, , name] of data.machine.numbers) counts.set(name, (counts.get(name) || 0) + 1);
  const classes = [...counts].sort().map(([name, count]) => `${count} ${name}`).join(", ");
  const rows = [["command", data.repeat], ["machine", `${data.machine.name}: ${data.machine.title}, ${data.machine.shape}`],
    ["numbers of the machine", classes], ["settings", data.machine.settings.join(" ") || "none"], ["placement", data.mapping === "given" ? `given, the node of each rank: ${data.nodes.join(" ")}` : data.mapping],
    ["engine", data.engine], ["seed", data.seed], ["computation", data.compute || "of the recording"], ["hash of all events", data.trace_hash], ["version", data.version]];
  section("repeat", "To repeat it", "", make("dl", {}, ...rows.flatMap(([name, value]) => [make("dt", {}, name), make("dd", { class: "word" }, String(value))])),
    make("details", {}, make("summary", {}, "the machine's numbers and their sources"), make("p", { class: "quiet" },
      "published: printed in the literature; derived: follows from what is printed; fitted: to a published measurement; assumed: a plausible value."),
    table(["key", "value", "class", "source"], data.machine.numbers)));
}
