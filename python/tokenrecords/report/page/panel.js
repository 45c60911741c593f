// What stands around the tokens of a sequence: its name, the chains to choose from, the map, the facts, the legend.

const KEYS = "Tokens: arrow keys move, brackets go to the next prompt or generation";

class TokensPanel {
  constructor(chains, act) {
    this.title = make("h2", { id: "strip-title" });
    this.buttons = chains.map((chain) => {
      const attributes = { "data-call": chain.call, title: counted(chain.ids, "id") };
      return button(attributes, () => act.chain(chain.call), chain.name);
    });
    const checkbox = { type: "checkbox", id: "show-ids", checked: !PIECES, disabled: !PIECES };
    this.ids = make("input", { ...checkbox, on: { change: act.ids } });
    const jump = (event) => act.jump(event.clientX);
    const drag = (event) => event.buttons && jump(event);
    this.map = make("div", { class: "minimap", id: "minimap", on: { pointerdown: jump, pointermove: drag } });
    this.facts = make("dl", { class: "facts", id: "facts" });
    this.live = make("p", { class: "hidden", role: "status", "aria-live": "polite", id: "live" });
    const strip = { class: "strip", id: "strip", tabindex: "0", role: "application", "aria-label": KEYS };
    this.scroller = make("div", { ...strip, "aria-roledescription": "token strip" });
    const choice = make("div", { class: "chains", role: "group", "aria-label": "Chains" }, this.buttons);
    const row = make("div", { class: "row" }, this.title, choice, make("label", { class: "toggle" }, this.ids, " ids"));
    const parts = [row, this.map, this.facts, this.live, this.scroller, legend()];
    this.element = make("section", { class: "panel tokens-panel", "aria-label": "Tokens" }, parts);
  }

  get showsIds() {
    return this.ids.checked;
  }

  name(last, title) {
    this.title.textContent = title;
    for (const each of this.buttons) each.setAttribute("aria-pressed", Number(each.dataset.call) === last);
    this.scroller.scrollTop = 0;
  }

  bringIntoView() {
    this.scroller.focus({ preventScroll: true });
    const { top, bottom } = this.scroller.getBoundingClientRect();
    if (bottom > innerHeight || top < 0) this.title.scrollIntoView();
  }
}

function legend() {
  const sample = (look, text) => {
    return span("entry", make("span", { class: `t ${look}`, "aria-hidden": "true" }, "tok"), ` ${text}`);
  };
  const steps = ["≥ 90 %", "≥ 50 %", "≥ 10 %", "≥ 1 %", "< 1 %"];
  return make(
    "div",
    { class: "legend" },
    sample("prompt", "prompt"),
    sample("masked", "written by a tool: no loss"),
    make("span", {}, "generated, by probability:"),
    steps.map((text, step) => sample(`generated h${step}`, text)),
    sample("generated hx", "no log-prob"),
  );
}
