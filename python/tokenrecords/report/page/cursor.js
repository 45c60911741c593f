// The token under the cursor: what it is, and the keys that move it.

const NAMES = { prompt: "prompt", generated: "generated", masked: "tool, masked" };

class Cursor {
  constructor(strip, { facts, live }, moved) {
    Object.assign(this, { strip, facts, live, moved });
    this.off = new AbortController();
    const { scroller } = strip;
    const { signal } = this.off;
    scroller.addEventListener("keydown", (event) => this.key(event), { signal });
    scroller.addEventListener("pointermove", (event) => this.hover(event), { signal });
    scroller.addEventListener("click", (event) => this.press(event), { signal });
    this.show(strip.sequence.at(0));
  }

  close() {
    this.off.abort();
  }

  go(position, scroll) {
    const { sequence } = this.strip;
    this.position = Math.min(Math.max(position, 0), sequence.length - 1);
    const token = sequence.at(this.position);
    this.strip.mark(this.position, scroll);
    this.show(token);
    return token;
  }

  // Browsers report a move where the page moved below a pointer that rests: that is none.
  hover(event) {
    const place = `${event.screenX},${event.screenY}`;
    const element = event.target.closest("[data-p]");
    if (element && place !== this.place) this.go(Number(element.dataset.p), null);
    this.place = place;
  }

  press(event) {
    const element = event.target.closest("[data-p]");
    if (element) this.say(this.go(Number(element.dataset.p), null));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { sequence } = this.strip;
    const at = this.position ?? 0;
    const targets = {
      ArrowRight: () => (this.position === undefined ? 0 : at + 1),
      ArrowLeft: () => at - 1,
      ArrowDown: () => this.line(1),
      ArrowUp: () => this.line(-1),
      PageDown: () => at + 200,
      PageUp: () => at - 200,
      Home: () => 0,
      End: () => sequence.length - 1,
      "]": () => this.edges().find((edge) => edge > at) ?? at,
      "[": () => this.edges().findLast((edge) => edge < at) ?? at,
    };
    if (!(event.key in targets)) return;
    event.preventDefault();
    this.say(this.go(targets[event.key](), "nearest"));
  }

  // Where prompts and generations begin.
  edges() {
    const { path, length } = this.strip.sequence;
    return path.flatMap((call) => [call.start, call.prompt]).filter((edge) => edge < length);
  }

  // The token above or below; where lines end, the nearest of the next ones.
  line(direction) {
    const at = this.position ?? 0;
    const from = this.strip.elementAt(at).getBoundingClientRect();
    let best = at;
    let found = null;
    for (let position = at + direction; position >= 0 && position < this.strip.sequence.length; position += direction) {
      const box = this.strip.elementAt(position).getBoundingClientRect();
      if (Math.abs(box.top - from.top) < LINE / 2) continue;
      if (found !== null && Math.abs(box.top - found) >= LINE / 2) break;
      found = box.top;
      best = position;
      if (direction > 0 ? box.right >= from.left + 1 && box.left <= from.right : box.left <= from.left) break;
    }
    return best;
  }

  show(token) {
    const facts = [
      ["position", `${count(token.position)} of ${count(this.strip.sequence.length)}`],
      ["id", token.id],
      ["text", PIECES ? quoted(token.id) : "no tokenizer"],
      ["role", NAMES[token.role]],
      ["log-prob", token.logProb === null ? "none" : shownLogProb(token.logProb)],
      ["probability", token.logProb === null ? "none" : shownProbability(token.logProb)],
      ["call", token.call.id],
      ["weights", token.call.version || "not said"],
    ];
    for (const [name, value] of facts) this.fact(name).replaceChildren(value);
  }

  fact(name) {
    const known = this.facts.querySelector(`[data-fact="${name}"]`);
    if (known) return known;
    const value = make("dd", { "data-fact": name });
    this.facts.append(make("div", {}, make("dt", {}, name), value));
    return value;
  }

  say(token) {
    const logProb = token.logProb === null ? "" : `, log-prob ${shownLogProb(token.logProb)}`;
    const text = PIECES ? `, text ${textOf(token.id) ?? "unknown"}` : "";
    const what = `position ${token.position}, id ${token.id}${text}, ${NAMES[token.role]}${logProb}`;
    this.live.textContent = `${what}, call ${token.call.id}`;
    this.moved(token.position);
  }
}

// Between quotes, spaces made visible.
function quoted(id) {
  const piece = pieceOf(id);
  if (!piece) return "unknown to the tokenizer";
  const shown = piece.map((part, at) => (at % 2 ? part : part.replaceAll(" ", "␣")));
  return make("span", { class: "quoted" }, ...pieceNodes(shown));
}

function shownProbability(logProb) {
  if (heatOf(logProb) === "x") return "not one";
  const value = Math.exp(logProb);
  return value >= 0.001 ? `${(100 * value).toFixed(2)} %` : value.toExponential(2);
}
