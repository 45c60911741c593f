// Two sequences side by side around the position where they part.

const BEFORE = 8;
const AFTER = 12;

function breakTable(calls, broken, show) {
  const mine = new Sequence(calls, broken.call);
  const other = new Sequence(calls, broken.other);
  const [name, otherName] = [calls[broken.call].id, calls[broken.other].id];
  const from = Math.max(broken.position - BEFORE, 0);
  const to = Math.min(broken.position + AFTER, Math.max(mine.length, other.length));
  const positions = Array.from({ length: to - from }, (_, at) => from + at);
  const idAt = (sequence, position) => (position < sequence.length ? sequence.at(position).id : null);
  const differs = (position) => idAt(mine, position) !== idAt(other, position);
  const parts = (position) => (position === broken.position ? "parts" : "");
  const cell = (sequence, position) => {
    const isThere = position < sequence.length;
    const look = `${parts(position)} ${differs(position) ? "differs" : ""}`;
    return make("td", { class: look }, isThere ? tokenElement(sequence.at(position), false) : span("dim", "end"));
  };
  const line = (what, call, sequence) => {
    const position = Math.min(broken.position, sequence.length - 1);
    const open = button({ class: "link" }, () => show(call, position), calls[call].id);
    const tokens = positions.map((each) => cell(sequence, each));
    return make("tr", {}, make("th", { scope: "row" }, what, " ", open), tokens);
  };
  const head = positions.map((each) => make("th", { scope: "col", class: parts(each) }, count(each)));
  const marks = cells(positions.map((each) => (differs(each) ? "≠" : "=")));
  const said = `At position ${count(broken.position)} the prompt of ${name} is not what ${otherName} has.`;
  const table = make(
    "table",
    {},
    make("caption", {}, said),
    make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "position"), head)),
    make(
      "tbody",
      {},
      line("earlier", broken.other, other),
      make("tr", { class: "marks", "aria-hidden": "true" }, make("th"), marks),
      line("prompt of", broken.call, mine),
    ),
  );
  const label = `Where ${name} leaves ${otherName}`;
  return make("div", { class: "scroll-x break", tabindex: "0", role: "group", "aria-label": label }, table);
}
