// Runs in a page: what a reader needs of it, as JSON in the title of the page around it.
"use strict";
const failures = [];
window.addEventListener("error", (event) => failures.push(`script: ${event.message}`));

function channels(colour) {
  return (colour.match(/[\d.]+/g) || []).map(Number);
}
function luminance([red, green, blue]) {
  const linear = [red, green, blue].map((value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
function ground(element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = channels(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
}
// WCAG 2.2: 4.5 to 1, and 3 to 1 for large text.
function checkContrast(theme) {
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3 && node.textContent.trim());
    if (!text.length || !element.getClientRects().length || ["SCRIPT", "STYLE"].includes(element.tagName)) continue;
    const [one, other] = [luminance(channels(getComputedStyle(element).color)), luminance(ground(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const size = parseFloat(getComputedStyle(element).fontSize);
    if (ratio < (size >= 24 ? 3 : 4.5)) failures.push(`${theme} contrast ${ratio.toFixed(2)}: ${element.textContent.slice(0, 30)}`);
  }
}
function picture(canvas) {
  return new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
}
function checkDrawn(canvas) {
  if (new Set(picture(canvas)).size < 3) failures.push(`nothing is drawn: ${canvas.getAttribute("aria-label")}`);
}
function checkKey(canvas, key) {
  const before = picture(canvas).slice();
  canvas.focus();
  if (document.activeElement !== canvas) failures.push("the keyboard does not reach a figure");
  canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  if (picture(canvas).every((value, at) => value === before[at])) failures.push(`the key ${key} does nothing`);
}
function checkPlaces() {
  if (document.documentElement.scrollWidth > innerWidth) failures.push(`wider than the screen: ${document.documentElement.scrollWidth}`);
  const boxes = [...document.querySelectorAll("header, section, footer")].map((one) => one.getBoundingClientRect());
  boxes.sort((one, other) => one.top - other.top);
  boxes.forEach((box, at) => { if (at && boxes[at - 1].bottom > box.top + 1) failures.push("parts overlap"); });
  for (const button of document.querySelectorAll("button")) {
    if (!button.textContent.trim() && !button.getAttribute("aria-label")) failures.push("a button without a name");
  }
  for (const link of document.querySelectorAll("nav a")) {
    if (!document.querySelector(link.getAttribute("href"))) failures.push(`a link to nowhere: ${link.textContent}`);
  }
}

// A word of a table or of a bar's value is on one line, unless it is longer than a phone is wide.
function checkWords() {
  for (const element of document.querySelectorAll("th, td, .line b")) {
    for (const node of element.childNodes) {
      if (node.nodeType !== 3) continue;
      for (const { 0: word, index } of node.textContent.matchAll(/[^\s/-]+/g)) {
        const range = document.createRange();
        range.setStart(node, index);
        range.setEnd(node, index + word.length);
        const tops = new Set([...range.getClientRects()].map((one) => Math.round(one.top)));
        if (word.length <= 16 && tops.size > 1) failures.push(`a word is broken: ${word}`);
      }
    }
  }
  for (const value of document.querySelectorAll(".line b")) {
    if (value.getClientRects().length && value.offsetHeight > 1.9 * parseFloat(getComputedStyle(value).fontSize)) failures.push(`a value on two lines: ${value.textContent}`);
  }
}

const saidBy = (matrix) => matrix.parentElement.querySelector("[aria-live]").textContent;

// Keys and clicks choose nodes and links in the picture of the network, which marks them in both pictures.
function checkWorld(world, matrix) {
  checkKey(world, "Escape");
  checkKey(world, "ArrowRight");
  if (!/^ranks? [0-9, ]+ on node 0 /.test(saidBy(matrix))) failures.push(`the key chose: ${saidBy(matrix)}`);
  checkKey(world, "ArrowDown");
  if (!/^link .* of the time busy, /.test(saidBy(matrix))) failures.push(`the key chose: ${saidBy(matrix)}`);
  const before = picture(matrix).slice();
  checkKey(world, "Escape");
  if (picture(matrix).every((value, at) => value === before[at])) failures.push("Escape leaves the marks");
  checkKey(matrix, "ArrowDown");
  checkKey(matrix, "ArrowRight");
  if (!/^rank 0 on .* to rank \d+ on .* messages, /.test(saidBy(matrix))) failures.push(`the key chose: ${saidBy(matrix)}`);
  HTMLElement.prototype.setPointerCapture = () => {};
  const box = world.getBoundingClientRect();
  const chosen = new Set();
  for (let x = 2; x < box.width; x += 6) {
    for (let y = 2; y < box.height; y += 6) {
      for (const kind of ["pointerdown", "pointerup", "click"]) {
        world.dispatchEvent(new PointerEvent(kind, { pointerId: 1, clientX: box.left + x, clientY: box.top + y, bubbles: true }));
      }
      chosen.add(saidBy(matrix));
    }
  }
  const nodes = new Set([...chosen].map((text) => (/ on (node \d+)/.exec(text) || [])[1]));
  if (nodes.size < 9) failures.push(`clicks choose ${nodes.size} nodes`);
  if (![...chosen].some((text) => text.startsWith("link "))) failures.push("clicks choose no link");
}

addEventListener("load", () => setTimeout(() => {
  for (const details of document.querySelectorAll("details")) details.open = true;
  checkPlaces();
  checkWords();
  const canvases = [...document.querySelectorAll("canvas")];
  canvases.forEach(checkDrawn);
  for (const theme of ["light", "dark"]) {
    document.documentElement.dataset.theme = theme;
    document.dispatchEvent(new Event("themed"));
    checkContrast(theme);
    canvases.forEach(checkDrawn);
  }
  const line = canvases.find((canvas) => canvas.getAttribute("aria-label").startsWith("time line"));
  if (line) checkKey(line, "+");
  const matrix = canvases.find((canvas) => canvas.getAttribute("aria-label").startsWith("communication"));
  if (matrix) {
    checkKey(matrix, "ArrowDown");
    if (!/rank 0 on node \d+ at (\(0,0,0\)|leaf0) sends/.test(matrix.parentElement.textContent)) failures.push("the chosen rank's node has no name");
  }
  const choice = document.querySelector("select[aria-label^=link]");
  const torus = canvases.find((canvas) => canvas.getAttribute("aria-label").startsWith("the torus"));
  if (choice && matrix && torus) {
    const before = [matrix, torus].map((canvas) => picture(canvas).slice());
    choice.selectedIndex = 1;
    choice.dispatchEvent(new Event("change"));
    [matrix, torus].forEach((canvas, at) => { if (picture(canvas).every((value, place) => value === before[at][place])) failures.push(`choosing a link marks nothing in: ${canvas.getAttribute("aria-label")}`); });
  }
  const world = canvases.find((canvas) => /choose a node/.test(canvas.getAttribute("aria-label")));
  if (world && matrix) checkWorld(world, matrix);
  const hot = document.querySelector("#exchange td button");
  if (hot && matrix) {
    hot.click();
    if (!saidBy(matrix).startsWith(`link ${hot.textContent}: `)) failures.push("a hot link cannot be chosen");
  }
  const found = { picks: Boolean(world), chooses: Boolean(choice), width: innerWidth, canvases: canvases.length, sections: document.querySelectorAll("section").length, failures };
  parent.document.title = JSON.stringify(found);
}, 500));
