// Two sequences side by side around the position where they part.

const BEFORE = 8;
const AFTER = 12;

function breakTable(calls, broken, show) {
  const mine = new Sequence(calls, broken.call);
  const other = new Sequence(calls, broken.other);
  const from = Math.max(broken.position - BEFORE, 0);
  const to = Math.min(broken.position + AFTER, Math.max(mine.length, other.length));
  const positions = Array.from({ length: to - from }, (_, at) => from + at);
  const idAt = (sequence, position) => (position < sequence.length ? sequence.at(position).id : null);
  const differs = (position) => idAt(mine, position) !== idAt(other, position);
  const cell = (sequence, position) => {
    const place = `${position === broken.position ? "parts" : ""} ${differs(position) ? "differs" : ""}`;
    if (position >= sequence.length) return make("td", { class: place }, make("span", { class: "dim" }, "end"));
    return make("td", { class: place }, tokenElement(sequence.at(position), false));
  };
  const line = (name, call, sequence) => {
    const open = make("button", { type: "button", class: "link", on: { click: () => show(call, Math.min(broken.position, sequence.length - 1)) } }, calls[call].id);
    return make("tr", {}, make("th", { scope: "row" }, name, " ", open), positions.map((position) => cell(sequence, position)));
  };
  const head = positions.map((position) => make("th", { scope: "col", class: position === broken.position ? "parts" : "" }, count(position)));
  const marks = positions.map((position) => make("td", {}, differs(position) ? "≠" : "="));
  return make(
    "div",
    { class: "scroll-x break", tabindex: "0", role: "group", "aria-label": `Where ${calls[broken.call].id} leaves ${calls[broken.other].id}` },
    make(
      "table",
      {},
      make("caption", {}, `At position ${count(broken.position)} the prompt of ${calls[broken.call].id} is not what ${calls[broken.other].id} has.`),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "position"), head)),
      make("tbody", {}, line("earlier", broken.other, other), make("tr", { class: "marks", "aria-hidden": "true" }, make("th"), marks), line("prompt of", broken.call, mine)),
    ),
  );
}
