// One rollout: its calls, what is wrong with them, and its tokens.

class RolloutView {
  constructor(place, row, details, host) {
    Object.assign(this, { place, row, details, host });
    this.tree = callTree(details, (call) => this.open(call, details.calls[call].prompt));
    this.chains = make("div", { class: "chains", role: "group", "aria-label": "Chains" }, details.chains.map((chain) => this.chainButton(chain)));
    this.facts = make("dl", { class: "facts", id: "facts" });
    this.live = make("p", { class: "hidden", role: "status", "aria-live": "polite", id: "live" });
    this.scroller = make("div", { class: "strip", id: "strip", tabindex: "0", role: "application", "aria-roledescription": "token strip", "aria-label": "Tokens: arrow keys move, brackets go to the next prompt or generation" });
    this.map = make("div", { class: "minimap", id: "minimap", on: { pointerdown: (event) => this.jump(event), pointermove: (event) => event.buttons && this.jump(event) } });
    this.title = make("h2", { id: "strip-title" });
    this.about = make("div", { class: "about" });
    this.ids = make("input", { type: "checkbox", id: "show-ids", checked: !PIECES, disabled: !PIECES, on: { change: () => this.open(this.call, this.cursor.position ?? 0) } });
    host.replaceChildren(this.heading(), ...this.body());
    this.openFirst();
  }

  close() {
    for (const part of [this.strip, this.minimap, this.cursor]) part?.close();
  }

  heading() {
    const { row } = this;
    const judgement = row.reasons.length ? make("span", { class: "no" }, "not trainable: ", row.reasons.join(", ")) : make("span", { class: "yes" }, "trainable");
    const numbers = [counted(row.calls, "call"), counted(row.ids, "id"), `${count(row.generated)} generated (${percent(row.generated, row.ids)})`, `${count(row.trained)} trained on`];
    return make("div", { class: "heading" }, make("h1", { tabindex: "-1", id: "rollout-title" }, row.id), judgement, make("p", { class: "dim" }, numbers.join(" · ")));
  }

  body() {
    const { details } = this;
    const left = details.left_out.map(([id, why]) => make("li", {}, make("span", { class: "call-name" }, id), ` left out: ${why}`));
    const calls = make(
      "section",
      { class: "panel calls", "aria-label": "Calls" },
      make("h2", {}, "Calls"),
      details.calls.length ? make("div", { class: "scroll-x" }, this.tree) : make("p", { class: "dim" }, "No call of this rollout has tokens."),
      left.length ? make("ul", { class: "left-out", id: "calls-left-out" }, left) : null,
      this.about,
    );
    const tokens = make(
      "section",
      { class: "panel tokens-panel", "aria-label": "Tokens" },
      make("div", { class: "row" }, this.title, this.chains, make("label", { class: "toggle" }, this.ids, " ids")),
      this.map,
      this.facts,
      this.live,
      this.scroller,
      legend(),
    );
    const breaks = details.breaks.map((broken) => breakTable(details.calls, broken, (call, at) => this.open(call, at)));
    return [
      details.findings.length ? make("details", { class: "panel", id: "rollout-findings", open: this.row.error + this.row.warning > 0 }, make("summary", {}, make("h2", {}, counted(details.findings.length, "finding"))), this.findings()) : null,
      breaks.length ? make("section", { class: "panel", id: "breaks", "aria-label": "Prefix breaks" }, make("h2", {}, "Where prefixes break"), breaks) : null,
      make("div", { class: "columns" }, calls, details.calls.length ? tokens : null),
    ].filter(Boolean);
  }

  findings() {
    const isPlaced = this.details.findings.some((finding) => finding.where);
    const rows = this.details.findings.map((finding) => {
      const at = finding.call === null ? null : (finding.position ?? this.details.calls[finding.call].prompt);
      const go = at === null ? finding.id : make("button", { type: "button", class: "link", on: { click: () => this.open(finding.call, at) } }, finding.id);
      return make("tr", {}, make("td", {}, make("span", { class: `severity ${finding.severity}` }, finding.severity)), make("td", {}, finding.code), make("td", {}, go), make("td", {}, finding.message), isPlaced ? make("td", { class: "dim" }, finding.where) : null);
    });
    const head = ["Severity", "Code", "Call", "Message", ...(isPlaced ? ["Where"] : [])].map((name) => make("th", { scope: "col" }, name));
    return make("div", { class: "scroll-x" }, make("table", { class: "findings" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows)));
  }

  chainButton(chain) {
    return make("button", { type: "button", "data-call": chain.call, title: counted(chain.ids, "id"), on: { click: () => this.open(chain.call, 0) } }, chain.name);
  }

  openFirst() {
    const first = this.details.chains.find((chain) => chain.name === "main") ?? this.details.chains[0];
    if (this.details.calls.length) this.open(first ? first.call : 0, null);
  }

  // The sequence up to a call, with the cursor at a position; null leaves the page where it is.
  open(call, position) {
    // A call of the chain that is seen is a place in it.
    const isSeen = this.sequence?.path.some((each) => each.index === call) && !this.isOther(call);
    const showsIds = this.ids.checked;
    if (!isSeen || showsIds !== this.showsIds) {
      this.close();
      this.sequence = new Sequence(this.details.calls, isSeen ? this.last : call);
      this.last = isSeen ? this.last : call;
      this.showsIds = showsIds;
      this.strip = new Strip(this.sequence, this.scroller, showsIds);
      this.cursor = new Cursor(this.strip, this.facts, this.live, (at) => this.remember(at));
      this.minimap = new Minimap(this.sequence, this.strip, this.map);
      const chain = this.details.chains.find((each) => each.call === this.last);
      this.title.textContent = chain ? `Chain ${chain.name}` : `Up to ${this.details.calls[this.last].id}`;
      for (const button of this.chains.children) button.setAttribute("aria-pressed", String(Number(button.dataset.call) === this.last));
      if (position === null) this.scroller.scrollTop = 0;
    }
    this.select(call);
    if (position !== null) {
      this.cursor.say(this.cursor.go(position, "center"));
      this.scroller.focus({ preventScroll: true });
      if (this.scroller.getBoundingClientRect().bottom > innerHeight || this.scroller.getBoundingClientRect().top < 0) this.title.scrollIntoView();
    }
  }

  // True for a call that ends a chain of its own.
  isOther(call) {
    return call !== this.last && this.details.chains.some((chain) => chain.call === call);
  }

  jump(event) {
    const position = this.minimap.positionAt(event.clientX);
    this.cursor.say(this.cursor.go(position, "center"));
  }

  select(call) {
    if (this.call === call) return;
    this.call = call;
    for (const row of this.tree.querySelectorAll("tbody tr")) row.setAttribute("aria-selected", String(Number(row.dataset.call) === call));
    this.about.replaceChildren(about(this.details.calls[call]));
  }

  remember(position) {
    this.select(this.sequence.callAt(position).index);
    history.replaceState(null, "", `#/${this.place}/${this.last}/${position}`);
  }
}

function about(call) {
  const facts = [
    ["ids", `${count(call.length)}: prompt ${count(call.prompt)}, generated ${count(call.length - call.prompt)}`],
    ["model", call.model],
    ["weights", call.version],
    ["response", call.response],
    ["created", call.created === null ? "" : new Date(call.created * 1000).toISOString().replace("T", " ").slice(0, 19)],
    ["digest", call.digest],
  ];
  const shown = facts.filter(([, value]) => value).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
  return make("div", {}, make("h2", {}, call.id), make("dl", { class: "call-facts" }, shown), call.text ? make("pre", { class: "said", tabindex: "0", "aria-label": "What the output items say" }, call.text) : null);
}

function legend() {
  const sample = (kind, text) => make("span", { class: "entry" }, make("span", { class: `t ${kind}`, "aria-hidden": "true" }, "tok"), ` ${text}`);
  const steps = ["≥ 90 %", "≥ 50 %", "≥ 10 %", "≥ 1 %", "< 1 %"].map((text, step) => sample(`generated h${step}`, text));
  return make("div", { class: "legend", "aria-label": "Legend" }, sample("prompt", "prompt"), sample("masked", "written by a tool: no loss"), make("span", {}, "generated, by probability:"), steps, sample("generated hx", "no log-prob"));
}
