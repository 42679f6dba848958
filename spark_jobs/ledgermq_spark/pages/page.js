"use strict";
// The page is whole without this: it adds searching, sorting, and choosing what is charted.
document.documentElement.classList.add("js");

function keyOf(row, at, isNumber) {
  const cell = row.cells[at];
  const text = cell.querySelector("data")?.value ?? cell.textContent.trim();
  return isNumber ? parseFloat(text.replaceAll(",", "")) || 0 : text.toLowerCase();
}

function sortBy(table, heading, at) {
  const falls = heading.getAttribute("aria-sort") === "ascending";
  const isNumber = heading.classList.contains("number");
  for (const one of heading.parentNode.cells) one.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, at, isNumber), row]);
  rows.sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0) * (falls ? -1 : 1));
  table.tBodies[0].append(...rows.map(([, row]) => row));
}

for (const table of document.querySelectorAll("table")) {
  [...table.tHead.rows[0].cells].forEach((heading, at) => {
    const button = document.createElement("button");
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, heading, at));
    heading.append(button);
  });
}

// What has the attribute can be searched: its value selects the parts that are shown or not.
for (const place of document.querySelectorAll("[data-search]")) {
  const field = Object.assign(document.createElement("input"), {
    type: "search", placeholder: "Search", ariaLabel: "Search",
  });
  field.addEventListener("input", () => {
    const wanted = field.value.trim().toLowerCase();
    for (const part of place.querySelectorAll(place.dataset.search)) {
      part.style.display = part.textContent.toLowerCase().includes(wanted) ? "" : "none";
    }
  });
  place.before(field);
}

// The same scale as pages/chart.py has.
const UNITS = [[172800, 86400, " d"], [7200, 3600, " h"], [120, 60, " min"], [0, 1, " s"]];
const COUNTS = [[800001, 1000000, " M"], [0, 1, ""]];
const PARTED = [" s", " M"];

function rescale(chart) {
  const lines = chart.querySelector(".lines");
  const shown = [...lines.querySelectorAll("path:not([hidden])")];
  const highest = Math.max(0, ...shown.map((path) => Number(path.dataset.high)));
  const units = chart.dataset.unit === "seconds" ? UNITS : COUNTS;
  const [, unit, name] = units.find(([from]) => highest >= from);
  let step = PARTED.includes(name) ? 0.001 : 1;
  for (let turn = 0; step * 4 * unit < highest; turn++) step *= turn % 3 === 1 ? 2.5 : 2;
  const scale = lines.dataset.height / (step * 4 * unit);
  lines.setAttribute("transform", `translate(0 ${lines.dataset.base}) scale(1 ${-scale})`);
  chart.querySelectorAll(".grid text").forEach((text, at) => {
    const value = (step * at).toLocaleString("en-US", { maximumFractionDigits: 3 });
    text.textContent = value + (at ? name : "");
  });
}

for (const box of document.querySelectorAll("input[data-line]")) {
  box.addEventListener("change", () => {
    for (const part of document.querySelectorAll(`.charts [data-line="${box.dataset.line}"], .legend [data-line="${box.dataset.line}"]`)) {
      part.toggleAttribute("hidden", !box.checked);
    }
    document.querySelectorAll(".chart").forEach(rescale);
  });
}
