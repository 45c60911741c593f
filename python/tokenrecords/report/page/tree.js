// The calls of a rollout as a tree: what each is, and how it continues another.

const DEEPEST = 12; // forks that are still indented

function callTree(details, open) {
  const rows = details.calls.map((call, index) => treeRow(call, index, details, open));
  const table = make(
    "table",
    { role: "treegrid", class: "tree", id: "tree", "aria-label": "Calls" },
    make("thead", {}, make("tr", {}, ["Call", "New", "Generated", "Mean", "Weights"].map((name, at) => make("th", { scope: "col", class: at && at < 4 ? "number" : "", title: name === "Mean" ? "Mean log-prob of the generated ids" : null }, name)))),
    make("tbody", {}, rows),
  );
  table.addEventListener("keydown", (event) => {
    const at = rows.indexOf(event.target.closest("tr"));
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    focusRow(rows, Math.min(Math.max(next, 0), rows.length - 1)).focus();
  });
  if (rows.length) focusRow(rows, 0);
  return table;
}

function focusRow(rows, at) {
  rows.forEach((row, index) => {
    row.tabIndex = index === at ? 0 : -1;
  });
  return rows[at];
}

function treeRow(call, index, details, open) {
  const isMain = call.marks.includes("main");
  const mark = call.marks.includes("quarantined") ? "✗" : isMain ? "●" : "○";
  const wrong = details.findings.filter((finding) => finding.call === index && finding.severity !== "info");
  const name = make(
    "td",
    { class: "call-cell" },
    spaced([
      make("span", { class: "mark", "aria-hidden": "true" }, mark),
      make("span", { class: "call-name" }, call.id),
      tag(call.kind),
      ...call.marks.map((each) => tag(each)),
      wrong.length && make("span", { class: "tag wrong", title: wrong.map((finding) => finding.code).join(", ") }, `${wrong.length} !`),
      call.failure && make("span", { class: "failure" }, call.failure),
    ]),
  );
  name.style.paddingInlineStart = `${0.5 + Math.min(call.depth, DEEPEST) * 1.1}em`;
  return make(
    "tr",
    {
      "aria-level": call.depth + 1,
      "data-call": index,
      class: isMain ? "is-main" : "",
      on: {
        click: () => open(index),
        keydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          open(index);
        },
      },
    },
    name,
    make("td", { class: "number" }, count(call.prompt - call.start)),
    make("td", { class: "number" }, count(call.length - call.prompt)),
    make("td", { class: "number" }, mean(call)),
    make("td", {}, call.version),
  );
}

function mean(call) {
  const sum = call.logProbs.reduce((total, value) => total + value, 0);
  return call.logProbs.length ? (sum / call.logProbs.length).toFixed(2) : "";
}
