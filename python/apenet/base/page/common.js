"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const byId = (id) => document.getElementById(id);

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "onclick") element.addEventListener("click", value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

const digits = (value) => {
  if (value === null || value === undefined) return "–";
  if (typeof value === "string") return value;
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
};
const size = (bytes) => {
  for (const [unit, factor] of [["M", 2 ** 20], ["K", 2 ** 10]]) {
    if (bytes >= factor && bytes % factor === 0) return bytes / factor + unit;
  }
  return String(bytes);
};
const sizeInBytes = (bytes) => size(bytes).replace(/(\d+)([KM]?)$/, (_, count, prefix) => `${count} ${prefix && prefix + "i"}B`);

// Light or dark: the system's choice until the reader chooses.
const systemIsDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : systemIsDark.matches);
const themed = () => document.dispatchEvent(new Event("themed"));
systemIsDark.addEventListener("change", themed);
byId("theme").addEventListener("click", () => {
  root.dataset.theme = isDark() ? "light" : "dark";
  themed();
});
