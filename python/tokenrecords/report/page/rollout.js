// One rollout: its calls, what is wrong with them, and its tokens.

class RolloutView {
  constructor(place, row, details, host) {
    Object.assign(this, { place, row, details });
    this.tree = callTree(details, (call) => this.open(call, details.calls[call].prompt));
    this.about = make("div", { class: "about" });
    this.panel = new TokensPanel(details.chains, {
      chain: (call) => this.open(call, 0),
      ids: () => this.open(this.call, this.cursor.position ?? 0),
      jump: (x) => this.cursor.say(this.cursor.go(this.minimap.positionAt(x), "center")),
    });
    host.replaceChildren(heading(row), ...this.sections());
    const first = details.chains.find((chain) => chain.name === "main") ?? details.chains[0];
    if (details.calls.length) this.open(first ? first.call : 0, null);
  }

  close() {
    for (const part of [this.strip, this.minimap, this.cursor]) part?.close();
  }

  sections() {
    const { details, row } = this;
    const show = (call, position) => this.open(call, position);
    const sections = [];
    if (details.findings.length) {
      const name = make("h2", {}, counted(details.findings.length, "finding"));
      const isOpen = row.error + row.warning > 0;
      const attributes = { class: "panel", id: "rollout-findings", open: isOpen };
      sections.push(make("details", attributes, make("summary", {}, name), findingTable(details, show)));
    }
    if (details.breaks.length) {
      const tables = details.breaks.map((broken) => breakTable(details.calls, broken, show));
      const attributes = { class: "panel", id: "breaks", "aria-label": "Prefix breaks" };
      sections.push(make("section", attributes, make("h2", {}, "Where prefixes break"), tables));
    }
    const columns = make("div", { class: "columns" }, this.calls());
    if (details.calls.length) columns.append(this.panel.element);
    return [...sections, columns];
  }

  calls() {
    const { calls, left_out: leftOut } = this.details;
    const tree = make("div", { class: "scroll-x" }, this.tree);
    const left = leftOut.map(([id, why]) => make("li", {}, span("call-name", id), ` left out: ${why}`));
    return make(
      "section",
      { class: "panel calls", "aria-label": "Calls" },
      make("h2", {}, "Calls"),
      calls.length ? tree : make("p", { class: "dim" }, "No call of this rollout has tokens."),
      left.length ? make("ul", { class: "left-out", id: "calls-left-out" }, left) : null,
      this.about,
    );
  }

  // Shows a call, with the cursor at a position; null leaves the page where it is.
  open(call, position) {
    // A call of the chain that is seen is a place in it.
    const isSeen = this.sequence?.path.some((each) => each.index === call) && !this.endsOther(call);
    if (!isSeen || this.panel.showsIds !== this.strip.showsIds) this.draw(isSeen ? this.last : call);
    this.select(call);
    if (position === null) return;
    this.cursor.say(this.cursor.go(position, "center"));
    this.panel.bringIntoView();
  }

  // The sequence up to a call.
  draw(last) {
    this.close();
    this.last = last;
    this.sequence = new Sequence(this.details.calls, last);
    this.strip = new Strip(this.sequence, this.panel.scroller, this.panel.showsIds);
    this.cursor = new Cursor(this.strip, this.panel, (position) => this.remember(position));
    this.minimap = new Minimap(this.sequence, this.strip, this.panel.map);
    const chain = this.details.chains.find((each) => each.call === last);
    this.panel.name(last, chain ? `Chain ${chain.name}` : `Up to ${this.details.calls[last].id}`);
  }

  // True for a call that ends a chain which is not the one that is seen.
  endsOther(call) {
    return call !== this.last && this.details.chains.some((chain) => chain.call === call);
  }

  select(call) {
    if (this.call === call) return;
    this.call = call;
    for (const row of this.tree.tBodies[0].rows) row.setAttribute("aria-selected", Number(row.dataset.call) === call);
    this.about.replaceChildren(...about(this.details.calls[call]));
  }

  remember(position) {
    this.select(this.sequence.callAt(position).index);
    history.replaceState(null, "", `#/${this.place}/${this.last}/${position}`);
  }
}

function heading(row) {
  const judgement = row.reasons.length
    ? span("no", "not trainable: ", row.reasons.join(", "))
    : span("yes", "trainable");
  const numbers = [
    counted(row.calls, "call"),
    counted(row.ids, "id"),
    `${count(row.generated)} generated (${percent(row.generated, row.ids)})`,
    `${count(row.trained)} trained on`,
  ];
  const title = make("h1", { tabindex: "-1", id: "rollout-title" }, row.id);
  return make("div", { class: "heading" }, title, judgement, make("p", { class: "dim" }, numbers.join(" · ")));
}

function findingTable({ findings, calls }, show) {
  const isPlaced = findings.some((finding) => finding.where);
  const rows = findings.map((finding) => {
    const at = finding.call === null ? null : (finding.position ?? calls[finding.call].prompt);
    const name = at === null ? finding.id : button({ class: "link" }, () => show(finding.call, at), finding.id);
    const severity = span(`severity ${finding.severity}`, finding.severity);
    const where = isPlaced ? [span("dim", finding.where)] : [];
    return make("tr", {}, cells([severity, finding.code, name, finding.message, ...where]));
  });
  const head = heads(["Severity", "Code", "Call", "Message", ...(isPlaced ? ["Where"] : [])]);
  const table = make("table", { class: "findings" }, make("thead", {}, head), make("tbody", {}, rows));
  return make("div", { class: "scroll-x" }, table);
}

function about(call) {
  const created = call.created === null ? "" : new Date(call.created * 1000).toISOString();
  const facts = [
    ["ids", `${count(call.length)}: prompt ${count(call.prompt)}, generated ${count(call.length - call.prompt)}`],
    ["model", call.model],
    ["weights", call.version],
    ["response", call.response],
    ["created", created.replace("T", " ").slice(0, 19)],
    ["digest", call.digest],
  ];
  const shown = facts
    .filter(([, value]) => value)
    .map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  const label = "What the output items say";
  const said = call.text ? [make("pre", { class: "said", tabindex: "0", "aria-label": label }, call.text)] : [];
  return [make("h2", {}, call.id), make("dl", { class: "call-facts" }, shown), ...said];
}
