"use strict";
// Conveniences only: the page says everything without them.
for (const box of document.querySelectorAll("[data-copy]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    const code = box.querySelector("pre");
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
// A link to something inside a closed <details> opens it.
const reveal = () => {
  const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  for (let box = target && target.closest("details"); box; box = box.parentElement.closest("details")) {
    box.open = true;
  }
};
addEventListener("hashchange", reveal);
reveal();
