// The table of rollouts: sorted by its headers, filtered by the fields above it.

const COLUMNS = [
  { name: "Rollout", of: (row) => row.id },
  { name: "Calls", of: (row) => row.calls, number: true },
  { name: "Ids", of: (row) => row.ids, number: true },
  { name: "Generated", of: (row) => row.generated, number: true },
  { name: "Trained on", of: (row) => row.trained, number: true },
  { name: "Model", of: (row) => row.models.join(", ") },
  { name: "Weights", of: (row) => row.versions.join(", ") },
  { name: "Trainable", of: (row) => row.reasons.join(", ") },
  { name: "Errors", of: (row) => row.error, number: true },
  { name: "Warnings", of: (row) => row.warning, number: true },
];
const PORTION = 250; // rows that are drawn at once

class RolloutTable {
  constructor(rows, host) {
    this.rows = rows.map((row, place) => ({ ...row, place }));
    this.sorted = null;
    this.search = make("input", { type: "search", id: "search", placeholder: "part of an id", spellcheck: "false" });
    const every = (of) => [...new Set(this.rows.flatMap(of))].sort(collate);
    this.finding = select("filter-finding", [["", "any"], ["-", "none"], ...same(every((row) => row.codes))]);
    this.model = select("filter-model", [["", "any"], ...same(every((row) => row.models))]);
    this.version = select("filter-version", [["", "any"], ...same(every((row) => row.versions))]);
    const reasons = every((row) => row.reasons).map((reason) => [reason, `no: ${reason}`]);
    this.trainable = select("filter-trainable", [["", "any"], ["yes", "yes"], ["no", "no"], ...reasons]);
    this.status = make("p", { role: "status", id: "shown", class: "dim" });
    this.head = make("tr", {}, COLUMNS.map((column) => this.header(column)));
    this.body = make("tbody");
    this.more = button({ id: "more" }, () => this.drawMore(), "Show more");
    const form = make(
      "form",
      { class: "filters", role: "search", "aria-label": "Filter rollouts" },
      field("Rollout", this.search),
      field("Finding", this.finding),
      field("Model", this.model),
      field("Weights", this.version),
      field("Trainable", this.trainable),
      this.status,
    );
    form.addEventListener("submit", (event) => event.preventDefault());
    const caption = make("caption", { class: "hidden" }, "Rollouts");
    const parts = [caption, make("thead", {}, this.head), this.body];
    const table = make("table", { class: "rollouts", id: "table" }, parts);
    host.append(form, make("div", { class: "scroll-x" }, table), this.more);
    this.search.addEventListener("input", () => this.draw());
    for (const control of [this.finding, this.model, this.version, this.trainable]) {
      control.addEventListener("change", () => this.draw());
    }
    this.draw();
  }

  header(column) {
    const sort = button({}, () => this.sortBy(column), column.name);
    return make("th", { scope: "col", class: column.number ? "number" : "", "aria-sort": "none" }, sort);
  }

  // First the way that shows what one looks for: texts from their beginning, numbers from the largest.
  sortBy(column) {
    const first = column.number ? "descending" : "ascending";
    const other = column.number ? "ascending" : "descending";
    const order = this.sorted?.column === column && this.sorted.order === first ? other : first;
    this.sorted = { column, order };
    COLUMNS.forEach((each, at) => this.head.children[at].setAttribute("aria-sort", each === column ? order : "none"));
    this.draw();
  }

  filter(name, value) {
    this[name].value = value;
    this.draw();
    this[name].focus();
  }

  matching() {
    const text = this.search.value.toLowerCase();
    const { finding, model, version, trainable } = this;
    return this.rows.filter(
      (row) =>
        row.id.toLowerCase().includes(text) &&
        (!finding.value || (finding.value === "-" ? !row.codes.length : row.codes.includes(finding.value))) &&
        (!model.value || row.models.includes(model.value)) &&
        (!version.value || row.versions.includes(version.value)) &&
        isJudged(row.reasons, trainable.value),
    );
  }

  draw() {
    this.found = this.matching();
    if (this.sorted) {
      const { column, order } = this.sorted;
      const sign = order === "ascending" ? 1 : -1;
      const compare = column.number ? (a, b) => a - b : collate;
      this.found.sort((a, b) => sign * compare(column.of(a), column.of(b)));
    }
    this.status.textContent = `${count(this.found.length)} of ${counted(this.rows.length, "rollout")}`;
    this.body.replaceChildren();
    this.drawMore();
  }

  drawMore() {
    const drawn = this.body.children.length;
    this.body.append(...this.found.slice(drawn, drawn + PORTION).map(tableRow));
    this.more.hidden = this.body.children.length >= this.found.length;
  }
}

function tableRow(row) {
  const cells = COLUMNS.slice(1).map((column) => {
    if (column.name === "Trainable") return make("td", {}, judged(row.reasons));
    if (column.name === "Generated") return make("td", { class: "number" }, share(row), count(row.generated));
    if (!column.number) return make("td", {}, column.of(row));
    const look = column.of(row) ? (column.name === "Errors" ? "bad" : "") : "zero";
    return make("td", { class: `number ${look}` }, count(column.of(row)));
  });
  return make("tr", {}, make("th", { scope: "row" }, make("a", { href: `#/${row.place}` }, row.id)), cells);
}

// A small bar: the generated ids among all.
function share(row) {
  const title = `${percent(row.generated, row.ids)} generated`;
  const bar = make("span", { class: "share", title }, make("span"));
  bar.firstChild.style.width = `${row.ids ? (100 * row.generated) / row.ids : 0}%`;
  return bar;
}

const judged = (reasons) => (reasons.length ? span("no", reasons.join(", ")) : span("yes", "yes"));

// True for the reasons of a rollout that a choice of the filter takes: any, "yes", "no", or one of them.
function isJudged(reasons, choice) {
  if (choice === "yes" || choice === "no") return (choice === "no") === reasons.length > 0;
  return !choice || reasons.includes(choice);
}

const field = (name, control) => make("label", {}, make("span", {}, name), control);

const { compare: collate } = new Intl.Collator("en", { numeric: true });

const same = (values) => values.map((value) => [value, value]);

const select = (id, options) => make("select", { id }, options.map(([value, name]) => make("option", { value }, name)));
