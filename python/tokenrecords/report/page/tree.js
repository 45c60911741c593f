// The calls of a rollout as a tree: what each is, and how it continues another.

const DEEPEST = 12; // forks that are still indented

function callTree(details, open) {
  const rows = details.calls.map((call) => treeRow(call, details, open));
  const head = heads(["Call", "New", "Generated", "Mean", "Weights"]);
  for (const number of [...head.children].slice(1, 4)) number.className = "number";
  head.children[3].title = "Mean log-prob of the generated ids";
  const attributes = { role: "treegrid", class: "tree", id: "tree", "aria-label": "Calls" };
  const table = make("table", attributes, make("thead", {}, head), make("tbody", {}, rows));
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

function treeRow(call, details, open) {
  const isMain = call.marks.includes("main");
  const name = make("td", { class: "call-cell" }, spaced(callWords(call, details)));
  name.style.paddingInlineStart = `${0.5 + Math.min(call.depth, DEEPEST) * 1.1}em`;
  const numbers = [count(call.prompt - call.start), count(call.length - call.prompt), mean(call)];
  const row = make(
    "tr",
    { "aria-level": call.depth + 1, "data-call": call.index, class: isMain ? "is-main" : "" },
    name,
    numbers.map((number) => make("td", { class: "number" }, number)),
    make("td", {}, call.version),
  );
  row.addEventListener("click", () => open(call.index));
  row.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    open(call.index);
  });
  return row;
}

function callWords(call, details) {
  const mark = call.marks.includes("quarantined") ? "✗" : call.marks.includes("main") ? "●" : "○";
  const wrong = details.findings.filter((finding) => finding.call === call.index && finding.severity !== "info");
  const codes = wrong.map((finding) => finding.code).join(", ");
  return [
    make("span", { class: "mark", "aria-hidden": "true" }, mark),
    span("call-name", call.id),
    ...[call.kind, ...call.marks].map((each) => span(`tag ${each}`, each)),
    wrong.length && make("span", { class: "tag wrong", title: codes }, `${wrong.length} !`),
    call.failure && span("failure", call.failure),
  ];
}

function mean(call) {
  const sum = call.logProbs.reduce((total, value) => total + value, 0);
  return call.logProbs.length ? (sum / call.logProbs.length).toFixed(2) : "";
}
