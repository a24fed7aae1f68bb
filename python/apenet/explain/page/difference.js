// The page of two runs beside each other: whether they are equal, what differs first and why, and what has changed.
byId("version").textContent = data.version;
byId("subject").textContent = data.names.join(" · ");
byId("verdict").textContent = data.verdict.text;
const amount = (value, unit) => (value === null ? "–" : unit === "us" ? time(value) : unit === "B" ? bytes(value) : `${plain(value)} ${unit}`.trim());
const most = Math.max(...data.times.map((us) => us ?? 0)) || 1;
section("time", "Virtual time", "",
  bars(data.names.map((name, run) => ({ label: name, value: data.times[run] ?? 0, text: time(data.times[run]) })), most));
if (data.lines.length) section("why", "Why", "", make("ul", { class: "warnings" }, ...data.lines.map((text) => make("li", { class: "word" }, text))));
if (data.rows.length) section("changes", "What has changed", "", table(["", "first", "second", "change"], data.rows.map(([name, unit, ...values]) => [name, ...values.slice(0, 2).map((value) => amount(value, unit)), values[2]])));
