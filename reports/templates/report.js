"use strict";
// Conveniences only: the page says everything without them.
for (const box of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const code = box.querySelector("pre, .said");
    try {
      await navigator.clipboard.writeText(code.innerText);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  box.append(button);
}
for (const head of document.querySelectorAll("table.sortable th")) {
  head.tabIndex = 0;
  const sort = () => {
    const up = head.ariaSort === "descending";
    for (const other of head.parentElement.cells) other.ariaSort = null;
    head.ariaSort = up ? "ascending" : "descending";
    const value = (row) => {
      const cell = row.cells[head.cellIndex];
      const text = (cell.dataset.sort ?? cell.textContent).trim().replace(/,/g, "").replace("−", "-");
      const number = parseFloat(text);
      return Number.isNaN(number) ? text : number;
    };
    const body = head.closest("table").tBodies[0];
    const rows = [...body.rows].sort((a, b) => {
      const x = value(a), y = value(b);
      if (typeof x !== typeof y) return typeof x === "number" ? -1 : 1;
      return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
    });
    body.append(...rows);
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    sort();
  });
}
// A link to something inside a closed <details> opens it; so does printing.
const reveal = () => {
  const target = location.hash && document.getElementById(location.hash.slice(1));
  if (!target) return;
  const closed = [];
  for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) {
    if (!box.open) closed.push(box);
    box.open = true;
  }
  if (closed.length) target.scrollIntoView();
};
addEventListener("hashchange", reveal);
reveal();
let printed = [];
addEventListener("beforeprint", () => {
  printed = [...document.querySelectorAll("details:not([open], .code)")];
  for (const box of printed) box.open = true;
});
addEventListener("afterprint", () => { for (const box of printed) box.open = false; });
// The filter: what does not hold every word is hidden, what does is opened.
const find = document.getElementById("find");
const UNITS = "article, tbody > tr, .notes > li, .unchecked > li, .graph, .pairs > div";
const units = [...document.querySelectorAll("main :is(" + UNITS + ")")].filter((unit) => !unit.parentElement.closest(UNITS));
const boxes = [...document.querySelectorAll("main details")];
const texts = new Map();
const read = (unit) => {
  const all = (chosen, value) => [unit, ...unit.querySelectorAll(chosen)].filter((part) => part.matches(chosen)).map((part) => value(part).toLowerCase());
  return {
    text: unit.textContent.toLowerCase(),
    rule: all("[data-rule]", (part) => part.dataset.rule).flatMap((names) => names.split(" ")),
    file: all(".where, .mono", (part) => part.textContent),
  };
};
const holds = ({ text, rule, file }, word) => {
  const [, kind, value] = word.match(/^(rule|file):(.*)$/) ?? [];
  if (kind === "rule") return rule.some((name) => name.startsWith(value));
  return kind === "file" ? file.some((place) => place.includes(value)) : text.includes(word);
};
let before = null;
const narrow = () => {
  const sought = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  before ??= boxes.map((box) => box.open);
  let hits = 0;
  const kept = new Set();
  for (const unit of units) {
    if (!texts.has(unit)) texts.set(unit, read(unit));
    unit.hidden = !sought.every((word) => holds(texts.get(unit), word));
    if (unit.hidden || !sought.length) continue;
    hits += 1;
    for (let box = unit.parentElement.closest("details"); box; box = box.parentElement.closest("details")) kept.add(box);
    kept.add(unit.closest("main > *"));
  }
  boxes.forEach((box, index) => {
    if (!units.some((unit) => unit.contains(box))) box.open = sought.length ? kept.has(box) : before[index];
  });
  for (const part of document.querySelectorAll("main > section, main > details")) {
    part.hidden = sought.length > 0 && !kept.has(part);
  }
  if (!sought.length) before = null;
  find.nextElementSibling.textContent = sought.length ? hits + (hits === 1 ? " match" : " matches") : "";
};
const offered = new Set();
for (const part of document.querySelectorAll("[data-rule]")) {
  offered.add("rule:" + part.dataset.rule.split(" ")[0]);
  if (part.dataset.file) offered.add("file:" + part.dataset.file);
}
for (const words of [...offered].sort()) find.list.append(new Option(words, words));
find.parentElement.hidden = false;
let due = 0;
find.addEventListener("input", () => { clearTimeout(due); due = setTimeout(narrow, 120); });
